package teammate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/prompt"
	"muster/internal/requests"
	"muster/internal/roles"
	"muster/internal/worktree"
	"muster/llm"
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
		if who := p.rows.occupant(lane); who != p.claims.lanes.occupant {
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
		if begun, err := p.beginTask(t.Context()); begun != want || err != nil || !strings.Contains(p.said(), "the parser") {
			t.Errorf("begun %v, %v; she reads %s", begun, err, p.said())
		}
	}
	if f, err := p.idleFacts(t.Context()); err != nil || f.Claim != Presented || !f.TriedTask || p.task(2).Owner != "" {
		t.Errorf("%+v: %v", f, err)
	}
	failEach(t, func(p *life) { p.create(board.Draft{}) }, func(p *life) error {
		_, err := p.beginTask(p.Context())
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
	p.config.Roles = roles.Find("", "", "")
	p.reopen(p.world.Store)
	p.create(board.Draft{})
	if text, _, err := p.claims.nextTask(t.Context()); text != "" || err != nil || p.task(1).Owner != "" {
		t.Errorf("%q, %v; the task is %q's", text, err, p.task(1).Owner)
	}
	p.change("bob", func(m *muster.Member) { m.Status = muster.Shutdown })
	if got, err := p.config.Progress(t.Context()); err != nil || len(got.Unclaimable) != 1 {
		t.Errorf("%+v, %v", got, err)
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
		"deleted": func(p *life) {
			p.rows.onMake = func(muster.Name) { p.must(p.config.Board.Delete(t.Context(), 1, true)) }
		},
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
		_, err := p.config.Board.CompleteByHand(t.Context(), 1, muster.User, "done")
		p.must(err)
		p.claims.requirePlan = c.member
		p.create(board.Draft{RequirePlan: c.task, BlockedBy: []muster.TaskID{1}})
		p.create(board.Draft{Subject: "the printer", BlockedBy: []muster.TaskID{2}})
		text, err := p.claims.Claim(t.Context(), 2)
		if err != nil || !strings.Contains(text, "It blocks #3 the printer") ||
			strings.Contains(text, "It needs an approved plan") != c.want || !strings.Contains(text, "It builds on #1 the lexer") {
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
	if f, err := p.idleFacts(t.Context()); err != nil || f.Claim != Presented {
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

func (p *life) landsAs(status muster.TaskStatus, text string) {
	p.landings.land = func(id muster.TaskID, _ int) (landing.Verdict, error) {
		task := p.task(id)
		task.Status, task.Returns = status, 1
		return landing.Verdict{Task: task, Text: text}, nil
	}
}

// A task that landed or needs attention is no longer its owner's; one that came back is, in the same lane. Nothing
// lands while a job could write into the lane.
func TestTheVerdictOfALanding(t *testing.T) {
	const left = `"alice"'s, 0 attempts`
	for _, c := range []struct {
		status     muster.TaskStatus
		text, says string
		state      string
	}{
		{muster.Completed, "", "had no change", left},
		{muster.NeedsAttention, "red, and it is no longer yours", "red, and it is no longer yours", left},
		{muster.NeedsAttention, "", "It needs attention, and is no longer yours", left},
		{muster.InProgress, "The check is red.", "The check is red.", inLane},
		{muster.InProgress, "", "Task #1 did not land", inLane},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		p.rows.changed = true
		p.phase.change(func(c *counters) { c.still.changed = false })
		p.landsAs(c.status, c.text)
		p.startJob()
		r, err := p.claims.Complete(t.Context(), task.ID, "")
		if err != nil || !strings.Contains(r.Text(), "still run") || p.landings.landed != 0 {
			t.Errorf("%q, %v", r.Text(), err)
		}
		p.jobs.Stop()
		r, err = p.claims.Complete(t.Context(), task.ID, "done")
		if err != nil || r.IsError != (c.status != muster.Completed) || !strings.Contains(r.Text(), c.says) {
			t.Errorf("%s: %q, %v", c.status, r.Text(), err)
		}
		p.isIn(string(c.status), c.state)
		if c.state == inLane && (p.current().Returns != 1 || !p.phase.get().still.changed) {
			t.Errorf("%s: she has it as %+v", c.status, p.current())
		}
	}
}

// Only the task in hand lands.
func TestCompleteOfATaskThatIsNotInHand(t *testing.T) {
	p := newParts(t, "alice")
	p.create(board.Draft{})
	p.create(board.Draft{})
	_, err := p.config.Board.CompleteByHand(t.Context(), 2, muster.User, "done")
	p.must(err)
	for _, busy := range []bool{false, true} {
		wants := map[muster.TaskID]string{0: "hold no task", 1: "do not hold", 2: "completed already", 9: "do not hold"}
		if busy {
			p.claim()
			delete(wants, 0) // the task in hand
		}
		for id, says := range wants {
			r, err := p.claims.Complete(t.Context(), id, "")
			if err != nil || !r.IsError || !strings.Contains(r.Text(), says) || p.landings.landed > 0 {
				t.Errorf("%d: %q, %v", id, r.Text(), err)
			}
		}
	}
}

// An owner whose lane has nothing but ignored files is told so once, and lands on its word.
func TestIgnoredFilesAreNamedOnce(t *testing.T) {
	for _, c := range []struct {
		files   string
		changed bool
		fails   string
		want    string // "" for no warning
	}{
		{"a", false, "", "(a)"},
		{"a b c d e", false, "", "(a, b, c, d, e)"},
		{"a b c d e f", false, "", "(a, b, c, d, e and 1 more)"},
		{"a b c d e f g", false, "", "(a, b, c, d, e and 2 more)"},
		{"", false, "", ""},
		{"a", true, "", ""},
		{"a", false, "ignored", ""},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		p.landsAs(muster.InProgress, "The check is red.")
		p.rows.ignored, p.rows.changed = strings.Fields(c.files), c.changed
		p.rows.fail[c.fails] = errDisk
		r, err := p.claims.Complete(t.Context(), task.ID, "")
		if err != nil || strings.Contains(r.Text(), "Nothing of task #1 would land") != (c.want != "") ||
			!strings.Contains(r.Text(), c.want) || (p.landings.landed == 0) != (c.want != "") {
			t.Errorf("%+v: %q, %v", c, r.Text(), err)
		}
		r, err = p.claims.Complete(t.Context(), task.ID, "")
		if err != nil || !strings.Contains(r.Text(), "The check is red.") {
			t.Errorf("%+v: again: %q, %v", c, r.Text(), err)
		}
	}
}

// A landing that is refused because the task was taken ends the claim; any other error leaves it as it is.
func TestALandingThatFails(t *testing.T) {
	for _, taken := range []bool{true, false} {
		p := newParts(t, "alice")
		task := p.claim()
		p.rows.changed = true
		want := errDisk
		p.landings.land = func(muster.TaskID, int) (landing.Verdict, error) {
			if taken {
				p.revoke(task, true)
				want = muster.Errorf(muster.Fenced, "it was taken")
			}
			return landing.Verdict{}, want
		}
		_, err := p.claims.Complete(t.Context(), task.ID, "")
		if !errors.Is(err, want) || (p.current().ID == 0) != taken {
			t.Errorf("taken %v: %v; she has task %d", taken, err, p.current().ID)
		}
	}
}

// An owner that rests goes on once with a landing that was cut off, and hears what came of it.
func TestALandingThatWasCutOffIsResumed(t *testing.T) {
	p := newParts(t, "alice")
	p.must(p.resumeLanding(t.Context()))
	if p.landings.landed != 0 || p.said() != "[]" {
		t.Errorf("without a task: %s", p.said())
	}
	p.beginLanding(p.claim())
	p.must(p.claims.verify(t.Context()))
	p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
	p.rows.changed = true
	p.landsAs(muster.Landing, "The </reminder> is red.")
	if f, err := p.idleFacts(t.Context()); err != nil || !f.Landing {
		t.Errorf("%+v: %v", f, err)
	}
	p.must(p.resumeLanding(t.Context()))
	if !strings.Contains(p.said(), "The &lt;/reminder> is red.") || p.me().Status != muster.Working {
		t.Errorf("she is %s and hears %s", p.me().Status, p.said())
	}
	if f, err := p.idleFacts(t.Context()); err != nil || f.Landing {
		t.Errorf("again: %+v: %v", f, err)
	}
	p.landings.land = func(muster.TaskID, int) (landing.Verdict, error) {
		return landing.Verdict{}, muster.Errorf(muster.Invalid, "the lane is in a merge")
	}
	p.must(p.resumeLanding(t.Context()))
	if !strings.Contains(p.said(), "the lane is in a merge") {
		t.Errorf("what she can mend: %s", p.said())
	}
	p.landings.land = func(muster.TaskID, int) (landing.Verdict, error) { return landing.Verdict{}, errTest }
	p.wants("what she cannot", p.resumeLanding(t.Context()), errTest)
	p.claims.clearTask() // that it was resumed is known of its own task only
	p.beginLanding(p.claim())
	p.must(p.claims.verify(t.Context()))
	if f, err := p.idleFacts(t.Context()); err != nil || !f.Landing {
		t.Errorf("the next one: %+v: %v", f, err)
	}
	failEach(t, func(p *life) { p.claim(); p.rows.changed = true }, func(p *life) error {
		p.landings.land = func(id muster.TaskID, _ int) (landing.Verdict, error) {
			return landing.Verdict{Task: muster.Task{ID: id, Status: muster.InProgress}, Text: "red"}, nil
		}
		err := p.resumeLanding(p.Context())
		if err == nil && strings.Contains(p.logged.String(), "the disk is gone") {
			return errDisk // the activity is for people only
		}
		return err
	})
}

// A member that has forgotten what it did is told so, the last first: of three tasks what came of them, of five a line.
func TestTheEarlierWorkOfAMember(t *testing.T) {
	p := newParts(t, "alice")
	_, err := p.config.Board.CompleteByHand(t.Context(), p.claimOnBoard("alice").ID, muster.User, "By hand.")
	p.must(err)
	for range 10 {
		task := p.claimOnBoard("alice")
		_, err := p.config.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{By: "alice", Result: "It parses.",
			Landed: &muster.Landed{Commit: "c"}})
		p.must(err)
	}
	want := "You have completed these tasks, the last one first:"
	for id := muster.TaskID(11); id > 3; id-- {
		if want += "\n" + prompt.TaskLine(p.task(id)); id > 8 {
			want += "\n  files: parser.go\n  you reported: It parses."
		}
	}
	if got, err := p.compaction.earlierWork(t.Context()); got != want+"\nand 2 before them" || err != nil {
		t.Errorf("she has done %q, want %q: %v", got, want, err)
	}
}

// A call that was cut off is answered from the board: a completed task says how it landed.
func TestACompletedTaskSaysHow(t *testing.T) {
	for _, c := range []struct {
		landed *muster.Landed
		want   string
	}{
		{nil, "Task #1 is completed; its lane had no change, so nothing landed."},
		{&muster.Landed{Commit: "0123456789", Receipt: muster.ReceiptGreen}, "Task #1 landed as 0123456."},
		{&muster.Landed{Commit: "0123456789", Receipt: muster.ReceiptStillRed},
			"Task #1 landed as 0123456. The check is still red, as it was before."},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		if r, ok := p.claims.Completed(t.Context(), task.ID); ok || r.Text() != "" {
			t.Errorf("it is not completed: %q", r.Text())
		}
		_, err := p.config.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{Landed: c.landed})
		p.must(err)
		if r, ok := p.claims.Completed(t.Context(), task.ID); !ok || r.IsError || r.Text() != c.want {
			t.Errorf("%v: %q", ok, r.Text())
		}
		if _, ok := p.claims.Completed(t.Context(), 9); ok {
			t.Error("there is no task 9")
		}
	}
}

func TestTheOwnerReadsWhatHasLanded(t *testing.T) {
	task := muster.Task{ID: 1, Landed: &muster.Landed{Commit: "0123456789", Receipt: muster.ReceiptStillRed}}
	if got, want := completedText(task, "1 file, +1 -0: a", "A note."),
		"Task #1 landed as 0123456: 1 file, +1 -0: a. The check is still red, as it was before.\nA note."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A required plan holds back the tools that change something, until it is approved for this claim. The lead needs none.
func TestAPlanIsRequired(t *testing.T) {
	for _, c := range []struct {
		who          muster.Name
		task, member bool
		want         error
	}{
		{"alice", false, false, nil},
		{"alice", true, false, muster.ErrInvalid},
		{"alice", false, true, muster.ErrInvalid},
		{muster.Lead, true, true, nil},
	} {
		p := newParts(t, c.who)
		gate := func() (ran bool, err error) {
			r, err := p.claims.plans.gate(t.Context(), llm.Call{Name: "bash"}, func(context.Context, llm.Call) (llm.Result, error) {
				ran = true
				return llm.Result{}, nil
			})
			if err == nil && r.IsError != !ran {
				t.Errorf("%+v: %q", c, r.Text())
			}
			return ran, err
		}
		p.change(c.who, func(m *muster.Member) { m.RequirePlan = c.member })
		p.reopen(p.world.Store)
		if ran, err := gate(); !ran || err != nil {
			t.Errorf("%+v: without a task: %v, %v", c, ran, err)
		}
		_, err := p.claims.Claim(t.Context(), p.create(board.Draft{RequirePlan: c.task}).ID)
		p.must(err)
		p.wants("before", p.claims.plans.require(t.Context(), "bash"), c.want)
		if ran, err := gate(); ran != (c.want == nil) || err != nil {
			t.Errorf("%+v: before: %v, %v", c, ran, err)
		}
		p.decide(p.askPlan(), muster.Lead, true, "")
		if ran, err := gate(); !ran || err != nil {
			t.Errorf("%+v: approved: %v, %v", c, ran, err)
		}
	}
	failEach(t, func(p *life) {
		_, err := p.claims.Claim(t.Context(), p.create(board.Draft{RequirePlan: true}).ID)
		p.must(err)
	}, func(p *life) error {
		if err := p.claims.plans.require(p.Context(), "bash"); !errors.Is(err, muster.ErrInvalid) {
			return err
		}
		return nil
	})
}

func (l *life) askPlan() muster.RequestID {
	l.Helper()
	task := l.current()
	r, err := l.world.Requests.Ask(l.Context(), muster.Request{Kind: muster.AskPlan, From: l.Member.record.Name, To: muster.Lead,
		Plan: "Rewrite it.", PlanHash: requests.PlanHash("Rewrite it."), TaskID: task.ID, Fence: task.Fence})
	l.must(err)
	return r.ID
}

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
	p.wants("without a task", p.claims.Release(t.Context(), 1, ""), muster.ErrInvalid)
	task := p.claim()
	p.startJob()
	p.askPlan()
	p.wants("another task", p.claims.Release(t.Context(), task.ID+1, ""), muster.ErrInvalid)
	var states []string // before she leaves the lane, and before it is others'
	p.rows.onLeave = func() { states = append(states, p.state()) }
	p.must(p.claims.Release(t.Context(), task.ID, "I cannot"))
	if !slices.Equal(states, []string{strings.Replace(inLane, "goes", "1 plans wait, goes", 1),
		`in hand, "alice"'s, 0 attempts, goes on`}) {
		t.Errorf("meanwhile: %q", states)
	}
	p.isIn("released", `""'s, 1 attempts`)
	if now := p.task(task.ID); now.Note != "I cannot" || now.Worktree != task.Worktree || p.landings.revoked != 0 ||
		!slices.Equal(p.rows.released, []muster.Name{task.Worktree}) {
		t.Errorf("the task is %+v; released are %v, revoked %d", now, p.rows.released, p.landings.revoked)
	}
	p = newParts(t, muster.Lead)
	task = p.claim()
	if r, err := p.lead.Wait(t.Context(), false); err != nil || !strings.Contains(r.Text(), "is yours") {
		t.Errorf("a lead with a task waits: %+v, %v", r, err) // nobody else would do it
	}
	p.must(p.claims.Release(t.Context(), task.ID, "I cannot"))
	p.isIn("by the lead", `""'s, 1 attempts, goes on`)
	p = newParts(t, "alice")
	p.claims.setTask(p.claimOnBoard("alice")) // which has no lane
	p.must(p.claims.release(t.Context(), "shutdown", "", false))
	p.isIn("without a lane", `""'s, 0 attempts, goes on`)
	p.must(p.claims.release(t.Context(), "without one", "", false))
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
	p := newParts(t, muster.Lead) // the claim of somebody outside the team
	task, err := p.config.Board.SetLane(t.Context(), 1, p.claimOnBoard("script").Fence, "lane", "base")
	p.must(err)
	for _, e := range []error{errDisk, nil} {
		p.landings.revokeErr = e
		if r := p.claims.revoke(t.Context(), task, "late"); !errors.Is(r, e) || (p.task(1).Owner == "") != (e == nil) {
			t.Errorf("from outside: %v, and it is %q's", r, p.task(1).Owner)
		}
	}
	p = newParts(t, "alice") // the landing is the next owner's: nothing of hers is under way
	task = p.claim()
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
		{"deleted", func(p *life, task muster.Task) error { return p.config.Board.Delete(t.Context(), task.ID, true) },
			muster.ErrNotFound, "was deleted", "deleted, archived [task-1-the-parser]"},
		{"completed in her name", func(p *life, task muster.Task) error {
			_, err := p.config.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{})
			return err
		}, muster.ErrFenced, "is completed", `"alice"'s, 0 attempts`},
		{"taken", func(p *life, task muster.Task) error { p.revoke(task, true); return nil }, muster.ErrFenced, "was taken",
			`"bob"'s, 0 attempts`},
		{"in another lane by now", func(p *life, task muster.Task) error { p.giveAway(task); return nil }, muster.ErrFenced,
			"was taken", `"bob"'s, 0 attempts, archived [task-1-the-parser]`},
		{"given back in her name", func(p *life, task muster.Task) error {
			_, err := p.config.Board.Release(t.Context(), task.ID, task.Fence, board.Release{})
			return err
		}, muster.ErrFenced, "was taken", `""'s, 0 attempts`},
		{"claimed anew in her name", func(p *life, task muster.Task) error {
			p.revoke(task, false)
			_, err := p.config.Board.Claim(t.Context(), task.ID, board.Claim{Owner: "alice", Role: "coder"})
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
	_, err := p.config.Board.Update(t.Context(), task.ID, board.Patch{Subject: &subject})
	p.must(err)
	p.must(p.claims.check(t.Context()))
	if f, err := p.idleFacts(t.Context()); err != nil || f.Claim != Presented || p.current().Subject != subject {
		t.Errorf("she knows it as %q, and the facts are %+v: %v", p.current().Subject, f, err)
	}
	tasks := p.config.Store.Table(muster.TableTasks)
	d, err1 := tasks.Get(t.Context(), "1")
	_, err2 := tasks.Put(t.Context(), "1", []byte(`{"id":"torn"}`), d.Rev) // another program saves it
	p.must(errors.Join(err1, err2, p.claims.verify(t.Context())))
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
