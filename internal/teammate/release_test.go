package teammate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/requests"
)

// askPlan asks for the approval of a plan for the member's task.
func (l *life) askPlan() muster.RequestID {
	l.Helper()
	task := l.current()
	r, err := l.world.Requests.Ask(l.Context(), muster.Request{Kind: muster.AskPlan, From: l.name(), To: muster.Lead,
		Plan: "Rewrite it.", PlanHash: requests.PlanHash("Rewrite it."), TaskID: task.ID, Fence: task.Fence})
	l.must(err)
	return r.ID
}

// beginLanding makes a claimed task one whose landing has begun.
func (l *life) beginLanding(task muster.Task) {
	l.Helper()
	_, err := l.world.Board.BeginLanding(l.Context(), task.ID, task.Fence, muster.PendingLanding{Head: "head"})
	l.must(err)
}

// giveAway claims a task for bob, in a lane of his own.
func (l *life) giveAway(task muster.Task) {
	l.Helper()
	l.revoke(task, true)
	_, err := l.world.Board.SetLane(l.Context(), task.ID, l.task(task.ID).Fence, "bobs-lane", "base")
	l.must(err)
}

// state describes task 1 and what the member has of it. What is as it should be at the end is left out.
func (l *life) state() string {
	l.Helper()
	var s []string
	if l.current().ID != 0 {
		s = append(s, "in hand")
	}
	switch task, err := l.world.Board.Get(l.Context(), 1); {
	case errors.Is(err, muster.ErrNotFound):
		s = append(s, "deleted")
	default:
		l.must(err)
		s = append(s, fmt.Sprintf("%q's, %d attempts", task.Owner, task.Attempts))
	}
	if n := l.jobs.Running(); n > 0 {
		s = append(s, fmt.Sprint(n, " jobs"))
	}
	for name := range l.rows.rows {
		if who := l.rows.occupant(name); who.Member != "" {
			s = append(s, fmt.Sprintf("%s in %s", who.Member, name))
		}
	}
	if len(l.rows.archived) > 0 {
		s = append(s, fmt.Sprint("archived ", l.rows.archived))
	}
	if n := len(l.waiting()); n > 0 {
		s = append(s, fmt.Sprint(n, " plans wait"))
	}
	if !l.phase.get().over {
		s = append(s, "goes on")
	}
	return strings.Join(s, ", ")
}

func (l *life) isIn(what, want string) {
	l.Helper()
	if got := l.state(); got != want {
		l.Errorf("%s: %s; want %s", what, got, want)
	}
}

// inLane is the state of a member that works on its task.
const inLane = `in hand, "alice"'s, 0 attempts, alice in task-1-the-parser, goes on`

// Who gives a task back has nothing running in its lane and has left it before the task is on the board again; its plan
// is no longer to be decided. The phase of a teammate ends with its task; the lead goes on.
func TestReleaseGivesBackTheTask(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	p.startJob()
	p.askPlan()
	p.must(p.claims.Release(t.Context(), task.ID, "I cannot"))
	p.isIn("released", `""'s, 1 attempts`)
	if now := p.task(task.ID); now.Note != "I cannot" || now.Worktree != task.Worktree || p.landings.revoked != 0 ||
		!slices.Equal(p.rows.released, []muster.Name{task.Worktree}) {
		t.Errorf("the task is %+v; released are %v, revoked %d", now, p.rows.released, p.landings.revoked)
	}
	p = newParts(t, muster.Lead)
	p.must(p.claims.Release(t.Context(), p.claim().ID, "I cannot"))
	p.isIn("by the lead", `""'s, 1 attempts, goes on`)
	p = newParts(t, "alice")
	p.claims.setTask(p.claimOnBoard("alice")) // which has no lane
	p.must(p.claims.release(t.Context(), "shutdown", "", false))
	p.isIn("without a lane", `""'s, 0 attempts, goes on`)
	p.must(p.claims.release(t.Context(), "without one", "", false))
}

// Only the task in hand can be given back.
func TestReleaseOfATaskThatIsNotInHand(t *testing.T) {
	p := newParts(t, "alice")
	p.wants("none", p.claims.Release(t.Context(), 1, ""), muster.ErrInvalid)
	task := p.claim()
	p.wants("another", p.claims.Release(t.Context(), task.ID+1, ""), muster.ErrInvalid)
	p.isIn("another", inLane)
}

