package teammate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/requests"
	"muster/internal/worktree"
)

// askPlan asks for the approval of a plan for the member's task.
func (p *life) askPlan() muster.RequestID {
	p.Helper()
	task := p.current()
	r, err := p.Requests.Ask(p.Context(), muster.Request{Kind: muster.AskPlan, From: p.name(), To: muster.Lead,
		Plan: "Rewrite it.", PlanHash: requests.PlanHash("Rewrite it."), TaskID: task.ID, Fence: task.Fence})
	p.must(err)
	return r.ID
}

// beginLanding makes a claimed task one whose landing has begun.
func (p *life) beginLanding(task muster.Task) {
	p.Helper()
	_, err := p.Board.BeginLanding(p.Context(), task.ID, task.Fence, muster.PendingLanding{Head: "head"})
	p.must(err)
}

// Who gives a task back has nothing running in its lane and has left it before the task is on the board again; its plan
// is no longer to be decided.
func TestReleaseGivesBackTheTask(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	p.startJob()
	plan := p.askPlan()
	p.must(p.claims.Release(t.Context(), task.ID, "I cannot"))
	if now := p.task(task.ID); now.Owner != "" || now.Attempts != 1 || now.Note != "I cannot" ||
		now.Worktree != task.Worktree {
		t.Errorf("the task is %+v", now)
	}
	if p.jobs.Running() != 0 || p.rows.occupant(task.Worktree) != (worktree.Occupant{}) || p.current().ID != 0 {
		t.Errorf("%d jobs run, %+v works in the lane, she has task %d", p.jobs.Running(),
			p.rows.occupant(task.Worktree), p.current().ID)
	}
	if !slices.Equal(p.rows.released, []muster.Name{task.Worktree}) {
		t.Errorf("nobody asks to keep %v any more", p.rows.released)
	}
	if r, err := p.Requests.Get(t.Context(), plan); err != nil || r.Status != muster.RequestCancelled {
		t.Errorf("the plan is %s: %v", r.Status, err)
	}
	if p.landings.revoked != 0 || !p.phase.get().over {
		t.Error("a landing was revoked, or the phase goes on")
	}
	p = newParts(t, muster.Lead)
	if p.must(p.claims.Release(t.Context(), p.claim().ID, "I cannot")); p.phase.get().over {
		t.Error("the lead's phase does not end with a task")
	}
}

// Only the task in hand can be given back.
func TestReleaseOfATaskThatIsNotInHand(t *testing.T) {
	p := newParts(t, "alice")
	p.wants("none", p.claims.Release(t.Context(), 1, ""), muster.ErrInvalid)
	task := p.claim()
	p.wants("another", p.claims.Release(t.Context(), task.ID+1, ""), muster.ErrInvalid)
	if p.phase.get().over || p.current().ID != task.ID || p.task(task.ID).Owner != "alice" {
		t.Error("the task in hand is no longer hers")
	}
	p.must(p.claims.release(t.Context(), "done", "", false))
	p.must(p.claims.release(t.Context(), "without one", "", false))
	p = newParts(t, "alice")
	p.claims.setTask(p.claimOnBoard("alice")) // which has no lane
	p.must(p.claims.release(t.Context(), "shutdown", "", false))
	if now := p.task(1); now.Owner != "" || now.Attempts != 0 || len(p.rows.released) > 0 {
		t.Errorf("the task is %+v; released are %q", now, p.rows.released)
	}
}

// A landing that has begun is cancelled before the task goes to the next owner. When it cannot be, the task stays; when
// the work has landed, the task is completed and only a tool call is told so.
func TestReleaseCancelsTheLanding(t *testing.T) {
	for _, c := range []struct {
		name          string
		revoke        error
		tool, release error
		owner         muster.Name
	}{
		{"cancelled", nil, nil, nil, ""},
		{"landed meanwhile", muster.Errorf(muster.Held, "it has landed"), muster.ErrHeld, nil, "alice"},
		{"unknown", errDisk, errDisk, errDisk, "alice"},
		{"lost meanwhile", muster.Errorf(muster.Fenced, "it was taken"), nil, nil, "alice"},
	} {
		for _, byTool := range []bool{true, false} {
			p := newParts(t, "alice")
			task := p.claim()
			p.beginLanding(task)
			p.landings.revokeErr = c.revoke
			var err error
			want := c.release
			if byTool {
				err, want = p.claims.Release(t.Context(), task.ID, ""), c.tool
			} else {
				err = p.claims.release(t.Context(), "limit", "", true)
			}
			if over := p.phase.get().over; over != (byTool && c.name != "unknown") {
				t.Errorf("%s: the phase is over: %v", c.name, over)
			}
			if !errors.Is(err, want) || p.landings.revoked != 1 || p.current().ID != 0 {
				t.Errorf("%s: %v, want %v; revoked %d times", c.name, err, want, p.landings.revoked)
			}
			if now := p.task(task.ID); now.Owner != c.owner {
				t.Errorf("%s: the task is %q's", c.name, now.Owner)
			}
		}
	}
	p := newParts(t, "alice") // the landing is the next owner's: nothing of hers is under way
	task := p.claim()
	p.revoke(task, true)
	p.beginLanding(p.task(task.ID))
	if err := p.claims.release(t.Context(), "limit", "", true); err != nil || p.landings.revoked != 0 {
		t.Errorf("%v; revoked %d times", err, p.landings.revoked)
	}
}

