package teammate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/roles"
	"muster/internal/worktree"
)

// A member that starts again has the task that its dead process had claimed, and is the occupant of its lane again. A
// lane in which an earlier owner still lives is left to them.
func TestAClaimIsFoundAgain(t *testing.T) {
	for _, isTaken := range []bool{false, true} {
		p, task := inherited(t)
		p.claimOnBoard("bob")
		if isTaken {
			p.rows.put(p.rows.rows["old"], p.bobsOccupant())
		}
		p.must(p.claims.find(t.Context()))
		got, lane := p.current(), p.task(task.ID).Worktree
		if got.ID != task.ID || got.Fence != task.Fence || got.Worktree != lane || (lane == "old") == isTaken {
			t.Errorf("taken %v: she has task %d in %s, and it is in %s", isTaken, got.ID, got.Worktree, lane)
		}
		if who := p.rows.occupant(lane); who != p.lanes.occupant() {
			t.Errorf("taken %v: %+v works in it", isTaken, who)
		}
		if who := p.rows.occupant("old"); isTaken && who != p.bobsOccupant() {
			t.Errorf("%+v works in the old one", who)
		}
	}
}

// A task whose lane is gone, or that has none yet, is found all the same; what cannot be read is an error.
func TestAClaimIsFoundWithoutItsLane(t *testing.T) {
	p, task := inherited(t)
	delete(p.rows.rows, "old")
	p.must(p.claims.find(t.Context()))
	if got := p.current(); got.ID != task.ID || p.task(task.ID).Owner != "alice" {
		t.Errorf("she has task %d", got.ID)
	}
	p = newParts(t, "alice")
	p.claimOnBoard("alice")
	p.must(p.claims.find(t.Context()))
	if got := p.current(); got.ID != 1 || len(p.rows.rows) > 0 {
		t.Errorf("she has task %d, and lanes are %v", got.ID, p.rows.rows)
	}
	p, _ = inherited(t)
	p.rows.fail["get"] = errDisk
	p.wants("the index cannot be read", p.claims.find(t.Context()), errDisk)
}

// Whoever looks at a member that claims sees it at work on the task before the lane is made, which may take long.
func TestAClaimShowsBeforeTheLaneIsMade(t *testing.T) {
	p := newParts(t, "alice")
	p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
	task, made := p.create(board.Draft{}), false
	p.rows.onMake = func(muster.Name) {
		made = true
		if m := p.me(); m.Status != muster.Working || m.Task != task.ID {
			t.Errorf("she is %s, with task %d", m.Status, m.Task)
		}
	}
	text, key, err := p.claims.nextTask(t.Context())
	if err != nil || !made || key != claimKey(p.current()) || !strings.Contains(text, "Task #1: the parser") {
		t.Errorf("%q, %s: %v", text, key, err)
	}
	if got := p.current(); got.Worktree == "" || got.Worktree != p.task(task.ID).Worktree {
		t.Errorf("she has it in %q", got.Worktree)
	}
}

// orMailed returns the error of the store where a claim has failed without it: then the task went back, and the lead
// knows.
func orMailed(p *life, err error) error {
	if mail := p.leadMail(); errors.Is(err, muster.ErrUnavailable) || len(mail) == 0 ||
		!strings.Contains(mail[0].Content, "the disk is gone") {
		return err
	}
	return errDisk
}

// A member takes no task while it has one, reads the text of a task once, and takes none when there is none. No error of
// the store is taken for the answer that there is none.
func TestTheNextTask(t *testing.T) {
	p := newParts(t, "alice")
	if text, key, err := p.claims.nextTask(t.Context()); text != "" || key != "" || err != nil || len(p.rows.rows) > 0 {
		t.Errorf("without a task: %q, %q, %v, and lanes are %v", text, key, err, p.rows.rows)
	}
	p.create(board.Draft{})
	p.create(board.Draft{})
	for range 2 { // its text is not said yet
		if text, _, err := p.claims.nextTask(t.Context()); err != nil || text == "" || p.current().ID != 1 {
			t.Fatalf("task %d: %q, %v", p.current().ID, text, err)
		}
	}
	for _, want := range []bool{true, false} {
		if begun, err := p.idle.beginTask(t.Context()); begun != want || err != nil || !strings.Contains(p.said(), "the parser") {
			t.Errorf("begun %v, %v; she reads %s", begun, err, p.said())
		}
	}
	if f, err := p.idle.facts(t.Context()); err != nil || f.Claim != Presented || !f.TriedTask || p.task(2).Owner != "" {
		t.Errorf("%+v: %v", f, err)
	}
	failEach(t, func(p *life) { p.create(board.Draft{}) }, func(p *life) error {
		_, err := p.idle.beginTask(p.Context())
		return orMailed(p, err)
	})
	p = newParts(t, "alice")
	p.create(board.Draft{})
	p.runErr = errDisk
	_, _, err := p.claims.nextTask(t.Context())
	p.wants("the run cannot be read", err, errDisk)
}

