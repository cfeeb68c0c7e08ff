package team_test

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// Ctrl-C at many moments, and on with a new process: at the exact turn, nothing claimed twice, no mail lost or doubled.
func TestInterruptAndResume(t *testing.T) {
	t.Parallel()
	const script = `
speakers:
  lead:
    - do:
        - task_create: {subject: one, require_plan: true, claim_role: coder}
        - task_create: {subject: two, blocked_by: [one], claim_role: coder}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
        - spawn_teammate: {name: bob, role: clerk, prompt: Read.}
        - send_message: {to: bob, content: mail for bob}
    - do: [{wait: {}}]
      until: All done
    - say: Over and out.
  bob:
    - say: I wait.
    - say: I have read it.
scenes:
  - cue: 'Task #1: one'
    who: [alice]
    turns:
      - wait: 50s
        do: [{submit_plan: {plan: Write one.}}]
      - do: [{write_file: {path: one.txt, content: one}}]
      - do: [{bash: {command: 'test -e "GATE/bash" || exec sleep 3; echo ran >> "GATE/ran"'}}]
      - cue: nterrupted
        do: [{task_list: {}}]
      - do: [{complete_task: {task_id: 1, summary: one is written}}]
  - cue: 'Task #2: two'
    who: [alice]
    turns:
      - do: [{complete_task: {task_id: 2, summary: two}}]
`
	for _, c := range []struct {
		name  string
		when  func(h *house, gate string)
		plans int // how often a plan is asked for in all
		ran   string
	}{
		{"in the model's turn and the lead's wait", func(h *house, gate string) {
			h.until("claimed", is(journal.TaskClaimed, "alice"))
			synctest.Wait()
		}, 1, "ran\n"},
		{"parked on a plan", func(h *house, _ string) { h.pendingPlan(); synctest.Wait() }, 1, "ran\n"},
		{"in a tool", func(h *house, gate string) {
			approve(h, h.pendingPlan())
			h.until("bash", uses("alice", "bash"))
		}, 1, ""},
		{"in a landing's check", func(h *house, gate string) {
			open(gate + "/bash")
			approve(h, h.pendingPlan())
			h.until("landing", is(journal.TaskLanding, "alice"))
		}, 1, "ran\n"},
		{"between two tasks", func(h *house, gate string) {
			open(gate + "/bash")
			open(gate + "/check")
			approve(h, h.pendingPlan())
			h.until("completed", is(journal.TaskCompleted, "alice"))
		}, 1, "ran\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			gate := t.TempDir()
			words := strings.ReplaceAll(script, "GATE", gate)
			bubbleOnGit(t, func(h *house) {
				check := func(k *team.Config) { k.Check = `test -e "` + gate + `/check" || exec sleep 3; true` }
				r := h.start(words, check)
				c.when(h, gate)
				r.interrupt()
				open(gate + "/bash")
				open(gate + "/check")
				r = h.resume(words, check)
				if q, err := h.requests.Get(h.Context(), h.pendingPlan()); err == nil && q.Status == muster.RequestPending {
					approve(h, q.ID)
				}
				sum := r.ends(0, time.Hour)
				if sum.Text != "Over and out." {
					t.Errorf("the lead ended with %q", sum.Text)
				}
				for id := muster.TaskID(1); id <= 2; id++ {
					if got := h.task(id); got.Fence != 1 || got.Owner != "alice" || got.Status != muster.Completed {
						t.Errorf("%+v", got)
					}
				}
				if n := h.count(is(journal.TaskClaimed, "")); n != 2 {
					t.Errorf("claimed %d times", n)
				}
				if n := h.count(func(e muster.Event) bool { return e.Kind == journal.RequestCreated }); n != c.plans {
					t.Errorf("%d plans\n%s", n, h.tail())
				}
				h.heard("bob", `"content": "mail for bob"`, 1)
				h.heard("lead", "Over and out.", 1)
				h.heard("alice", "Task #1: one", 1)
				h.heard("alice", "Task #1 landed as", 1)
				if n := h.landings(); n != 1 || h.onTarget() != "one.txt" {
					t.Errorf("%d landings, the target has %q", n, h.onTarget())
				}
				for _, name := range []muster.Name{muster.Lead, "alice", "bob"} {
					h.neverInterrupted(name, "wait", "submit_plan", "complete_task")
				}
			})
		})
	}
}

