package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/transcript"
	"muster/journal"
	"muster/store/mem"
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
		if _, err := h.board.Revoke(h.Context(), 1, h.task(1).Fence, muster.User, "enough"); err != nil {
			t.Fatal(err)
		}
		if _, err := h.roster.Add(h.Context(), muster.Member{Name: "bob", Role: "coder", Prompt: "Help.", StartedBy: muster.User}); err != nil {
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

// An idle owner whose task is deleted, or completed in its name by another program, goes on with other work at once, also
// where nobody is ever timed out.
func TestTaskGoneUnderAnIdleOwner(t *testing.T) {
	t.Parallel()
	for what, gone := range map[string]func(h *house) error{
		"deleted":   func(h *house) error { return h.board.Delete(h.Context(), 1, true) },
		"completed": func(h *house) error { return h.foreign(1, `"in_progress"`, `"completed"`) },
	} {
		t.Run(what, func(t *testing.T) {
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
`, func(c *team.Config) { c.Limits.IdleTimeout = -1 })
				h.until("idle", is(journal.MemberIdle, "alice"))
				synctest.Wait()
				at := time.Now()
				if err := gone(h); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if got := h.task(2); got.Status != muster.Completed || time.Since(at) > time.Second {
					t.Errorf("%+v after %v", got, time.Since(at))
				}
				r.ends(0, time.Hour)
			})
		})
	}
}

// foreign changes a task's document as another program would.
func (h *house) foreign(id muster.TaskID, old, by string) error {
	table, key := h.store.Table(muster.TableTasks), fmt.Sprint(id)
	doc, err := table.Get(h.Context(), key)
	if err == nil {
		_, err = table.Put(h.Context(), key, []byte(strings.Replace(string(doc.Data), old, by, 1)), doc.Rev)
	}
	return err
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
		if err := h.foreign(1, `"pending"`, `"completed"`); err != nil {
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

// A background job: its end is announced at the next boundary and wakes a resting member; complete_task waits for it; it
// dies with the claim. Who waits for one works, and no lead is told that nothing moves, not even where nobody is timed out.
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
`, 0, func(c *team.Config) { c.Limits.IdleTimeout = -1 })
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

// wakes is a process's handle on the state. The process stops just before it says in a conversation that it is the one that
// writes there now: meanwhile the member is given to another process, which has not said so yet.
type wakes struct {
	*mem.Store
	meanwhile func(stream string)
}

func (w wakes) Log() muster.Log { return wakesLog{w.Store.Log(), w.meanwhile} }

type wakesLog struct {
	muster.Log
	meanwhile func(stream string)
}

func (l wakesLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if len(recs) == 1 && strings.Contains(string(recs[0]), `"kind":"host"`) {
		l.meanwhile(stream)
	}
	return l.Log.Append(ctx, stream, at, recs...)
}

// A process that has taken a member over is stopped before its first word, and wakes when another has the member and has
// said nothing either: it writes nothing, asks no model and completes nothing. When the other is gone, it is its turn again.
func TestWakesBeforeTheNewHostsFirstWord(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const words = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: one'
    turns: [{do: [{write_file: {path: one.txt, content: x}}]}, {wait: 2m, do: [{complete_task: {task_id: 1, summary: mine}}]}]
`
		r := h.start(words, nil)
		h.until("written", func(e muster.Event) bool { return e.Kind == journal.ToolEnded && e.Member == "alice" })
		r.interrupt()

		other, err := h.roster.Join(h.Context(), "another process")
		if err != nil {
			t.Fatal(err)
		}
		taken := make(chan muster.Member, 1)
		given := false
		r = h.resume(words, func(c *team.Config) {
			c.Store = wakes{h.store.Handle(), func(stream string) {
				if stream != muster.StreamTranscripts+"alice" || given { // given is hers alone
					return
				}
				given = true
				m, err := h.roster.TakeOver(h.Context(), "alice", h.member("alice").Host, other.ID())
				if err != nil {
					t.Error(err)
				}
				taken <- m
			}}
		})
		m := <-taken
		before, turns := h.task(1), h.turns("alice")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if now := h.member("alice"); now.Host != other.ID() || now.Epoch != m.Epoch {
			t.Errorf("alice is hosted by %s in epoch %d, want %s in %d", now.Host, now.Epoch, other.ID(), m.Epoch)
		}
		if n := h.turns("alice"); n != turns {
			t.Errorf("her model was asked %d times by the late process", n-turns)
		}
		if now := h.task(1); now.Status != before.Status || now.Fence != before.Fence || now.Status == muster.Completed {
			t.Errorf("the task was changed: %+v", now)
		}
		all := h.entries("alice")
		if last := all[len(all)-1]; last.Kind != transcript.KindHost {
			t.Errorf("the late process has written into the conversation: %+v", last)
		}

		if err := other.Release(); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Hour)
		if got := h.task(1); got.Status != muster.Completed || got.Result != "mine" {
			t.Errorf("%+v", got)
		}
	})
}

// A hundred teammates end at the same moment: what each has to say reaches the lead, all of it, and before the notice that
// the teammate is idle.
func TestLastWordsComeBeforeTheIdleNotice(t *testing.T) {
	t.Parallel()
	const n = 100
	bubble(t, func(h *house) {
		var spawn, speakers strings.Builder
		for i := range n {
			fmt.Fprintf(&spawn, "        - spawn_teammate: {name: m%d, role: coder, prompt: Report.}\n", i)
			fmt.Fprintf(&speakers, "  m%d: [{wait: 10s, say: The report of m%d.}]\n", i, i)
		}
		r := h.start("speakers:\n  lead:\n    - do:\n"+spawn.String()+"    - do: [{wait: {}}]\n      until: All done\n    - say: Done.\n"+speakers.String(),
			func(c *team.Config) { c.Teammates = n })
		r.ends(0, time.Hour)
		heard := h.said("lead")
		for _, m := range h.waiting(muster.Lead) {
			heard += m.Content + "\n"
		}
		for i := range n {
			report, notice := fmt.Sprintf("The report of m%d.", i), fmt.Sprintf("m%d is idle", i)
			if c := strings.Count(heard, report); c != 1 {
				t.Errorf("%q was heard %d times", report, c)
			}
			if at := strings.Index(heard, notice); at < 0 || at < strings.Index(heard, report) {
				t.Errorf("%q came before %q, or never", notice, report)
			}
		}
	})
}

// Five thousand mails wait for a teammate that is at work: it gets all of them, each once and in their order, in parts that
// a model can read.
func TestAnInboxOfFiveThousand(t *testing.T) {
	t.Parallel()
	const n = 5000
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Read.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice: [{wait: 1m, do: [{glob: {pattern: "*"}}]}]
`, nil)
		h.until("alice is asked", is(journal.TurnStarted, "alice"))
		for i := range n {
			m := muster.Message{ID: muster.MessageID(fmt.Sprint("mail-", i)), From: muster.User, To: "alice", Content: fmt.Sprintf("This is mail %d of many.", i)}
			if _, err := h.post.Send(h.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		r.ends(0, time.Hour)
		var got []muster.MessageID
		parts := 0
		for _, e := range h.entries("alice") {
			before := len(got)
			for _, id := range e.Mail {
				if strings.HasPrefix(string(id), "mail-") {
					got = append(got, id)
				}
			}
			if len(got) > before {
				parts++
			}
		}
		for i, id := range got {
			if id != muster.MessageID(fmt.Sprint("mail-", i)) {
				t.Fatalf("mail %d is %s", i, id)
			}
		}
		if len(got) != n || parts < 5 {
			t.Errorf("%d mails of %d in %d parts", len(got), n, parts)
		}
		if left := h.waiting("alice"); len(left) > 0 {
			t.Errorf("%d mails are left", len(left))
		}
	})
}

// Who has lost a task cannot bind it to a lane any more: the next owner's work would be looked for there.
func TestALateOwnerBindsNoLane(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		made, err := h.board.Create(h.Context(), board.Draft{Subject: "one", CreatedBy: muster.User})
		if err != nil {
			t.Fatal(err)
		}
		old, err := h.board.Claim(h.Context(), made.ID, board.Claim{Owner: "alice"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.board.Revoke(h.Context(), made.ID, old.Fence, muster.User, "enough"); err != nil {
			t.Fatal(err)
		}
		now, err := h.board.Claim(h.Context(), made.ID, board.Claim{Owner: "bob"})
		if err == nil {
			_, err = h.board.SetLane(h.Context(), made.ID, now.Fence, "bobs", "base")
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.board.SetLane(h.Context(), made.ID, old.Fence, "late", "base"); !errors.Is(err, muster.ErrFenced) {
			t.Errorf("a late lane: %v", err)
		}
		if got := h.task(made.ID); got.Worktree != "bobs" {
			t.Errorf("the task is bound to %q", got.Worktree)
		}
	})
}