// A role that only reads takes no task by itself but those that ask for it.
func TestAReaderTakesOnlyItsOwnTasks(t *testing.T) {
	p := newParts(t, "alice")
	p.change("alice", func(m *muster.Member) { m.Role = "reviewer" })
	p.config.Roles = roles.Find(nil)
	p.reopen(p.world.Store)
	p.create(board.Draft{})
	if text, _, err := p.claims.nextTask(t.Context()); text != "" || err != nil || p.task(1).Owner != "" {
		t.Errorf("%q, %v; the task is %q's", text, err, p.task(1).Owner)
	}
	p.create(board.Draft{Role: "reviewer"})
	if _, _, err := p.claims.nextTask(t.Context()); err != nil || p.current().ID != 2 {
		t.Errorf("she has task %d: %v", p.current().ID, err)
	}
}

// A member that another process hosts by now, or whose task is taken in the meantime, has nothing to begin.
func TestATaskThatIsLostMeanwhileIsNotBegun(t *testing.T) {
	for name, lose := range map[string]func(p *life){
		"taken over": func(p *life) { p.rehost() },
		"revoked":    func(p *life) { p.rows.onMake = func(muster.Name) { p.revoke(p.task(1), true) } },
		"deleted":    func(p *life) { p.rows.onMake = func(muster.Name) { p.must(p.Board.Delete(t.Context(), 1, true)) } },
	} {
		p := newParts(t, "alice")
		p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
		p.create(board.Draft{})
		lose(p)
		text, _, err := p.claims.nextTask(t.Context())
		if text != "" || err != nil || name != "taken over" && p.current().ID != 0 {
			t.Errorf("%s: %q, %v; she has task %d", name, text, err, p.current().ID)
		}
		for lane := range p.rows.rows {
			if who := p.rows.occupant(lane); who != (worktree.Occupant{}) {
				t.Errorf("%s: %+v works in %s", name, who, lane)
			}
		}
	}
}

// A task without a lane cannot start: it goes back as an attempt, with the reason for its next owner, and the lead is
// told.
func TestATaskWithoutALaneGoesBack(t *testing.T) {
	p := newParts(t, "alice")
	p.create(board.Draft{})
	p.rows.fail["create"] = errDisk
	text, _, err := p.claims.nextTask(t.Context())
	now := p.task(1)
	if text != "" || err != nil || p.current().ID != 0 || now.Owner != "" || now.Attempts != 1 ||
		!strings.Contains(now.Note, "the disk is gone") {
		t.Errorf("%q, %v; the task is %+v", text, err, now)
	}
	mail := p.leadMail()
	if len(mail) != 1 || mail[0].Type != muster.MailError || mail[0].From != muster.System || mail[0].TaskID != 1 {
		t.Errorf("the lead got %+v", mail)
	}
	failEach(t, func(p *life) {
		p.create(board.Draft{})
		p.rows.fail["create"] = muster.Errorf(muster.Invalid, "no room")
	}, func(p *life) error {
		_, _, err := p.claims.nextTask(p.Context())
		return err
	})
	p.create(board.Draft{Subject: "another"})
	p.landings.targetErr = muster.Errorf(muster.NotFound, "the target branch is gone")
	if _, err := p.claims.Claim(t.Context(), 2); !errors.Is(err, muster.ErrInvalid) || p.task(2).Attempts != 1 {
		t.Errorf("for a tool call: %v, and it is %+v", err, p.task(2))
	}
}

// A member that is stopped while its lane is made keeps the claim for the process that takes it over.
func TestAClaimOutlivesItsProcess(t *testing.T) {
	p := newParts(t, "alice")
	p.create(board.Draft{})
	ctx, stop := context.WithCancelCause(t.Context())
	p.rows.onMake = func(muster.Name) {
		stop(muster.CauseShutdown)
		p.rows.fail["occupy"] = errDisk
	}
	_, _, err := p.claims.nextTask(ctx)
	p.wants("stopped", err, muster.CauseShutdown)
	if now := p.task(1); now.Owner != "alice" || now.Attempts != 0 || len(p.leadMail()) > 0 {
		t.Errorf("the task is %+v", now)
	}
}

