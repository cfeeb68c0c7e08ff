package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// TestStatusOfAConversation compares what stands above the prompt of a conversation: the members, the team in a line,
// and what waits for the user with what to type there.
func TestStatusOfAConversation(t *testing.T) {
	o := Overview{Board: map[string]int{"landed": 4, "in_progress": 1, "needs_attention": 1},
		Requests: []muster.Request{{ID: "7f2c91aa", Kind: muster.AskPlan, From: "alice", To: "lead", TaskID: 9, CreatedAt: 990}},
		Needy:    []muster.Task{{ID: 3, Subject: "report", Result: "three attempts"}}, Mail: 1}
	p := NewProgress(Options{OnlyLines: true, Print: func(string) {},
		Task:  func(muster.TaskID) (muster.Task, error) { return muster.Task{}, nil },
		Board: func() (Overview, error) { return o, nil },
		Window: func(model string) int {
			if model != "m" {
				t.Errorf("the model %q", model)
			}
			return 1000
		}})
	p.SetSpent("5", bookOf("lead 0 1"))
	turn := func(fields ...any) muster.Event {
		return at(journal.TurnEnded, "lead", 0, append([]any{"model", "m", "dollars", 0.25}, fields...)...)
	}
	for _, e := range []muster.Event{at(journal.MemberWorking, "lead", 0), at(journal.TurnStarted, "lead", 0, "turn", 2, "turns", 7),
		turn("input", 20, "cache_read", 150, "cache_write", 30, "output", 20),
		// The window of a subagent is another one, and a summary is not a turn of the conversation.
		turn("input", 900, "subagent", true), turn("input", 900, "summary", true)} {
		p.Event(e)
	}
	wide := `lead      working  turn 7   $1.75  0 s
board     4 landed, 1 working, 1 needs you   $1.75 of $5.00   context 22%
NEEDS YOU task 3  report: three attempts   /retry 3
NEEDS YOU mail  1 mail for you   /inbox`
	same(t, strings.Join(p.Rows(muster.Time(1000), 80, 0), "\n"), wide)
	same(t, strings.Join(p.Rows(muster.Time(1000), 200, 0), "\n"), wide)
	// A question has no row: it is asked in a frame. The lead may answer one to it first.
	if q := p.Questions(); len(q) != 1 || q[0].ID != "7f2c91aa" {
		t.Errorf("the questions: %v", q)
	}
	if p.Rows(muster.Time(999), 80, 0); len(p.Questions()) > 0 {
		t.Errorf("the questions, while the lead may answer: %v", p.Questions())
	}
	same(t, strings.Join(p.Rows(muster.Time(1000), 30, 0), "\n"), `lead      working  $1.75  0 s
board     4 landed,
          1 working,
          1 needs you
          $1.75 of $5.00
          context 22%
NEEDS YOU task 3  report:...
  /retry 3
NEEDS YOU mail  1 mail for...
  /inbox`)
	// Who asks has no row, and where all ask the team has none.
	p.Event(at(journal.MemberWorking, "alice", 0))
	same(t, strings.Join(p.Rows(muster.Time(1000), 80, 0), "\n"), wide)
	o.Requests[0].From = "lead"
	p.Event(at(journal.MemberShutdown, "alice", 0))
	_, needs, _ := strings.Cut(wide, "context 22%\n")
	same(t, strings.Join(p.Rows(muster.Time(1002), 80, 0), "\n"), needs)
	o.Requests[0].From = "alice"
	p.Event(at(journal.MemberWorking, "lead", 0))
	p.Rows(muster.Time(1004), 80, 0)
	same(t, p.Title("linkly"), "? linkly 4/6 $1.75")
	// On a low terminal members give way first, then commands, then all but the first that waits.
	for i := range 20 {
		p.Event(at(journal.MemberWorking, muster.Name(fmt.Sprintf("m%d", i)), 0))
	}
	for most := 7; most < 25; most++ {
		rows := p.Rows(muster.Time(1000), 40, most)
		if all := strings.Join(rows, "\n"); len(rows) > most || !strings.Contains(all, "NEEDS YOU task 3") ||
			!strings.Contains(all, "lead ") {
			t.Errorf("%d rows of %d:\n%s", len(rows), most, all)
		}
	}
}

// TestAStoppedTeamNeedsYou checks that a conversation shows what waits before anybody works, and rings when a run fails.
func TestAStoppedTeamNeedsYou(t *testing.T) {
	var rung []string
	p := NewProgress(Options{OnlyLines: true, Print: func(string) {}, Notify: func(words string) { rung = append(rung, words) },
		Board: func() (Overview, error) { return Overview{Mail: 2}, nil }})
	same(t, strings.Join(p.Rows(muster.Time(1000), 80, 9), "\n"), "NEEDS YOU mail  2 mails for you   /inbox")
	p.Fail(muster.Time(1000), errors.New("the model refuses"))
	same(t, strings.Join(rung, "\n"), "the run has stopped: the model refuses")
}