// A task that was taken away or deleted needs no giving back; all other errors are the caller's to know.
func TestReleaseHidesNoError(t *testing.T) {
	p := newParts(t, "alice")
	p.revoke(p.claim(), true)
	p.must(p.claims.Release(t.Context(), 1, ""))
	if p.task(1).Owner != "bob" {
		t.Errorf("it is %q's", p.task(1).Owner)
	}
	failEach(t, func(p *life) { p.claim(); p.askPlan() }, func(p *life) error {
		return p.claims.Release(p.Context(), 1, "")
	})
	p = newParts(t, "alice")
	task := p.claim()
	p.rows.fail["release"] = errDisk
	p.wants("the lane", p.claims.release(t.Context(), "", "", false), errDisk)
	if p.task(task.ID).Owner != "alice" || p.current().ID != 0 {
		t.Errorf("it is %q's, and she has task %d", p.task(task.ID).Owner, p.current().ID)
	}
	p = newParts(t, "alice")
	task = p.claim()
	delete(p.rows.rows, task.Worktree)
	p.rows.fail["release"] = muster.Errorf(muster.NotFound, "there is no such lane")
	if p.must(p.claims.release(t.Context(), "", "", false)); p.task(task.ID).Owner != "" {
		t.Errorf("its lane is gone, and it is still %q's", p.task(task.ID).Owner)
	}
}

// A claim holds as long as the board says so, and its owner sees the task as it is now.
func TestAClaimIsChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *life, task muster.Task)
		want   error
		says   string
	}{
		{"untouched", func(*life, muster.Task) {}, nil, ""},
		{"deleted", func(p *life, task muster.Task) { p.must(p.Board.Delete(t.Context(), task.ID, true)) },
			muster.ErrNotFound, "was deleted"},
		{"completed in her name", func(p *life, task muster.Task) {
			_, err := p.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{})
			p.must(err)
		}, muster.ErrFenced, "is completed"},
		{"taken", func(p *life, task muster.Task) { p.revoke(task, true) }, muster.ErrFenced, "was taken"},
		{"given back in her name", func(p *life, task muster.Task) {
			_, err := p.Board.Release(t.Context(), task.ID, task.Fence, board.Release{})
			p.must(err)
		}, muster.ErrFenced, "was taken"},
		{"claimed anew in her name", func(p *life, task muster.Task) {
			p.revoke(task, false)
			_, err := p.Board.Claim(t.Context(), task.ID, board.Claim{Owner: "alice", Role: "coder"})
			p.must(err)
		}, muster.ErrFenced, "was taken"},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		c.change(p, task)
		err := p.claims.check(t.Context())
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if p.current().ID != task.ID {
			t.Errorf("%s: a check alone drops nothing", c.name)
		}
		p.wants(c.name, p.claims.verify(t.Context()), c.want)
		if (p.current().ID == 0) != (c.want != nil) {
			t.Errorf("%s: she has task %d", c.name, p.current().ID)
		}
	}
	p := newParts(t, "alice")
	p.must(p.claims.check(t.Context()))
	task, subject := p.claim(), "the lexer"
	_, err := p.Board.Update(t.Context(), task.ID, board.Patch{Subject: &subject})
	p.must(err)
	if p.must(p.claims.check(t.Context())); p.current().Subject != subject {
		t.Errorf("she knows it as %q", p.current().Subject)
	}
	if f, err := p.idle.facts(t.Context()); err != nil || f.Claim != Presented {
		t.Errorf("she has read it before, and the facts are %+v: %v", f, err)
	}
	failEach(t, func(p *life) { p.claim() }, func(p *life) error { return p.claims.verify(p.Context()) })
}

