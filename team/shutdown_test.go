package team_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
	"muster/journal"
	"muster/llm"
)

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
			got, err := h.board.Claim(h.Context(), id, board.Claim{Owner: "alice", Role: "tester"})
			if err != nil {
				t.Fatal(err)
			}
			return got
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
		if _, err := h.board.Complete(h.Context(), 2, later.Fence, board.Outcome{}); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Hour)
	})
}
