package team_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/proc"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// writes does any task in one step.
const writes = `
scenes:
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
`+writes[1:], nil)
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

// While tasks at work could still unblock something for it, however far away, an idle member is not timed out.
func TestNoTimeoutWhileTheChainMoves(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: one, claim_role: back}
        - task_create: {subject: two, claim_role: back, blocked_by: [one]}
        - task_create: {subject: three, claim_role: front, blocked_by: [two]}
        - spawn_teammate: {name: ben, role: back, prompt: Back.}
        - spawn_teammate: {name: fay, role: front, prompt: Front.}
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - wait: 4m
        do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`, nil)
		r.ends(0, time.Hour)
		if n := h.count(func(e muster.Event) bool {
			return is(journal.MemberShutdown, "fay")(e) && e.Text("reason") == "timeout"
		}); n != 0 {
			t.Errorf("fay was timed out\n%s", h.tail())
		}
		if h.task(3).Owner != "fay" {
			t.Errorf("three is %s's", h.task(3).Owner)
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
		h.heard("bob", "half.txt", 2) // and as a file of what has landed
		if files := h.w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nhalf.txt" {
			t.Errorf("the target has %q", files)
		}
	})
}

// A question that is not answered holds the timeout off; a lead that ignores it is told that nothing else can move.
func TestUnansweredQuestion(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{wait: {}}]
      until: waits for an answer of lead
    - do: [{send_message: {to: alice, content: The second.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice:
    - do: [{send_message: {to: lead, content: "Which of the two?"}}]
    - say: Waiting.
scenes:
  - cue: The second
    who: [alice]
    turns:
      - do: [{complete_task: {task_id: 1, summary: the second}}]
`, nil)
		r.ends(0, 30*time.Minute)
		h.heard("lead", "waits for an answer of lead", 1)
		h.heard("alice", "is still yours", 0)
		if m := h.member("alice"); m.Extra["asked"] != nil {
			t.Errorf("alice still asks: %s", m.Extra["asked"])
		}
	})
}

func TestNoTimeoutWhileTheUserIsAsked(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
  alice:
    - do: [{send_message: {to: user, content: 两个里选哪个？}}]
    - say: Waiting.
scenes:
  - cue: The second
    who: [alice]
    turns: [{do: [{complete_task: {task_id: 1, summary: x}}]}]
`, nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		time.Sleep(3 * time.Hour)
		synctest.Wait()
		if m := h.member("alice"); m.Status != muster.Idle || m.IdleReason != muster.IdleMessages {
			t.Fatalf("alice is %s (%s)", m.Status, m.IdleReason)
		}
		if _, err := h.post.Send(h.Context(), muster.Message{From: muster.User, To: "alice", Content: "The second."}); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Minute)
	})
}

// A ready task is not offered again and again to an idle owner that cannot take it.
func TestBusyIdleOwnerDoesNotSpin(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{task_create: {subject: two}}, {wait: {}}]
    - say: Left.
    - say: Left.
  alice:
    - say: Nothing.
    - say: Nothing.
`, nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		synctest.Wait() // it would never return while somebody turns in circles
		r.ends(3, 5*time.Minute)
	})
}

// Mail comes before the board, a member that wakes early is told who it is, and roles do not care for case.
func TestMailBeforeBoardAndIdentity(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: Coder, prompt: Wait.}}, {spawn_teammate: {name: bob, role: x, prompt: Wait.}}]
    - do: [{task_create: {subject: later, claim_role: tester}}, {wait: {}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  bob:
    - wait: 2m
      do: [{glob: {pattern: "*"}}]
    - say: Slow.
  alice:
    - say: Ready.
    - say: Read.
`+writes[1:], nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		synctest.Wait()
		h.heard("lead", "Nobody may take what is ready: task #1 is for a tester", 1)
		role := "CODER"
		if _, err := h.post.Send(h.Context(), muster.Message{From: muster.User, To: "alice", Content: "a word first"}); err != nil {
			t.Fatal(err)
		}
		if _, err := h.board.Update(h.Context(), 1, board.Patch{Role: &role}); err != nil {
			t.Fatal(err)
		}
		r.ends(0, 5*time.Minute)
		said := h.said("alice")
		if strings.Index(said, "a word first") > strings.Index(said, "Task #1: later") {
			t.Errorf("the task came before the mail\n%s", said)
		}
		h.heard("alice", "<identity>", 2)
		if h.task(1).Owner != "alice" {
			t.Errorf("the task is %s's", h.task(1).Owner)
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

// k ready tasks wake k members, and a member alone does one after the other.
func TestOneAfterTheOther(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		creates := ""
		for i := range 5 {
			creates += fmt.Sprintf("        - task_create: {subject: t%d, priority: %d}\n", i, i)
		}
		sum := h.start("speakers:\n  lead:\n    - do:\n"+creates+`        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
    - do: [{wait: {}}]
    - say: Done.
`+writes[1:], func(c *team.Config) { c.Teammates = 1 }).ends(0, 5*time.Minute)
		last := -1
		for i := range 5 {
			at := -1
			for j, e := range h.events() {
				if e.Kind == journal.TaskClaimed && e.Task == muster.TaskID(5-i) {
					at = j
				}
			}
			if at < last {
				t.Errorf("the order is not by priority\n%s", h.tail())
			}
			last = at
		}
		if len(sum.Tasks) != 5 || h.turns("alice") != 10 {
			t.Errorf("%d tasks in %d turns", len(sum.Tasks), h.turns("alice"))
		}
	})
}

// To make a task's lane takes long: its owner is at work meanwhile, and a lead that looks is not told that it rests.
func TestAnOwnerWhoseLaneIsBeingMadeWorks(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		s := &sim{T: h.T, root: h.w.root, base: h.store}
		s.calm.Store(true)
		s.meadow = newMeadow(s, s.root)
		s.meadow.making = 5 * time.Minute
		c := s.config(h.store.Handle())
		m := h.scripted(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - do: [{task_create: {subject: one}}]
    - do: [{wait: {}}]
    - say: Done.
` + writes[1:])
		c.Limits.IdleTimeout, c.Model = -1, func(string) (llm.Model, error) { return m, nil }
		tm, err := s.open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		tm.Launch(func(context.Context) (proc.Launcher, error) { return &shell{}, nil })
		h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(0, time.Hour)
		h.heard("lead", "who is idle", 0)
	})
}
