package team_test

import (
	"context"
	"os/exec"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// ask asks a member to shut down, as another process would.
func (o other) ask(t *testing.T, name muster.Name, change func(*muster.Request)) muster.RequestID {
	t.Helper()
	q := muster.Request{Kind: muster.AskShutdown, From: muster.User, To: name, Reason: "enough"}
	if change != nil {
		change(&q)
	}
	q, err := o.requests.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return q.ID
}

const longTalk = `
speakers:
  lead:
    - do: [{spawn_teammate: {name: bob, role: slow, prompt: Think.}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  bob:
    - wait: 4m
      do: [{glob: {pattern: "*"}}]
    - say: Bye.
`

// An idle member is stopped at once, and its model is not asked.
func TestShutdownOfAnIdleMember(t *testing.T) {
	t.Parallel()
	for _, force := range []bool{false, true} {
		bubble(t, func(h *house) {
			r := h.start(longTalk, nil)
			h.until("idle", is(journal.MemberIdle, "alice"))
			synctest.Wait()
			turns, at := h.turns("alice"), time.Now()
			id := h.ask(t, "alice", func(q *muster.Request) { q.Force = force })
			synctest.Wait()
			if m := h.member("alice"); m.Status != muster.Shutdown || h.turns("alice") != turns || time.Since(at) > time.Second {
				t.Errorf("alice is %s after %v and %d turns more\n%s", m.Status, time.Since(at), h.turns("alice")-turns, h.tail())
			}
			if q, _ := h.requests.Get(h.Context(), id); q.Status != muster.RequestApproved {
				t.Errorf("the request is %s", q.Status)
			}
			r.ends(0, time.Hour)
		})
	}
}

// A working member is asked at its next boundary; its refusal ends that request; the next it grants, and its task goes back.
func TestShutdownOfAWorkingMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{request_shutdown: {teammate: alice, reason: enough}}]
    - do: [{wait: {}}]
    - do: [{request_shutdown: {teammate: alice, reason: really}}]
    - do: [{wait: {}}]
    - say: Left.
    - say: Left.
  alice:
    - do: [{write_file: {path: half, content: x}}, {send_message: {to: lead, content: half}}]
    - wait: 20s
      do: [{glob: {pattern: "*"}}]
    - do: [{respond_shutdown: {request_id: "${request}", approve: false, reason: nearly done}}]
    - wait: 20s
      do: [{glob: {pattern: "*"}}]
    - do: [{respond_shutdown: {request_id: "${request}", approve: true}}]
    - say: Never said.
`, nil)
		r.ends(3, time.Hour)
		h.heard("lead", "nearly done", 1)
		h.heard("alice", "Never said.", 0)
		if got := h.task(1); got.Status != muster.Pending || got.Attempts != 0 || got.Worktree == "" {
			t.Errorf("%+v", got)
		}
		if n := h.count(func(e muster.Event) bool { return e.Kind == journal.RequestDecided }); n != 2 {
			t.Errorf("%d were decided", n)
		}
	})
}

// hangs never answers, and heeds only its context.
func hangs(ctx context.Context, _ int, _ llm.Request) (llm.Reply, error) {
	<-ctx.Done()
	return llm.Reply{}, context.Cause(ctx)
}

// Thirty seconds end a member whose model hangs; its task goes back, and spawned again it is not ended by the old request.
func TestShutdownDeadlineEndsAHungModel(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		s := h.scripted(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - wait: 1m # the test looks at the task before alice can claim it again
      do: [{spawn_teammate: {name: alice, role: coder, prompt: Again.}}, {wait: {}}]
    - say: Done.
`)
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
				return s.Reply(ctx, r, func(llm.Delta) {})
			},
			"alice": func(ctx context.Context, n int, r llm.Request) (llm.Reply, error) {
				switch n {
				case 0:
					return hangs(ctx, n, r)
				case 1:
					time.Sleep(40 * time.Second)
					return calls("c", "complete_task", in{"task_id": 1, "summary": "done"})
				}
				return says("Bye.")
			},
		}}
		tm := h.open(m, nil)
		r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
		h.until("claimed", is(journal.TaskClaimed, "alice"))
		synctest.Wait()
		at := time.Now()
		id := h.ask(t, "alice", nil)
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

