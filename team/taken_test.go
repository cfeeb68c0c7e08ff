package team_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/team"
)

// A task is taken from its living owner: its next tool call says so, a late completion is refused, it goes on with other
// work, and the next owner gets a lane of its own.
func TestTaskTakenFromItsOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: one}
        - task_create: {subject: two, blocked_by: [one]}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: one'
    who: [alice]
    turns:
      - do: [{write_file: {path: first.txt, content: x}}]
      - wait: 2m
        do: [{write_file: {path: late.txt, content: x}}, {complete_task: {task_id: 1, summary: late}}]
      - do: [{complete_task: {task_id: 1, summary: again}}]
  - cue: 'Task #1: one'
    who: [bob]
    turns: [{do: [{write_file: {path: bob.txt, content: x}}]}, {wait: 3m, do: [{complete_task: {task_id: 1, summary: bob}}]}]
  - cue: 'Task #2: two'
    turns: [{do: [{complete_task: {task_id: 2, summary: two}}]}]
`, nil)
		h.until("written", func(e muster.Event) bool { return e.Kind == journal.ToolEnded && e.Member == "alice" })
		synctest.Wait()
		old := h.task(1).Worktree
		if _, err := h.board.Revoke(t.Context(), 1, muster.User, "enough"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.roster.Add(t.Context(), muster.Member{Name: "bob", Role: "coder", Prompt: "Help.", StartedBy: muster.User}); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Hour)
		h.heard("alice", "task 1 was taken from you", 1)
		if got := h.task(1); got.Owner != "bob" || got.Worktree == old || got.Result != "bob" {
			t.Errorf("%+v", got)
		}
		if files := h.w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nbob.txt" {
			t.Errorf("the target has %q", files)
		}
		kept := h.w.git("for-each-ref", "--format=%(refname)", "refs/muster/archive/")
		if !strings.Contains(kept, string(old)) {
			t.Errorf("the late work is not kept: %q", kept)
		}
	})
}

// An idle owner whose task is deleted goes on with other work at once.
func TestTaskDeletedUnderAnIdleOwner(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: one'
    who: [alice]
    turns: [{do: [{send_message: {to: user, content: "Really?"}}]}, {say: I wait.}]
  - cue: 'Task #2: two'
    turns: [{do: [{complete_task: {task_id: 2, summary: two}}]}]
`, nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		synctest.Wait()
		at := time.Now()
		if err := h.board.Delete(t.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := h.task(2); got.Status != muster.Completed || time.Since(at) > time.Second {
			t.Errorf("%+v after %v", got, time.Since(at))
		}
		r.ends(0, time.Hour)
	})
}

// Another program completes a task: believed, told, its dependants go on.
func TestForeignCompletion(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: one, claim_role: outside}
        - task_create: {subject: two, blocked_by: [one]}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
    - do: [{wait: {}}]
    - do: [{spawn_teammate: {name: bob, role: slow, prompt: Think.}}, {wait: {}}]
      until: All done
    - say: Done.
  bob: [{wait: 2m, do: [{glob: {pattern: "*"}}]}, {say: Bye.}]
scenes:
  - cue: 'Task #2: two'
    turns: [{do: [{complete_task: {task_id: 2, summary: two}}]}]
`, nil)
		h.until("bob is there", is(journal.TurnStarted, "bob"))
		table := h.store.Table(muster.TableTasks)
		doc, err := table.Get(t.Context(), "1")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := table.Put(t.Context(), "1", []byte(strings.Replace(string(doc.Data), `"pending"`, `"completed"`, 1)), doc.Rev); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if h.task(2).Status != muster.Completed {
			t.Errorf("two is %s", h.task(2).Status)
		}
		r.ends(0, time.Hour)
		h.heard("lead", "was completed by another program; nothing was landed by us", 1)
	})
}

// A background job: its end is announced at the next boundary and wakes an idle member; complete_task waits for it; it
// dies with the claim.
func TestBackgroundJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	fifo := t.TempDir()
	w.run(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice:
    - do: [{bash: {background: true, command: "mkfifo `+fifo+`/a; cat `+fifo+`/a; echo first is over"}}]
    - do: [{complete_task: {task_id: 1, summary: early}}, {bash: {command: "while ! test -p `+fifo+`/a; do :; done; echo go > `+fifo+`/a"}}]
    - do: [{bash: {background: true, command: "sleep 0.3; echo second is over"}}]
    - say: I wait for it.
scenes:
  - cue: second is over
    who: [alice]
    turns: [{do: [{complete_task: {task_id: 1, summary: done}}]}]
`, 0, nil)
	said := w.said("alice")
	for text, n := range map[string]int{"of your background jobs still run": 1, "background-results": 4, "is still yours": 0} {
		if got := strings.Count(said, text); got < n || n == 0 && got > 0 {
			t.Errorf("alice read %q %d times, want %d\n%s", text, got, n, said)
		}
	}
	if strings.Index(said, "I wait for it.") > strings.LastIndex(said, "background-results") {
		t.Errorf("the second result did not wake her\n%s", said)
	}
	if w.task(1).Result != "done" {
		t.Errorf("%+v", w.task(1))
	}
}

// task add in another process wakes an idle teammate at once: long before any sweep.
func TestTaskAddedElsewhereWakesAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tm, store := w.open(`
speakers:
  lead:
    - do: [{task_create: {subject: one, claim_role: other}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}, {spawn_teammate: {name: bob, role: slow, prompt: Think.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  bob: [{wait: 80s, do: [{glob: {pattern: "*"}}]}]
scenes:
  - cue: 'Task #(?P<id>\d+): added'
    turns: [{do: [{complete_task: {task_id: "${number:id}", summary: done}}]}]
`, nil)
	_ = store
	ctx, cancel := context.WithTimeoutCause(t.Context(), 30*time.Second, muster.CauseUser)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = tm.Run(ctx, "g", team.Start{})
	}()
	_, second := w.open("speakers: {lead: [{say: x}]}", nil)
	o := elsewhere(second)
	w.follow(ctx, o, "alice is idle", is(journal.MemberIdle, "alice"))
	var took []time.Duration
	for n := range 3 {
		at := time.Now()
		made, err := o.board.Create(ctx, board.Draft{Subject: "added", CreatedBy: muster.User})
		if err != nil {
			t.Fatal(err)
		}
		w.follow(ctx, o, "claimed", func(e muster.Event) bool { return e.Kind == journal.TaskClaimed && e.Task == made.ID })
		took = append(took, time.Since(at))
		w.follow(ctx, o, "idle again", nth(n+2, is(journal.MemberIdle, "alice")))
	}
	cancel()
	<-done
	t.Log(took)
	for _, d := range took {
		if d > 2500*time.Millisecond { // the fallback alone would take five seconds
			t.Errorf("an added task was claimed after %v", took)
		}
	}
}

// nth fits the n-th event that fits.
func nth(n int, fits func(muster.Event) bool) func(muster.Event) bool {
	return func(e muster.Event) bool {
		if fits(e) {
			n--
		}
		return n == 0
	}
}