func approve(h *house, id muster.RequestID) {
	if _, _, err := h.requests.Decide(h.Context(), id, muster.User, true, ""); err != nil {
		h.Errorf("approve: %v", err)
	}
}

func open(path string) { _ = os.WriteFile(path, nil, 0o600) }

// neverInterrupted fails unless each call of a member was answered once, and no call of a tool that records its answer
// with "interrupted".
func (h *house) neverInterrupted(name muster.Name, tools ...string) {
	h.Helper()
	names, answers := map[string]string{}, map[string]int{}
	for _, e := range h.entries(name) {
		if e.Message == nil {
			continue
		}
		for _, p := range e.Message.Parts {
			switch p := p.(type) {
			case llm.Call:
				names[p.ID] = p.Name
			case llm.Result:
				answers[p.ID]++
				if slices.Contains(tools, names[p.ID]) && strings.Contains(p.Text(), "nterrupted") {
					h.Errorf("%s: %s was answered %s", name, names[p.ID], p.Text())
				}
			}
		}
	}
	for id, tool := range names {
		if answers[id] != 1 {
			h.Errorf("%s: a call of %s has %d results", name, tool, answers[id])
		}
	}
}

// A hung model call is cut by Ctrl-C at once. What the user writes meanwhile comes with the first request of the new life.
func TestInterruptOfAHungModel(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.run(h.open(cast{"lead": hangs}.model(), nil))
		h.until("asked", is(journal.TurnStarted, muster.Lead))
		synctest.Wait()
		at := time.Now()
		r.interrupt()
		if time.Since(at) > time.Second {
			t.Errorf("it took %v", time.Since(at))
		}
		if m := h.member(muster.Lead); m.Status == muster.Shutdown || m.Host == "" {
			t.Errorf("the lead's record is %+v", m)
		}
		h.tellLead("while you were away")
		h.resume("speakers: {lead: [{say: Here I am.}]}", nil).ends(0, time.Minute)
		h.heard("lead", "while you were away", 1)
		if h.turns("lead") != 2 {
			t.Errorf("%d turns", h.turns("lead"))
		}
	})
}

// What the user writes while nobody runs is read, also when the lead had said its last words.
func TestUserMailOverAResume(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const words = `
speakers:
  lead:
    - do: [{spawn_teammate: {name: bob, role: slow, prompt: Think.}}]
    - say: My last words.
    - say: I heard you.
  bob: [{wait: 4m, do: [{glob: {pattern: "*"}}]}, {say: Bye.}]
`
		r := h.start(words, nil)
		h.until("asleep", is(journal.MemberIdle, muster.Lead))
		synctest.Wait()
		r.interrupt()
		h.tellLead("one more thing")
		sum := h.resume(words, nil).ends(0, time.Hour)
		h.heard("lead", "one more thing", 1)
		if sum.Text != "I heard you." {
			t.Errorf("%q", sum.Text)
		}
	})
}

// Two processes cannot bring one team to life, not even at one moment; the second is told where the first lives.
func TestTwoRunsOnOneRepository(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const minute = "speakers: {lead: [{wait: 1m, say: Done.}]}"
		var runs []*running
		for range 3 {
			runs = append(runs, h.start(minute, nil))
		}
		time.Sleep(10 * time.Second)
		late := h.start(minute, nil)
		err := late.fails()
		var e *muster.Error
		if !errors.As(err, &e) || e.Code != muster.Held || !strings.Contains(e.Message, "pid ") || e.Hint == "" {
			t.Errorf("the late one: %v", err)
		}
		if err := h.resume(minute, nil).fails(); !errors.Is(err, muster.ErrHeld) {
			t.Errorf("a resume beside it: %v", err)
		}
		won := 0
		for _, r := range runs {
			<-r.done
			if r.err == nil {
				won++
			} else if !errors.Is(r.err, muster.ErrHeld) {
				t.Error(r.err)
			}
		}
		if won != 1 || h.count(is(journal.RunStarted, "")) != 1 {
			t.Errorf("%d runs", won)
		}
	})
}
