package team_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/require"
	"muster/team"
)

// The rows of "the lead's turn ends in text".
func TestLeadEndsInText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, words string
		code        int
		text        string
		turns       int
		cap         int
	}{
		{"no task was ever made: the text is the answer", `
speakers:
  lead: [{say: It is written in Go.}]
`, 0, "It is written in Go.", 1, 4},
		{"open tasks that cannot: told once, then the end", `
speakers:
  lead:
    - do: [{task_create: {subject: one}}]
    - say: Somebody will do it.
    - say: Nobody does.
`, 3, "task #1 is ready and there is no teammate to take it", 3, 4},
		{"no teammates: the lead does it all, gated tasks too", `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two, claim_role: tester, blocked_by: [one]}}]
    - do: [{wait: {}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{write_file: {path: one, content: x}}]
    - do: [{wait: {}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
    - do: [{claim_task: {task_id: 2}}]
    - do: [{complete_task: {task_id: 2, summary: two}}]
    - say: All by myself.
`, 0, "All by myself.", 9, 0},
		{"it stops with its own task in hand", `
speakers:
  lead:
    - do: [{task_create: {subject: one}}]
    - do: [{claim_task: {task_id: 1}}]
    - say: Hm.
    - say: Hm hm.
    - say: No.
`, 3, "Hm hm.", 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(h *house) {
				sum := h.start(c.words, func(k *team.Config) { k.Teammates = c.cap }).ends(c.code, time.Hour)
				if !strings.Contains(sum.Text, c.text) || h.turns("lead") != c.turns {
					t.Errorf("%q in %d turns, want %q in %d\n%s", sum.Text, h.turns("lead"), c.text, c.turns, h.tail())
				}
				members, _ := h.roster.List(h.Context())
				for _, m := range members {
					if m.Status != muster.Shutdown || m.Host != "" {
						t.Errorf("%s lingers: %s on %q", m.Name, m.Status, m.Host)
					}
				}
				if run := sum.Run; run.EndedAt == 0 {
					t.Error("the run has not ended")
				}
			})
		})
	}
}

// A plain wait is not woken by a flood of news, but by the mail behind it.
func TestWhatWakesTheLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one, claim_role: coder}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}, {spawn_teammate: {name: bob, role: slow, prompt: Talk.}}]
    - do: [{wait: {}}]
    - say: Done.
  bob:
    - wait: 4m
      do: [{glob: {pattern: "*"}}]
    - say: Bye.
  alice:
    - wait: 1m
      do: [{write_file: {path: one.txt, content: x}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
    - say: Nothing more to say.
`, nil)
		h.until("landed", completed(1))
		synctest.Wait() // the lead waits
		before := h.turns("lead")
		news := strings.Repeat("n", 4000)
		for range 40 { // more than one delivery holds
			require.Value(h.post.Send(h.Context(), muster.Message{Type: muster.MailResult, From: "alice", To: muster.Lead, Content: news}))(t)
		}
		synctest.Wait()
		if n := h.turns("lead"); n != before {
			t.Fatalf("news woke the lead: %d turns after %d\n%s", n, before, h.tail())
		}
		h.tellLead("behind the news")
		synctest.Wait()
		if h.turns("lead") != before+3 { // a turn for each delivery
			t.Errorf("mail behind a flood of news did not wake the lead: %d turns\n%s", h.turns("lead"), h.tail())
		}
		r.ends(0, time.Hour)
		h.heard("lead", "behind the news", 1)
	})
}

// A task that needs attention and a member that is lost wake the lead, and the user is told.
func TestAttentionWakesLeadAndUser(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: hard}}, {task_create: {subject: after, blocked_by: [hard]}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{task_update: {task_id: 1, status: deleted}}, {wait: {}}]
    - say: Given up.
    - say: Given up.
scenes:
  - cue: 'Task #1: hard'
    who: [alice]
    turns: [{do: [{release_task: {task_id: 1, reason: I cannot}}]}]
`, nil)
		r.ends(3, time.Hour)
		h.heard("lead", "Task #1 (hard) needs attention: given back 3 times, last: cannot", 1)
		mail := h.waiting(muster.User)
		if len(mail) != 1 || !strings.Contains(mail[0].Content, "needs you") {
			t.Errorf("the user's mail: %+v", mail)
		}
		if got := h.task(1); got.Status != muster.NeedsAttention || got.Attempts != 3 || h.task(2).Status != muster.Pending {
			t.Errorf("%+v", got)
		}
		// Retried by the user, a resumed team goes on.
		require.Value(h.board.Update(h.Context(), 1, board.Patch{Retry: true, By: muster.User}))(t)
		h.resume(`
speakers:
  lead: [{say: x}]
scenes:
  - cue: 'end again'
    turns: [{do: [{spawn_teammate: {name: bob, role: coder, prompt: Go on.}}]}, {do: [{wait: {}}]}, {say: Done after all.}]
  - cue: 'Task #(?P<id>\d+):'
    who: [bob]
    turns: [{do: [{complete_task: {task_id: "${number:id}", summary: done}}]}]
`, nil).ends(0, time.Hour)
	})
}

// What needed attention in an earlier run does not taint a later one.
func TestOldTroubleDoesNotTaintANewRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: hard}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{release_task: {task_id: 1, reason: no}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{release_task: {task_id: 1, reason: no}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{release_task: {task_id: 1, reason: no}}]
    - say: It needs attention.
`, nil).ends(3, time.Hour)
		time.Sleep(time.Second)
		h.start(`
speakers:
  lead: [{say: The answer.}]
`, nil).ends(0, time.Hour)
	})
}
