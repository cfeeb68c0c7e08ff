package view

import (
	"testing"

	"muster"
	"muster/journal"
)

// TestAway checks what a user reads who comes back: what has happened since the user's last event, and nothing twice.
func TestAway(t *testing.T) {
	tasks := []muster.Task{{ID: 1, Subject: "benchmark"}, {ID: 2, Subject: "index"},
		{ID: 3, Subject: "report", Status: muster.NeedsAttention}, {ID: 4, Subject: "again", Status: muster.Pending}}
	changed := func(id muster.TaskID) (int, int) { return 10 * int(id), int(id) }
	ev := func(kind string, member muster.Name, task muster.TaskID, fields ...any) muster.Event {
		return at(kind, member, task, fields...)
	}
	var a Away
	draw := func(want string) {
		t.Helper()
		same(t, a.Draw(Screen{Width: 60}, muster.Time(4000), tasks, changed), want)
	}
	draw("")
	for _, e := range []muster.Event{ev(journal.RunStarted, "lead", 0), ev(journal.TaskCompleted, "bob", 9, "commit", "c0ffee"),
		ev(journal.MailSent, muster.User, 0), ev(journal.TaskCompleted, "bob", 8)} {
		a.Event(e)
	}
	draw("")
	for _, e := range []muster.Event{ev(journal.TaskCompleted, "bob", 1, "commit", "c0ffee"), ev(journal.TurnEnded, "bob", 0, "dollars", 0.5),
		ev(journal.TaskCompleted, "bob", 2, "commit", "c0ffee"), ev(journal.TaskAttention, "", 3), ev(journal.TaskAttention, "", 4),
		ev(journal.TurnEnded, "bob", 0, "dollars", 0.32)} {
		a.Event(e)
	}
	draw(`while you were away (50 min)
landed     2 tasks, +30 -3: 1 benchmark, 2 index
needs you  3 report
cost       $0.82`)
	a.Event(ev(journal.RequestDecided, "bob", 0, "by", "user"))
	draw("")

	// Of a run that has ended all of it counts, whatever the user did in it.
	a = Away{IsWhole: true}
	for _, e := range []muster.Event{ev(journal.RunStarted, "lead", 0), ev(journal.TaskCompleted, "bob", 1, "commit", "c0ffee"),
		ev(journal.TurnEnded, "bob", 0, "dollars", 0.5), ev(journal.MailSent, muster.User, 0),
		ev(journal.TurnEnded, "bob", 0, "dollars", 0.25)} {
		a.Event(e)
	}
	draw("while you were away (50 min)\nlanded     1 task, +10 -1: 1 benchmark\ncost       $0.75")
}