// deaf heeds nothing at all.
func TestShutdownOfADeafMember(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		s := h.scripted(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Left.
    - say: Left.
`)
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
				return s.Reply(ctx, r, func(llm.Delta) {})
			},
			"alice": func(context.Context, int, llm.Request) (llm.Reply, error) {
				time.Sleep(4 * time.Minute)
				return says("late")
			},
		}}
		tm := h.open(m, nil)
		r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
		h.until("claimed", is(journal.TaskClaimed, "alice"))
		synctest.Wait()
		h.ask(t, "alice", func(q *muster.Request) { q.Force = true })
		r.ends(3, 2*time.Minute)
		if got := h.task(1); got.Status != muster.Pending || h.member("alice").Status != muster.Shutdown {
			t.Errorf("%+v", got)
		}
		time.Sleep(10 * time.Minute) // it comes back and finds that it is over
		synctest.Wait()
		if got := h.task(1); got.Status != muster.Pending {
			t.Errorf("%+v", got)
		}
	})
}

// A deadline in a long command: nothing of its processes is alive afterwards. With the real guard.
func TestShutdownEndsALongCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	tm, store := w.open(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Left.
    - say: Left.
  alice:
    - do: [{bash: {command: "echo x > half; (setsid sleep 61.518 &) ; sleep 61.518"}}]
`, nil)
	o := elsewhere(store)
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var sum team.Summary
	go func() {
		var err error
		sum, err = tm.Run(ctx, "g", team.Start{})
		done <- err
	}()
	w.follow(ctx, o, "the command runs", uses("alice", "bash"))
	for exec.Command("pgrep", "-f", "sleep 61.518").Run() != nil {
		if ctx.Err() != nil {
			t.Fatal("it never ran")
		}
	}
	o.ask(t, "alice", func(q *muster.Request) { q.Deadline = muster.UnixTime(time.Now().Add(100 * time.Millisecond)) })
	w.follow(ctx, o, "alice is shut down", is(journal.MemberShutdown, "alice"))
	if out, err := exec.Command("pgrep", "-fl", "sleep 61.518").Output(); err == nil {
		t.Errorf("alive: %s", out)
	}
	if err := <-done; err != nil || sum.Code != 3 {
		t.Fatalf("code %d, %v\n%s", sum.Code, err, w.tail())
	}
	if got := w.task(1); got.Status != muster.Pending || got.Worktree == "" {
		t.Errorf("%+v", got)
	}
}

// follow waits for an event of a real team.
func (w *world) follow(ctx context.Context, o other, what string, fits func(muster.Event) bool) {
	w.t.Helper()
	for e, err := range o.journal.Follow(ctx, 0) {
		if err == nil && fits(e.Event) {
			return
		}
	}
	w.t.Fatalf("it never happened: %s\n%s", what, w.tail())
}

// A shutdown that was asked of a lead that was dead already does not stop its next life.
func TestShutdownOfADeadLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(longTalk, nil)
		h.until("idle", is(journal.MemberIdle, "alice"))
		r.interrupt()
		id := h.ask(t, muster.Lead, nil)
		h.resume(longTalk, nil).ends(0, time.Hour)
		if q, _ := h.requests.Get(h.Context(), id); q.Status != muster.RequestApproved {
			t.Errorf("the request is %s", q.Status)
		}
	})
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
`+writes[1:], nil)
		inHerName := func(id muster.TaskID) muster.Task {
			got, err := h.board.Claim(h.Context(), id, board.Claim{Owner: "alice", Role: "tester"})
			if err != nil {
				t.Fatal(err)
			}
			return got
		}
		h.until("idle", is(journal.MemberIdle, "alice"))
		inHerName(1)
		h.ask(t, "alice", func(q *muster.Request) { q.Force = true })
		synctest.Wait()
		if m, got := h.member("alice"), h.task(1); m.Status != muster.Shutdown || got.Owner != "alice" {
			t.Fatalf("alice is %s, and the task is %q's", m.Status, got.Owner)
		}
		time.Sleep(time.Second)
		later := inHerName(2)
		if _, err := h.roster.Add(h.Context(), muster.Member{Name: "tess", Role: "tester", Prompt: "Test.", StartedBy: muster.User}); err != nil {
			t.Fatal(err)
		}
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