// Who has lost its claim has nothing running in the lane, and has no task. The lane is the next owner's if the task
// still names it, and is archived if not.
func TestALostClaimIsDropped(t *testing.T) {
	for _, c := range []struct {
		name     string
		lose     func(p *life, task muster.Task)
		archived bool
	}{
		{"revoked", func(p *life, task muster.Task) { p.revoke(task, false) }, false},
		{"deleted", func(p *life, task muster.Task) { p.must(p.Board.Delete(t.Context(), task.ID, true)) }, true},
		{"in another lane by now", func(p *life, task muster.Task) {
			p.revoke(task, true)
			_, err := p.Board.SetLane(t.Context(), task.ID, p.task(task.ID).Fence, "bobs-lane", "base")
			p.must(err)
		}, true},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		p.startJob()
		plan := p.askPlan()
		c.lose(p, task)
		err := p.claims.verify(t.Context())
		if !isLostClaim(err) || p.current().ID != 0 || p.jobs.Running() != 0 || !p.phase.get().over {
			t.Errorf("%s: %v; she has task %d, %d jobs run", c.name, err, p.current().ID, p.jobs.Running())
		}
		if archived := slices.Equal(p.rows.archived, []muster.Name{task.Worktree}); archived != c.archived {
			t.Errorf("%s: archived are %v", c.name, p.rows.archived)
		}
		if who := p.rows.occupant(task.Worktree); who != (worktree.Occupant{}) {
			t.Errorf("%s: %+v works in the lane", c.name, who)
		}
		if r, err := p.Requests.Get(t.Context(), plan); err != nil || r.Status != muster.RequestCancelled {
			t.Errorf("%s: the plan is %s: %v", c.name, r.Status, err)
		}
	}
}

// A claim that is lost before it had a lane, or that somebody has dropped already, leaves nothing to clear up.
func TestALostClaimWithoutALane(t *testing.T) {
	p := newParts(t, "alice")
	lost := muster.Errorf(muster.Fenced, "it was taken")
	p.startJob()
	p.wants("none", p.claims.onClaimLost(t.Context(), lost), lost)
	if p.jobs.Running() != 0 || !p.phase.get().over {
		t.Error("she goes on")
	}
	task := p.claimOnBoard("alice")
	p.claims.setTask(task)
	p.revoke(task, true)
	_, err := p.Board.SetLane(t.Context(), task.ID, p.task(task.ID).Fence, "bobs-lane", "base")
	p.must(err)
	p.wants("no lane", p.claims.verify(t.Context()), muster.ErrFenced)
	if p.current().ID != 0 || p.logged.Len() > 0 && strings.Contains(p.logged.String(), "error dropped") {
		t.Errorf("she has task %d; %s", p.current().ID, &p.logged)
	}
	other := errors.New("something else")
	p.claim()
	if err := p.claims.onClaimLost(t.Context(), other); !errors.Is(err, other) || p.current().ID == 0 {
		t.Errorf("%v; she has task %d", err, p.current().ID)
	}
}

// A landing that is refused though the claim stands was cancelled by somebody who died before the claim was revoked: the
// task goes back, and that is no attempt. Where only the lane or the target is missing, the claim stands.
func TestALandingWhoseRightWasTaken(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	fenced := muster.Errorf(muster.Fenced, "its right to land was taken")
	p.wants("fenced", p.claims.onClaimLost(t.Context(), fenced), muster.ErrFenced)
	if now := p.task(task.ID); now.Owner != "" || now.Attempts != 0 || p.current().ID != 0 || !p.phase.get().over {
		t.Errorf("the task is %+v; she has task %d", now, p.current().ID)
	}
	p = newParts(t, "alice")
	p.claim()
	missing := muster.Errorf(muster.NotFound, "the target branch is gone")
	p.wants("missing", p.claims.onClaimLost(t.Context(), missing), muster.ErrNotFound)
	if p.task(1).Owner != "alice" || p.current().ID != 1 || p.phase.get().over {
		t.Errorf("it is %q's, and she has task %d", p.task(1).Owner, p.current().ID)
	}
	p = newParts(t, "alice")
	p.claim()
	p.rows.fail["release"] = errDisk
	p.wants("the disk", p.claims.onClaimLost(t.Context(), fenced), errDisk)
}
