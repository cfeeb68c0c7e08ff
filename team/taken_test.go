package team_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/tier"
	"muster/internal/transcript"
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
		h.revokeFirst()
		h.add("bob", "coder")
		r.ends(0, time.Hour)
		h.heard("alice", "task 1 was taken from you", 1)
		if got := h.task(1); got.Owner != "bob" || got.Worktree == old || got.Result != "bob" {
			t.Errorf("%+v", got)
		}
		if files := h.onTarget(); files != "bob.txt" {
			t.Errorf("the target has %q", files)
		}
		if kept := h.archived(old); kept != "first.txt" {
			t.Errorf("of the late work is kept: %q", kept)
		}
	})
}

// An idle owner whose task is deleted goes on with other work at once, also where nobody is ever timed out.
func TestTaskGoneUnderAnIdleOwner(t *testing.T) {
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
    turns: [{do: [{send_message: {to: user, content: "Really?"}}]}, {say: I wait.}]
  - cue: 'Task #2: two'
    turns: [{do: [{complete_task: {task_id: 2, summary: two}}]}]
`, func(c *team.Config) { c.Limits.IdleTimeout = -1 })
		h.until("idle", is(journal.MemberIdle, "alice"))
		time.Sleep(3 * time.Hour)
		at := time.Now()
		if err := h.board.Delete(h.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := h.task(2); got.Status != muster.Completed || time.Since(at) > time.Second {
			t.Errorf("%+v after %v", got, time.Since(at))
		}
		r.ends(0, time.Hour)
	})
}

// A task that another process adds wakes an idle teammate at once: the fallback alone takes five seconds.
func TestTaskAddedElsewhereWakesAtOnce(t *testing.T) {
	tier.All(t) // its promise is a time limit
	h := onFiles(t)
	r := h.start(`
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
	o := elsewhere(h.handle())
	h.until("alice is idle", is(journal.MemberIdle, "alice"))
	var took []time.Duration
	for n := range 3 {
		at := time.Now()
		made, err := o.board.Create(h.Context(), board.Draft{Subject: "added", CreatedBy: muster.User})
		if err != nil {
			t.Fatal(err)
		}
		h.until("claimed", claimed(made.ID))
		took = append(took, time.Since(at))
		h.until("idle again", nth(n+2, is(journal.MemberIdle, "alice")))
	}
	r.abandon()
	if slices.Max(took) > 2500*time.Millisecond {
		t.Errorf("an added task was claimed after %v", took)
	}
}

// A process that has taken a member over is stopped before its first word, and wakes when another has the member and has
// said nothing either: it writes nothing, asks no model and completes nothing. When the other is gone, it is its turn again.
func TestWakesBeforeTheNewHostsFirstWord(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const words = oneTask + `scenes:
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
			// The process stops just before it says in a conversation that it is the one that writes there now: meanwhile
			// the member is given to another process, which has not said so yet.
			c.Store = tapped{Store: h.handle(), before: func(_ context.Context, op, key string, data []byte) error {
				if op != "append" || key != muster.StreamTranscripts+"alice" || !bytes.Contains(data, []byte(`"kind":"host"`)) || given {
					return nil
				}
				given = true
				m, err := h.roster.TakeOver(h.Context(), "alice", h.member("alice").Host, other.ID())
				if err != nil {
					t.Error(err)
				}
				taken <- m
				return nil
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

// A hundred teammates (of which the first tier tries ten) end at the same moment: what each has to say reaches the lead, all of it, and before the notice that
// the teammate is idle.
func TestLastWordsComeBeforeTheIdleNotice(t *testing.T) {
	t.Parallel()
	n := tier.Amount(10, 100)
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
	n, least := tier.Amount(1000, 5000), tier.Amount(2, 5) // parts
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
		if len(got) != n || parts < least {
			t.Errorf("%d mails of %d in %d parts", len(got), n, parts)
		}
		if left := h.waiting("alice"); len(left) > 0 {
			t.Errorf("%d mails are left", len(left))
		}
	})
}