// A landing that has begun is cancelled before the task goes to the next owner. When it cannot be, the task stays; when
// the work has landed, the task is completed and only a tool call is told so.
func TestReleaseCancelsTheLanding(t *testing.T) {
	held, fenced := muster.Errorf(muster.Held, "it has landed"), muster.Errorf(muster.Fenced, "it was taken")
	for _, c := range []struct {
		name          string
		revoke        error
		tool, release error
		toolState     string
	}{
		{"cancelled", nil, nil, nil, `""'s, 1 attempts`},
		{"landed meanwhile", held, muster.ErrHeld, nil, `"alice"'s, 0 attempts`},
		{"unknown", errDisk, errDisk, errDisk, `"alice"'s, 0 attempts, goes on`},
		{"lost meanwhile", fenced, nil, nil, `"alice"'s, 0 attempts`},
	} {
		for _, byTool := range []bool{true, false} {
			p := newParts(t, "alice")
			task := p.claim()
			p.beginLanding(task)
			p.landings.revokeErr = c.revoke
			if byTool {
				p.wants(c.name, p.claims.Release(t.Context(), task.ID, ""), c.tool)
				p.isIn(c.name, c.toolState)
			} else {
				p.wants(c.name, p.claims.release(t.Context(), "limit", "", true), c.release)
				p.isIn(c.name, strings.TrimSuffix(c.toolState, ", goes on")+", goes on")
			}
			if p.landings.revoked != 1 {
				t.Errorf("%s: revoked %d times", c.name, p.landings.revoked)
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
	p.isIn("taken", `"bob"'s, 0 attempts`)
	failEach(t, func(p *life) { p.claim(); p.askPlan() }, func(p *life) error {
		return p.claims.Release(p.Context(), 1, "")
	})
	p = newParts(t, "alice")
	p.claim()
	p.rows.fail["release"] = errDisk
	p.wants("the lane", p.claims.release(t.Context(), "", "", false), errDisk)
	p.isIn("the lane", `"alice"'s, 0 attempts, goes on`)
	p = newParts(t, "alice")
	delete(p.rows.rows, p.claim().Worktree)
	p.rows.fail["release"] = muster.Errorf(muster.NotFound, "there is no such lane")
	p.must(p.claims.release(t.Context(), "", "", false))
	p.isIn("no lane", `""'s, 0 attempts, goes on`)
}

// A claim holds as long as the board says so, and its owner sees the task as it is now. Who has lost its claim has
// nothing running in the lane, no task, and no plan that waits. The lane is the next owner's if the task still names it,
// and is archived if not.
func TestAClaimIsChecked(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *life, task muster.Task) error
		want   error
		says   string
		state  string
	}{
		{"untouched", func(*life, muster.Task) error { return nil }, nil, "",
			`in hand, "alice"'s, 0 attempts, 1 jobs, alice in task-1-the-parser, 1 plans wait, goes on`},
		{"deleted", func(p *life, task muster.Task) error { return p.Board.Delete(t.Context(), task.ID, true) },
			muster.ErrNotFound, "was deleted", "deleted, archived [task-1-the-parser]"},
		{"completed in her name", func(p *life, task muster.Task) error {
			_, err := p.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{})
			return err
		}, muster.ErrFenced, "is completed", `"alice"'s, 0 attempts`},
		{"taken", func(p *life, task muster.Task) error { p.revoke(task, true); return nil }, muster.ErrFenced, "was taken",
			`"bob"'s, 0 attempts`},
		{"in another lane by now", func(p *life, task muster.Task) error { p.giveAway(task); return nil }, muster.ErrFenced,
			"was taken", `"bob"'s, 0 attempts, archived [task-1-the-parser]`},
		{"given back in her name", func(p *life, task muster.Task) error {
			_, err := p.Board.Release(t.Context(), task.ID, task.Fence, board.Release{})
			return err
		}, muster.ErrFenced, "was taken", `""'s, 0 attempts`},
		{"claimed anew in her name", func(p *life, task muster.Task) error {
			p.revoke(task, false)
			_, err := p.Board.Claim(t.Context(), task.ID, board.Claim{Owner: "alice", Role: "coder"})
			return err
		}, muster.ErrFenced, "was taken", `"alice"'s, 0 attempts`},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		p.startJob()
		p.askPlan()
		p.must(c.change(p, task))
		err := p.claims.check(t.Context())
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.says) || p.current().ID != task.ID {
			t.Errorf("%s: %v; she has task %d", c.name, err, p.current().ID)
		}
		p.wants(c.name, p.claims.verify(t.Context()), c.want)
		p.isIn(c.name, c.state)
	}
	p := newParts(t, "alice")
	p.must(p.claims.check(t.Context()))
	task, subject := p.claim(), "the lexer"
	_, err := p.Board.Update(t.Context(), task.ID, board.Patch{Subject: &subject})
	p.must(err)
	p.must(p.claims.check(t.Context()))
	if f, err := p.idle.facts(t.Context()); err != nil || f.Claim != Presented || p.current().Subject != subject {
		t.Errorf("she knows it as %q, and the facts are %+v: %v", p.current().Subject, f, err)
	}
	failEach(t, func(p *life) { p.claim() }, func(p *life) error { return p.claims.verify(p.Context()) })
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
	p.giveAway(task)
	p.wants("no lane", p.claims.verify(t.Context()), muster.ErrFenced)
	if p.isIn("no lane", `"bob"'s, 0 attempts`); strings.Contains(p.logged.String(), "error dropped") {
		t.Error(&p.logged)
	}
}

// A landing that is refused though the claim stands was cancelled by somebody who died before the claim was revoked: the
// task goes back, and that is no attempt. Where only the lane or the target is missing, the claim stands.
func TestALandingWhoseRightWasTaken(t *testing.T) {
	fenced := muster.Errorf(muster.Fenced, "its right to land was taken")
	for _, c := range []struct {
		err   error
		state string
	}{{fenced, `""'s, 0 attempts`}, {muster.Errorf(muster.NotFound, "the target branch is gone"), inLane}, {errTest, inLane}} {
		p := newParts(t, "alice")
		p.claim()
		p.wants("what is returned", p.claims.onClaimLost(t.Context(), c.err), c.err)
		p.isIn(c.err.Error(), c.state)
	}
	p := newParts(t, "alice")
	p.claim()
	p.rows.fail["release"] = errDisk
	p.wants("the disk", p.claims.onClaimLost(t.Context(), fenced), errDisk)
}
