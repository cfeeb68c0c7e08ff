package face

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/view"
	"muster/journal"
)

// What the events say is what is seen at each time: before, while and after.
func TestPast(t *testing.T) {
	run := muster.Run{Team: "t", StartedAt: 100, EndedAt: 200}
	records := []muster.Task{{ID: 1, Subject: "old", Status: muster.Completed, CreatedAt: 10, UpdatedAt: 20, Landed: &muster.Landed{Commit: "aaaa"}},
		{ID: 2, Subject: "counter", Status: muster.Completed, CreatedAt: 101, Landed: &muster.Landed{Commit: "bbbb"}},
		{ID: 3, Subject: "docs", Status: muster.Completed, CreatedAt: 101, DependsOn: []muster.TaskID{2}}}
	p := NewPast(run, records)
	event := func(at float64, kind string, who muster.Name, task muster.TaskID, fields map[string]any) {
		p.Apply(muster.Event{Kind: kind, At: at, Member: who, Task: task, Fields: fields})
	}
	labels := func() map[string]int { return p.Overview(muster.Time(150)).Board }
	event(50, journal.TaskAttention, "bob", 1, map[string]any{"reason": "of an earlier run"})
	event(100, journal.RunStarted, muster.System, 0, nil)
	event(101, journal.TaskCreated, muster.Lead, 2, map[string]any{"subject": "counter"})
	event(101, journal.TaskCreated, muster.Lead, 3, map[string]any{"subject": "docs"})
	if got := labels(); got["landed"] != 1 || got["ready"] != 1 || got["waiting"] != 1 {
		t.Errorf("before anybody works: %v", got)
	}
	event(102, journal.TaskClaimed, "alice", 2, nil)
	event(102, journal.MemberSpawned, "alice", 0, map[string]any{"role": "coder"}) // may be told after its first claim
	event(103, journal.TurnStarted, "alice", 2, map[string]any{"turn": 1.0, "turns": 7.0})
	event(104, journal.TurnEnded, "alice", 2, map[string]any{"dollars": 0.25})
	event(105, journal.RequestCreated, "alice", 2, map[string]any{"request_id": "00000001", "kind": "plan_approval", "to": "lead", "text": "the plan"})
	event(106, journal.MailSent, muster.Lead, 0, map[string]any{"to": "user"})
	o := p.Overview(muster.Time(107))
	if m := o.Members[0]; m.Turns != 7 || !m.Alive || m.Role != "coder" || m.Subject != "counter" || o.Spending.Members["alice"].Cost() != "$0.25" {
		t.Errorf("while alice works: %+v, spent %v", m, o.Spending)
	}
	if n := o.Needs(); len(n) != 2 || n[0].Request.Plan != "the plan" || n[1].Name != "mail" || !o.Now.Equal(time.Unix(107, 0)) {
		t.Errorf("needs %+v", n)
	}
	event(108, journal.RequestDecided, muster.User, 2, map[string]any{"request_id": "00000001"})
	event(109, journal.MailDelivered, muster.User, 0, map[string]any{"count": 1.0})
	event(110, journal.TaskLanding, "alice", 2, nil)
	event(111, journal.TaskReturned, "alice", 2, map[string]any{"text": "red"})
	if o := p.Overview(muster.Time(112)); o.Board["in_progress"] != 1 || o.Tasks[1].Returned != "red" || len(o.Needs()) != 0 {
		t.Errorf("after it came back: %v %+v", o.Board, o.Needs())
	}
	event(120, journal.TaskCompleted, "alice", 2, map[string]any{"commit": "bbbb"})
	event(121, journal.TaskClaimed, "alice", 3, nil)
	event(122, journal.TaskAttention, "alice", 3, map[string]any{"reason": "it is too much"})
	if got := labels(); got["landed"] != 2 || got["needs_attention"] != 1 {
		t.Errorf("after it was given up: %v", got)
	}
	event(123, journal.TaskUpdated, muster.User, 3, map[string]any{"changed": []any{"retry"}})
	event(124, journal.RunEnded, muster.System, 0, nil)
	if o := p.Overview(muster.Time(130)); o.Alive || o.Board["ready"] != 1 || o.Members[0].Alive || o.Run.EndedAt != 124 {
		t.Errorf("at the end: %+v", o)
	}
}

