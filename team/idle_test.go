package team_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/journal"
)

// oneTask is a lead with one task for one teammate.
const oneTask = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
`

// writes does any task in one step.
const writes = `scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`

// An idle member is timed out, the lead reads of it, and it is spawned again by name with its conversation and new words.
func TestIdleTimeoutAndSpawnedAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - spawn_teammate: {name: alice, role: coder, prompt: First words.}
        - spawn_teammate: {name: bob, role: slow, prompt: Think.}
    - do: [{wait: {}}]
    - do: [{send_message: {to: alice, content: "Are you there?"}}, {broadcast: {content: "Is anybody there?"}}]
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: First words.}}, {task_create: {subject: one, claim_role: coder}}]
    - do: [{wait: {}}]
    - say: Over.
  alice:
    - say: I am here.
  bob:
    - wait: 3m
      do: [{send_message: {to: lead, content: ready}}]
    - say: Bye.
`+writes, nil)
		h.until("alice is timed out", func(e muster.Event) bool { return e.Kind == journal.MemberShutdown && e.Text("reason") == "timeout" })
		if m := h.member("alice"); m.Status != muster.Shutdown || m.IdleReason != muster.IdleTimeout || m.Host != "" {
			t.Errorf("alice is %+v", m)
		}
		if h.turns("lead") != 2 {
			t.Errorf("the timeout alone woke the lead: %d turns", h.turns("lead"))
		}
		r.ends(0, time.Hour)
		h.heard("alice", "First words.", 2)
		h.heard("alice", "I am here.", 1)
		h.heard("alice", "Are you there?", 1)
		h.heard("lead", "alice has shut down: it reads this when it is spawned again. To start it again call spawn_teammate", 1)
		h.heard("lead", "Sent to bob. Not sent to who has shut down: alice. To start it again call spawn_teammate", 1)
		h.heard("lead", "alice found nothing to do for 1m0s and shuts down", 1)
		if h.task(1).Owner != "alice" || h.member("alice").Epoch < 3 {
			t.Errorf("%+v", h.task(1))
		}
	})
}

// The owner stops talking with its task in hand: reminded twice, idle and still the owner, while the lead is woken;
// released at the timeout. Its own task is no reason to stay.
func TestOwnerStopsTalking(t *testing.T) {
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
    - do: [{wait: {}}]
    - say: Stuck.
    - say: Stuck.
  alice:
    - do: [{write_file: {path: half.txt, content: half}}]
    - say: Thinking aloud.
    - say: Still thinking.
    - say: I think that is all.
`, nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		synctest.Wait()
		h.heard("alice", "is still yours", 2)
		h.heard("lead", "alice has stopped with task #1 (one) in hand, though it was reminded twice.", 1)
		h.heard("lead", "I think that is all.", 1)
		if got := h.task(1); got.Owner != "alice" || got.Status != muster.InProgress {
			t.Errorf("%+v", got)
		}
		sum := r.ends(3, 5*time.Minute)
		if got := h.task(1); got.Status != muster.Pending || got.Attempts != 0 || got.Worktree == "" {
			t.Errorf("after the timeout: %+v", got)
		}
		if h.turns("alice") != 4 || len(sum.Tasks) != 2 {
			t.Errorf("alice was asked %d times", h.turns("alice"))
		}
		// The next owner finds what was left.
		h.resume(`
speakers:
  lead:
    - say: x
scenes:
  - cue: 'Stuck|end again'
    who: [lead]
    turns:
      - do: [{spawn_teammate: {name: bob, role: coder, prompt: Go on.}}]
      - do: [{wait: {}}]
      - say: Now done.
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`, nil).ends(0, 5*time.Minute)
		if !strings.Contains(h.said("bob"), "half.txt") {
			t.Error("bob was not told of what alice left in the lane")
		}
		if files := h.onTarget(); files != "half.txt" {
			t.Errorf("the target has %q", files)
		}
	})
}

// Mail that waits for an idle member is work: the run does not end over it.
func TestMailIsWorkForTheEnd(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: bob, role: coder, prompt: Wait.}}]
    - do: [{wait: {}}]
    - do: [{send_message: {to: bob, content: one more thing}}]
    - say: Over.
  bob:
    - say: Ready.
    - say: I read it.
`, nil).ends(0, 5*time.Minute)
		h.heard("bob", "one more thing", 1)
		h.heard("bob", "I read it.", 1)
	})
}
