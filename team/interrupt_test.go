package team_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
	"muster/journal"
	"muster/llm"
	"muster/team"
	"muster/tool"
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
				h.heard("bob", `mail for bob\n</mail>`, 1)
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

// A member whose model or tool does not heed the end of its context writes nothing after Run has returned, and does not
// keep Run from returning.
func TestNobodyWritesAfterRunHasReturned(t *testing.T) {
	t.Parallel()
	const late = 10 * time.Minute // long after every limit
	deaf := func() { time.Sleep(late) }
	slow := tool.Func("slow", "It does not heed its context.", func(context.Context, struct{}) (string, error) {
		deaf()
		return "It is done at last.", nil
	})
	for name, c := range map[string]struct {
		who  muster.Name
		with func(n int) (llm.Reply, error)
	}{
		"a teammate's model": {"alice", func(int) (llm.Reply, error) {
			deaf()
			return calls("late", "send_message", in{"to": "lead", "content": "late"})
		}},
		"a teammate's tool": {"alice", func(int) (llm.Reply, error) { return calls("s", "slow", in{}) }},
		"the lead's model": {muster.Lead, func(int) (llm.Reply, error) {
			deaf()
			return calls("late", "task_create", in{"subject": "late"})
		}},
		"the lead's tool": {muster.Lead, func(int) (llm.Reply, error) { return calls("s", "slow", in{}) }},
	} {
		for cause, stop := range map[string]error{"interrupted": muster.CauseUser, "ended": nil} {
			if stop == nil && c.who == muster.Lead {
				continue // it ends the run by itself
			}
			t.Run(name+" "+cause, func(t *testing.T) {
				bubble(t, func(h *house) {
					spawn := func() (llm.Reply, error) {
						return calls("s", "spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "Work."})
					}
					m := cast{string(c.who): func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) { return c.with(n) }}
					if c.who != muster.Lead {
						m["lead"] = func(ctx context.Context, n int, r llm.Request) (llm.Reply, error) {
							switch {
							case n == 0:
								return spawn()
							case stop != nil:
								return hangs(ctx, n, r)
							case n == 1:
								return calls("w", "request_shutdown", in{"teammate": "alice", "force": true, "reason": "enough"})
							}
							return says("Done.")
						}
					}
					r := h.run(h.open(m.model(), func(o *team.Config) { o.Tools = []llm.Tool{slow} }))
					if stop != nil {
						time.Sleep(time.Minute)
						synctest.Wait()
						r.stop(stop)
					}
					began := time.Now()
					<-r.done
					if took := time.Since(began); took > time.Minute {
						t.Errorf("Run returned after %v", took)
					}
					said, told := h.said("alice")+h.said(muster.Lead), len(h.events())
					time.Sleep(2 * late)
					if now := h.said("alice") + h.said(muster.Lead); now != said {
						t.Errorf("a transcript has grown after Run had returned:\n%s", now)
					}
					if n := len(h.events()); n != told {
						t.Errorf("%d events came after Run had returned\n%s", n-told, h.tail())
					}
				})
			})
		}
	}
}

// A shutdown that was asked of a lead that was dead already does not stop its next life.
func TestShutdownOfADeadLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.run(h.open(cast{"lead": hangs}.model(), nil))
		h.until("asked", is(journal.TurnStarted, muster.Lead))
		r.interrupt()
		q := require.Value(h.requests.Ask(h.Context(), muster.Request{Kind: muster.AskShutdown, From: muster.User, To: muster.Lead, Reason: "x"}))(t)
		h.resume("speakers: {lead: [{say: Here I am.}]}", nil).ends(0, time.Hour)
		if q, _ = h.requests.Get(h.Context(), q.ID); q.Status != muster.RequestApproved || q.Response != "it had stopped already" {
			t.Errorf("the request is %+v", q)
		}
	})
}

