package teammate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/worktree"
)

// A member that starts again has the task that its dead process had claimed, and is the occupant of its lane again.
func TestAClaimIsFoundAgain(t *testing.T) {
	p, task := inherited(t)
	other, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: "bob", Role: "coder"})
	p.must(err)
	p.must(p.claims.find(t.Context()))
	if got := p.current(); got.ID != task.ID || got.ID == other.ID || got.Fence != task.Fence {
		t.Errorf("she has task %d", got.ID)
	}
	if who := p.rows.occupant("old"); who != p.lanes.occupant() {
		t.Errorf("%+v works in it", who)
	}
}

// A lane in which an earlier owner still lives is left to them: the task that is found again gets a fresh one.
func TestAClaimFoundInATakenLaneGetsAFreshOne(t *testing.T) {
	p, task := inherited(t)
	p.rows.put(p.rows.all["old"], p.bobsOccupant())
	p.must(p.claims.find(t.Context()))
	fresh := p.task(task.ID).Worktree
	if got := p.current(); fresh == "old" || got.Worktree != fresh || p.rows.occupant(fresh) != p.lanes.occupant() {
		t.Errorf("the task is in %s, and she has it in %s", fresh, got.Worktree)
	}
	if who := p.rows.occupant("old"); who != p.bobsOccupant() {
		t.Errorf("%+v works in the old one", who)
	}
}

// A task whose lane is gone, or that has none yet, is found all the same; what cannot be read is an error.
func TestAClaimIsFoundWithoutItsLane(t *testing.T) {
	p, task := inherited(t)
	delete(p.rows.all, "old")
	p.must(p.claims.find(t.Context()))
	if got := p.current(); got.ID != task.ID || p.task(task.ID).Owner != "alice" {
		t.Errorf("she has task %d", got.ID)
	}
	p = newParts(t, "alice")
	_, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: "alice", Role: "coder"})
	p.must(err)
	p.must(p.claims.find(t.Context()))
	if got := p.current(); got.ID != 1 || len(p.rows.all) > 0 {
		t.Errorf("she has task %d, and lanes are %v", got.ID, p.rows.names())
	}
	p, _ = inherited(t)
	p.rows.fail["get"] = errDisk
	p.wants("the index cannot be read", p.claims.find(t.Context()), errDisk)
	failEach(t, func(p *parts) {
		_, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: "alice", Role: "coder"})
		p.must(err)
	}, func(ctx context.Context, p *parts) error { return p.claims.find(ctx) })
}