// The text of a task says what it builds on, and that it needs a plan: by the task's record, or by the teammate's.
func TestTheTextOfATask(t *testing.T) {
	for _, c := range []struct {
		who          muster.Name
		task, member bool
		want         bool
	}{
		{"alice", false, false, false},
		{"alice", true, false, true},
		{"alice", false, true, true},
		{muster.Lead, false, true, false},
		{muster.Lead, true, false, true},
	} {
		p := newParts(t, c.who)
		p.create(board.Draft{Subject: "the lexer"})
		_, err := p.Board.CompleteByHand(t.Context(), 1, muster.User, "done")
		p.must(err)
		p.Record.RequirePlan = c.member
		text, err := p.claims.Claim(t.Context(), p.create(board.Draft{RequirePlan: c.task, BlockedBy: []muster.TaskID{1}}).ID)
		if err != nil || strings.Contains(text, "It needs an approved plan") != c.want || !strings.Contains(text, "It builds on #1 the lexer") {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
}

// A task that was claimed by a tool call was read with the call's result, and is the only one.
func TestAToolClaimsATask(t *testing.T) {
	p := newParts(t, "alice")
	p.create(board.Draft{})
	p.create(board.Draft{})
	text, err := p.claims.Claim(t.Context(), 1)
	if err != nil || !strings.Contains(text, "Task #1: the parser") || p.current().Worktree == "" {
		t.Fatalf("%q: %v", text, err)
	}
	if f, err := p.idle.facts(t.Context()); err != nil || f.Claim != Presented {
		t.Errorf("its text was read, and the facts are %+v: %v", f, err)
	}
	if text, err = p.claims.Claim(t.Context(), 1); err != nil || !strings.Contains(text, "yours already") {
		t.Errorf("again: %q, %v", text, err)
	}
	_, err = p.claims.Claim(t.Context(), 2)
	if p.wants("a second one", err, muster.ErrHeld); p.task(2).Owner != "" || p.current().ID != 1 {
		t.Errorf("it is %q's", p.task(2).Owner)
	}
}

// A claim that stands though its answer was an error is the member's; one of somebody else is not.
func TestAClaimWhoseAnswerWasLost(t *testing.T) {
	for owner, want := range map[muster.Name]error{"alice": nil, "bob": muster.ErrHeld} {
		p := newParts(t, "alice")
		p.claimOnBoard(owner)
		text, err := p.claims.Claim(t.Context(), 1)
		if !errors.Is(err, want) || (text != "") != (want == nil) || (p.current().ID == 1) != (want == nil) {
			t.Errorf("%s: %q, %v; she has task %d", owner, text, err, p.current().ID)
		}
	}
	failEach(t, func(p *life) { p.create(board.Draft{}) }, func(p *life) error {
		_, err := p.claims.Claim(p.Context(), 1)
		return orMailed(p, err)
	})
}

// A member claims what is for its role. The lead has all roles where there are no teammates. Its turns begin anew with a
// claim, because it works on the task itself; a teammate's do not.
func TestTheRoleOfAClaim(t *testing.T) {
	for _, c := range []struct {
		who   muster.Name
		most  int // teammates
		role  string
		want  error
		turns int
	}{
		{muster.Lead, 0, "tester", nil, 0},
		{muster.Lead, 1, "tester", muster.ErrInvalid, 17},
		{"alice", 0, "tester", muster.ErrInvalid, 17},
		{"alice", 0, "coder", nil, 17},
	} {
		p := newParts(t, c.who)
		p.run.Cap = c.most
		p.phase.change(func(c *counters) { c.turns, c.extended = 17, true })
		_, err := p.claims.Claim(t.Context(), p.create(board.Draft{Role: c.role}).ID)
		if !errors.Is(err, c.want) || (p.task(1).Owner == c.who) != (c.want == nil) {
			t.Errorf("%+v: %v, and it is %q's", c, err, p.task(1).Owner)
		}
		if n := p.phase.get(); n.turns != c.turns || n.extended != (c.turns > 0) {
			t.Errorf("%+v: it has had %d turns, extended: %v", c, n.turns, n.extended)
		}
	}
	p := newParts(t, muster.Lead)
	p.runErr = errDisk
	_, err := p.claims.Claim(t.Context(), p.create(board.Draft{}).ID)
	if p.wants("the run cannot be read", err, errDisk); p.task(1).Owner != "" {
		t.Error("it is claimed all the same")
	}
}