// An overview is drawn while the next event is applied: whoever reads it reads nothing that Apply writes.
func TestAnOverviewOfThePastStaysAsItIs(t *testing.T) {
	p := NewPast(muster.Run{StartedAt: 100}, nil)
	at := 100.0
	add := func(kind string, who muster.Name, task muster.TaskID, fields map[string]any) {
		at++
		p.Apply(muster.Event{Kind: kind, At: at, Member: who, Task: task, Fields: fields})
	}
	add(journal.RunStarted, muster.Lead, 0, nil)
	add(journal.MemberSpawned, "alice", 0, map[string]any{"role": "coder"})
	for id := range muster.TaskID(3) {
		add(journal.TaskCreated, muster.Lead, id+1, map[string]any{"subject": "a"})
		add(journal.TaskLanding, "alice", id+1, nil)
	}
	add(journal.RequestCreated, "alice", 1, map[string]any{"request_id": "00000001", "kind": "plan_approval"})
	add(journal.TurnEnded, "alice", 2, map[string]any{"dollars": 0.25})
	draw := func(o view.Overview) string {
		rows := o.Presence.Rows(view.Paint{}, o.Now, 100, func(muster.TaskID) string { return "a" })
		return o.Draw(view.Screen{Width: 100}) + strings.Join(rows, "\n") + fmt.Sprint(o.Tasks, o.Requests, o.Spending.Members, o.Spending.Tasks)
	}
	o, want := p.Overview(muster.Time(at)), draw(p.Overview(muster.Time(at)))
	drawn := make(chan string)
	go func() { drawn <- draw(o) }()
	add(journal.LandingCheck, "alice", 1, nil)
	add(journal.TurnStarted, "alice", 1, map[string]any{"turns": 2.0})
	add(journal.TaskReturned, "alice", 2, map[string]any{"text": "red"})
	add(journal.TaskCompleted, "alice", 1, map[string]any{"commit": "aaaa"})
	add(journal.TurnEnded, "alice", 2, map[string]any{"dollars": 1.0})
	add(journal.RequestDecided, muster.User, 1, map[string]any{"request_id": "00000001"})
	add(journal.MemberShutdown, "alice", 0, nil)
	if got := <-drawn; got != want || draw(o) != want {
		t.Errorf("it was\n%s\nand is\n%s\nand then\n%s", want, got, draw(o))
	}
}

// What a task has landed as, and how long the team has lived, the events say too.
func TestThePastKnowsWhatLandedAndHowLongItLived(t *testing.T) {
	p := NewPast(muster.Run{StartedAt: 100, Away: 55}, nil)
	add := func(at float64, kind string, task muster.TaskID, fields map[string]any) {
		p.Apply(muster.Event{Kind: kind, At: at, Member: "alice", Task: task, Fields: fields})
	}
	add(100, journal.RunStarted, 0, nil)
	add(101, journal.TaskCreated, 1, map[string]any{"subject": "counter"})
	add(102, journal.LaneCreated, 1, map[string]any{"lane": "task-1"})
	add(150, journal.RunResumed, 0, nil)
	add(160, journal.TaskCompleted, 1, map[string]any{"commit": "bbbb", "receipt": "cccc", "check": "go test", "seconds": 4.0, "result": "it counts"})
	o := p.Overview(muster.Time(170))
	if o.Lived != 22*time.Second {
		t.Errorf("it has lived for %v", o.Lived)
	}
	if x, l := o.Tasks[0], o.Tasks[0].Landed; x.Worktree != "task-1" || x.Result != "it counts" || l == nil || *l != (muster.Landed{Commit: "bbbb", Receipt: "cccc", Check: "go test", Seconds: 4}) {
		t.Errorf("the task is %+v, landed %+v", x, l)
	}
}