// Thirty seconds end a member whose model hangs; its task goes back, and spawned again it is not ended by the old request.
func TestShutdownDeadlineEndsAHungModel(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		m := cast{
			"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - wait: 1m # the test looks at the task before alice can claim it again
      do: [{spawn_teammate: {name: alice, role: coder, prompt: Again.}}, {wait: {}}]
    - say: Done.
`),
			"alice": func(ctx context.Context, n int, r llm.Request) (llm.Reply, error) {
				if n == 0 {
					return hangs(ctx, n, r)
				}
				time.Sleep(40 * time.Second)
				return calls("c", "complete_task", in{"task_id": 1, "summary": "done"})
			},
		}.model()
		r := h.run(h.open(m, nil))
		h.until("claimed", is(journal.TaskClaimed, "alice"))
		synctest.Wait()
		at := time.Now()
		id := h.shutDownAlice(nil)
		h.until("shut down", is(journal.MemberShutdown, "alice"))
		if took := time.Since(at); took < 29*time.Second || took > 31*time.Second {
			t.Errorf("it took %v", took)
		}
		if q, _ := h.requests.Get(h.Context(), id); q.Status != muster.RequestExpired {
			t.Errorf("the request is %s", q.Status)
		}
		if got := h.task(1); got.Status != muster.Pending || got.Worktree == "" {
			t.Errorf("%+v", got)
		}
		r.ends(0, time.Hour)
		if got := h.task(1); got.Owner != "alice" || got.Fence != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// A member that heeds nothing at all is shut down by force, and finds nothing to do when it comes back.
func TestShutdownOfADeafMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		m := cast{"lead": h.reads(waitingLead), "alice": func(context.Context, int, llm.Request) (llm.Reply, error) {
			time.Sleep(4 * time.Minute)
			return says("late")
		}}.model()
		r := h.run(h.open(m, nil))
		h.until("claimed", is(journal.TaskClaimed, "alice"))
		synctest.Wait()
		h.shutDownAlice(func(q *muster.Request) { q.Force = true })
		r.ends(3, 2*time.Minute)
		if got := h.task(1); got.Status != muster.Pending || h.member("alice").Status != muster.Shutdown {
			t.Errorf("%+v", got)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := h.task(1); got.Status != muster.Pending {
			t.Errorf("%+v", got)
		}
	})
}

// A deadline in a long command: nothing of its processes is alive afterwards. With the real guard.
func TestShutdownEndsALongCommand(t *testing.T) {
	t.Parallel()
	ps := tier.Needs(t, "ps")
	h := onFiles(t)
	pids := filepath.Join(t.TempDir(), "pids")
	r := h.start(waitingLead+`  alice:
    - do: [{bash: {command: "echo x > half; (setsid sh -c 'echo $$ >> `+pids+`; exec sleep 300' &); echo $$ >> `+pids+`; exec sleep 300"}}]
`, nil)
	var alive []string
	wait.For(t, "two processes", func() bool {
		data, _ := os.ReadFile(pids)
		alive = strings.Fields(string(data))
		return len(alive) == 2
	})
	h.shutDownAlice(func(q *muster.Request) { q.Deadline = muster.UnixTime(time.Now().Add(100 * time.Millisecond)) })
	h.until("alice is shut down", is(journal.MemberShutdown, "alice"))
	for _, pid := range alive {
		if out, err := exec.Command(ps, "-o", "stat=,args=", "-p", pid).Output(); err == nil && !strings.HasPrefix(string(out), "Z") {
			t.Errorf("alive: %s", out)
		}
	}
	r.ends(3, time.Minute)
	if got := h.task(1); got.Status != muster.Pending || got.Worktree == "" {
		t.Errorf("%+v", got)
	}
}

// A task in the name of a member that has shut down since, which it could not be seen to have then, goes back on the board
// and somebody else does it. What somebody claims in that name afterwards is theirs.
func TestOrphansOfWhoHasShutDown(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: one, claim_role: tester}
        - task_create: {subject: two, claim_role: tester}
        - spawn_teammate: {name: bob, role: slow, prompt: Think.}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  bob:
    - wait: 4m
      do: [{glob: {pattern: "*"}}]
    - say: Bye.
`+writes, nil)
		inHerName := func(id muster.TaskID) muster.Task {
			return require.Value(h.board.Claim(h.Context(), id, board.Claim{Owner: "alice", Role: "tester"}))(t)
		}
		h.until("idle", is(journal.MemberIdle, "alice"))
		inHerName(1)
		h.shutDownAlice(func(q *muster.Request) { q.Force = true })
		synctest.Wait()
		if m, got := h.member("alice"), h.task(1); m.Status != muster.Shutdown || got.Owner != "alice" {
			t.Fatalf("alice is %s, and the task is %q's", m.Status, got.Owner)
		}
		time.Sleep(time.Second)
		later := inHerName(2)
		h.add("tess", "tester")
		h.until("one is done", completed(1))
		time.Sleep(time.Minute)
		if got := h.task(1); got.Owner != "tess" {
			t.Errorf("one is %q's", got.Owner)
		}
		if got := h.task(2); got.Owner != "alice" || got.Fence != later.Fence {
			t.Errorf("two was taken from whoever works in alice's name: %+v", got)
		}
		require.Value(h.board.Complete(h.Context(), 2, later.Fence, board.Outcome{}))(t)
		r.ends(0, time.Hour)
	})
}
