package teammate

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/llm"
)

// landsAs lets landings end with a status and a text.
func (p *life) landsAs(status muster.TaskStatus, text string) {
	p.landings.land = func(id muster.TaskID, _ int) (landing.Verdict, error) {
		task := p.task(id)
		task.Status, task.Returns = status, 1
		return landing.Verdict{Task: task, Text: text}, nil
	}
}

// A task that landed or needs attention is no longer its owner's; one that came back is, in the same lane.
func TestTheVerdictOfALanding(t *testing.T) {
	const left = `"alice"'s, 0 attempts`
	for _, c := range []struct {
		status     muster.TaskStatus
		text, says string
		state      string
	}{
		{muster.Completed, "", "had no change", left},
		{muster.NeedsAttention, "red, and it is no longer yours", "red, and it is no longer yours", left},
		{muster.NeedsAttention, "", "it needs attention now and is no longer yours", left},
		{muster.InProgress, "The check is red.", "The check is red.", inLane},
		{muster.InProgress, "", "Task #1 came back", inLane},
	} {
		p := newParts(t, "alice")
		task := p.claim()
		p.rows.changed = true
		p.landsAs(c.status, c.text)
		r, err := p.claims.Complete(t.Context(), task.ID, "done")
		if err != nil || r.IsError != (c.status != muster.Completed) || !strings.Contains(r.Text(), c.says) {
			t.Errorf("%s: %q, %v", c.status, r.Text(), err)
		}
		if p.isIn(string(c.status), c.state); c.state == inLane && p.current().Returns != 1 {
			t.Errorf("%s: she has it as %+v", c.status, p.current())
		}
	}
}

// Only the task in hand lands.
func TestCompleteOfATaskThatIsNotInHand(t *testing.T) {
	p := newParts(t, "alice")
	p.create(board.Draft{})
	p.create(board.Draft{})
	_, err := p.Board.CompleteByHand(t.Context(), 2, muster.User, "done")
	p.must(err)
	for _, busy := range []bool{false, true} {
		if busy {
			p.claim()
		}
		for id, says := range map[muster.TaskID]string{0: "not in your hand", 1: "not in your hand", 2: "completed already",
			9: "not in your hand"} {
			r, err := p.claims.Complete(t.Context(), id, "")
			if err != nil || !r.IsError || !strings.Contains(r.Text(), says) || p.landings.landed > 0 {
				t.Errorf("%d: %q, %v", id, r.Text(), err)
			}
		}
	}
}

// Nothing lands while a job could write into the lane.
func TestCompleteWaitsForJobs(t *testing.T) {
	p := newParts(t, "alice")
	task := p.claim()
	p.rows.changed = true
	p.landsAs(muster.Completed, "")
	p.startJob()
	for _, says := range []string{"still run", "had no change"} {
		r, err := p.claims.Complete(t.Context(), task.ID, "")
		if wants := says != "still run"; err != nil || !strings.Contains(r.Text(), says) || (p.landings.landed == 1) != wants {
			t.Errorf("%q, %v", r.Text(), err)
		}
		p.jobs.Stop()
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
		{"a", false, "changed", ""},
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
	p.must(p.claims.resumeLanding(t.Context()))
	if p.landings.landed != 0 || p.said() != "[]" {
		t.Errorf("without a task: %s", p.said())
	}
	p.beginLanding(p.claim())
	p.must(p.claims.verify(t.Context()))
	p.must(p.presence.setStatus(t.Context(), muster.Idle, muster.IdleTasks, ""))
	p.rows.changed = true
	p.landsAs(muster.Landing, "The </reminder> is red.")
	if f, err := p.idle.facts(t.Context()); err != nil || !f.Landing {
		t.Errorf("%+v: %v", f, err)
	}
	p.must(p.claims.resumeLanding(t.Context()))
	if !strings.Contains(p.said(), "The &lt;/reminder> is red.") || p.me().Status != muster.Working {
		t.Errorf("she is %s and hears %s", p.me().Status, p.said())
	}
	if f, err := p.idle.facts(t.Context()); err != nil || f.Landing {
		t.Errorf("again: %+v: %v", f, err)
	}
	p.landings.land = func(muster.TaskID, int) (landing.Verdict, error) {
		return landing.Verdict{}, muster.Errorf(muster.Invalid, "the lane is in a merge")
	}
	p.must(p.claims.resumeLanding(t.Context()))
	if !strings.Contains(p.said(), "the lane is in a merge") {
		t.Errorf("what she can mend: %s", p.said())
	}
	p.landings.land = func(muster.TaskID, int) (landing.Verdict, error) { return landing.Verdict{}, errTest }
	p.wants("what she cannot", p.claims.resumeLanding(t.Context()), errTest)
	p.claims.clearTask() // that it was resumed is known of its own task only
	p.beginLanding(p.claim())
	p.must(p.claims.verify(t.Context()))
	if f, err := p.idle.facts(t.Context()); err != nil || !f.Landing {
		t.Errorf("the next one: %+v: %v", f, err)
	}
	failEach(t, func(p *life) { p.claim(); p.rows.changed = true }, func(p *life) error {
		p.landings.land = func(id muster.TaskID, _ int) (landing.Verdict, error) {
			return landing.Verdict{Task: muster.Task{ID: id, Status: muster.InProgress}, Text: "red"}, nil
		}
		err := p.claims.resumeLanding(p.Context())
		if err == nil && strings.Contains(p.logged.String(), "the disk is gone") {
			return errDisk // the activity is for people only
		}
		return err
	})
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
		_, err := p.Board.Complete(t.Context(), task.ID, task.Fence, board.Outcome{Landed: c.landed})
		p.must(err)
		if r, ok := p.claims.Completed(t.Context(), task.ID); !ok || r.IsError || r.Text() != c.want {
			t.Errorf("%v: %q", ok, r.Text())
		}
		if _, ok := p.claims.Completed(t.Context(), 9); ok {
			t.Error("there is no task 9")
		}
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
			r, err := p.plans.gate(t.Context(), llm.Call{Name: "bash"}, func(context.Context, llm.Call) (llm.Result, error) {
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
		p.wants("before", p.plans.require(t.Context(), "bash"), c.want)
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
		if err := p.plans.require(p.Context(), "bash"); !errors.Is(err, muster.ErrInvalid) {
			return err
		}
		return nil
	})
}