// Whoever looks at a member that claims sees it at work on the task before the lane is made, which may take long.
func TestAClaimShowsBeforeTheLaneIsMade(t *testing.T) {
	p := newParts(t, "alice")
	p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
	task, made := p.create(board.Draft{}), false
	p.rows.onMake = func(muster.Name) {
		made = true
		if m := p.record(); m.Status != muster.Working || m.Task != task.ID {
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

// A member takes no task while it has one, reads the text of a task once, and takes none when there is none.
func TestTheNextTask(t *testing.T) {
	p := newParts(t, "alice")
	if text, key, err := p.claims.nextTask(t.Context()); text != "" || key != "" || err != nil || len(p.rows.all) > 0 {
		t.Errorf("without a task: %q, %q, %v, and lanes are %v", text, key, err, p.rows.names())
	}
	p.create(board.Draft{})
	p.create(board.Draft{})
	text, key, err := p.claims.nextTask(t.Context())
	if err != nil || text == "" {
		t.Fatalf("%q, %v", text, err)
	}
	again, _, err := p.claims.nextTask(t.Context()) // the text was not said yet
	if err != nil || again == "" || p.current().ID != 1 {
		t.Errorf("task %d: %q, %v", p.current().ID, again, err)
	}
	p.must(p.conversation.say(t.Context(), []muster.MessageID{key}, text))
	if again, _, err = p.claims.nextTask(t.Context()); again != "" || err != nil || p.task(2).Owner != "" {
		t.Errorf("read, and told again: %q, %v", again, err)
	}
}

// orMailed is the error of the store when a claim has failed without it: then the task went back, and the lead knows.
func orMailed(p *parts, err error) error {
	if mail := p.leadMail(); errors.Is(err, muster.ErrUnavailable) || len(mail) == 0 ||
		!strings.Contains(mail[0].Content, "the disk is gone") {
		return err
	}
	return errDisk
}

// No error of the stores is taken for the answer that there is no task.
func TestTheNextTaskHidesNoError(t *testing.T) {
	next := func(ctx context.Context, p *parts) error {
		_, _, err := p.claims.nextTask(ctx)
		return orMailed(p, err)
	}
	failEach(t, func(p *parts) { p.create(board.Draft{}) }, next)
	failEach(t, func(p *parts) { p.claim() }, next)
	p := newParts(t, "alice")
	p.create(board.Draft{})
	p.runErr = errDisk
	p.wants("the run cannot be read", next(t.Context(), p), errDisk)
}

// A member that another process hosts by now, or whose task is taken in the meantime, has nothing to begin.
func TestATaskThatIsLostMeanwhileIsNotBegun(t *testing.T) {
	for name, lose := range map[string]func(p *parts){
		"taken over": func(p *parts) { p.rehost() },
		"revoked":    func(p *parts) { p.rows.onMake = func(muster.Name) { p.revoke(p.task(1), true) } },
		"deleted":    func(p *parts) { p.rows.onMake = func(muster.Name) { p.must(p.Board.Delete(t.Context(), 1, true)) } },
	} {
		p := newParts(t, "alice")
		p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
		p.create(board.Draft{})
		lose(p)
		text, _, err := p.claims.nextTask(t.Context())
		if text != "" || err != nil || name != "taken over" && p.current().ID != 0 {
			t.Errorf("%s: %q, %v; she has task %d", name, text, err, p.current().ID)
		}
		for _, lane := range p.rows.names() {
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
	failEach(t, func(p *parts) {
		p.create(board.Draft{})
		p.rows.fail["create"] = muster.Errorf(muster.Invalid, "no room")
	}, func(ctx context.Context, p *parts) error {
		_, _, err := p.claims.nextTask(ctx)
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
	const plan = "It needs an approved plan"
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
		p.Record.RequirePlan = c.member
		text, err := p.claims.Claim(t.Context(), p.create(board.Draft{RequirePlan: c.task}).ID)
		if err != nil || strings.Contains(text, plan) != c.want {
			t.Errorf("%+v: %q, %v", c, text, err)
		}
	}
	p := newParts(t, "alice")
	p.create(board.Draft{Subject: "the lexer"})
	_, err := p.Board.CompleteByHand(t.Context(), 1, muster.User, "done")
	p.must(err)
	text, err := p.claims.Claim(t.Context(), p.create(board.Draft{BlockedBy: []muster.TaskID{1}}).ID)
	if err != nil || !strings.Contains(text, "It builds on #1 the lexer") {
		t.Errorf("%q: %v", text, err)
	}
}

// A task that was claimed by a tool call was read with the call's result.
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
		_, err := p.Board.Claim(t.Context(), p.create(board.Draft{}).ID, board.Claim{Owner: owner, Role: "coder"})
		p.must(err)
		text, err := p.claims.Claim(t.Context(), 1)
		if !errors.Is(err, want) || (text != "") != (want == nil) || (p.current().ID == 1) != (want == nil) {
			t.Errorf("%s: %q, %v; she has task %d", owner, text, err, p.current().ID)
		}
	}
	failEach(t, func(p *parts) { p.create(board.Draft{}) }, func(ctx context.Context, p *parts) error {
		_, err := p.claims.Claim(ctx, 1)
		return orMailed(p, err)
	})
}

// A member claims what is for its role. The lead has all roles where there are no teammates.
func TestTheRoleOfAClaim(t *testing.T) {
	for _, c := range []struct {
		who  muster.Name
		most int // teammates
		want error
	}{
		{muster.Lead, 0, nil},
		{muster.Lead, 1, muster.ErrInvalid},
		{muster.Lead, 4, muster.ErrInvalid},
		{"alice", 0, muster.ErrInvalid},
	} {
		p := newParts(t, c.who)
		p.run.Cap = c.most
		_, err := p.claims.Claim(t.Context(), p.create(board.Draft{Role: "tester"}).ID)
		if !errors.Is(err, c.want) || (p.task(1).Owner == c.who) != (c.want == nil) {
			t.Errorf("%s of %d: %v, and it is %q's", c.who, c.most, err, p.task(1).Owner)
		}
	}
	p := newParts(t, muster.Lead)
	p.runErr = errDisk
	_, err := p.claims.Claim(t.Context(), p.create(board.Draft{}).ID)
	if p.wants("the run cannot be read", err, errDisk); p.task(1).Owner != "" {
		t.Error("it is claimed all the same")
	}
}

// The turns of the lead's phase begin anew with a claim: it works on the task itself. A teammate's do not.
func TestAClaimBeginsTheLeadsPhaseAnew(t *testing.T) {
	for who, want := range map[muster.Name]int{muster.Lead: 0, "alice": 17} {
		p := newParts(t, who)
		p.phase.change(func(c *counters) { c.turns, c.extended = 17, true })
		p.claim()
		if c := p.phase.get(); c.turns != want || c.extended != (want > 0) {
			t.Errorf("%s has had %d turns, extended: %v", who, c.turns, c.extended)
		}
	}
}
