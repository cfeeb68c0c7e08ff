package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/journal"
)

// living is what the members do right now, as the events tell it.
type living struct {
	members []*liver // in the order in which they joined, the lead first

	// The widest of their columns so far: lines that jump cannot be read.
	names, tasks, turns int
}

// liver is one of them.
type liver struct {
	name  muster.Name
	does  string // working, idle, landing, waits
	task  muster.TaskID
	turn  int
	doing string // the running tool, or why it rests
	since time.Time
}

// apply takes note of an event.
func (l *living) apply(e muster.Event) {
	if e.Member == "" || e.Member == muster.System || e.Member == muster.User {
		return
	}
	at := muster.Time(e.At)
	switch e.Kind {
	case journal.MemberShutdown:
		l.members = slices.DeleteFunc(l.members, func(m *liver) bool { return m.name == e.Member })
	case journal.MemberSpawned, journal.MemberResumed, journal.MemberWorking:
		l.get(e.Member, at).set("working", "", at)
	case journal.MemberIdle:
		l.get(e.Member, at).set("idle", idle(e.Member, e.Text("reason")), at)
	case journal.TurnStarted:
		m := l.get(e.Member, at)
		m.turn = int(e.Number("turn"))
		m.set("working", "thinks", at)
	case journal.TurnEnded:
		if m := l.get(e.Member, at); m.doing == "thinks" {
			m.set(m.does, "", at)
		}
	case journal.ToolStarted:
		m := l.get(e.Member, at)
		if tool := e.Text("tool"); tool == "wait" {
			m.set("idle", idle(e.Member, string(muster.IdleMessages)), at)
		} else {
			m.set("working", strings.TrimSpace(oneLine(tool)+" "+oneLine(e.Text("text"))), at)
		}
	case journal.ToolEnded:
		l.get(e.Member, at).set("working", "", at)
	case journal.ModelRetry:
		l.get(e.Member, at).set("waits", oneLine(e.Text("text")), at)
	default:
		l.task(e, at)
	}
}

func (l *living) task(e muster.Event, at time.Time) {
	m := l.find(e.Member)
	if m == nil { // somebody outside the team
		return
	}
	switch e.Kind {
	case journal.TaskClaimed:
		m.task = e.Task
	case journal.TaskLanding:
		m.set("landing", "", at)
	case journal.TaskReturned:
		m.set("working", "", at)
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if m.task == e.Task {
			m.task = 0
			m.set("working", "", at)
		}
	}
}

func (m *liver) set(does, doing string, at time.Time) {
	m.does, m.doing, m.since = does, doing, at
}

func (l *living) find(n muster.Name) *liver {
	for _, m := range l.members {
		if m.name == n {
			return m
		}
	}
	return nil
}

func (l *living) get(n muster.Name, at time.Time) *liver {
	if m := l.find(n); m != nil {
		return m
	}
	m := &liver{name: n, does: "working", since: at}
	if n == muster.Lead {
		l.members = append([]*liver{m}, l.members...)
	} else {
		l.members = append(l.members, m)
	}
	return m
}

func idle(who muster.Name, reason string) string {
	if who == muster.Lead && muster.IdleReason(reason) == muster.IdleMessages {
		return "waits for the team"
	}
	if w, ok := idleWords[muster.IdleReason(reason)]; ok {
		return w
	}
	return oneLine(reason)
}

// rows are the members as lines of less than width columns:
// alice  working  2 counter   turn 7  bash go test ./...  12 s
func (l *living) rows(p paint, now time.Time, width int, subject func(muster.TaskID) string) []string {
	const most = 12 // what fits above the bottom of any terminal
	shown := l.members[:min(len(l.members), most)]
	what := make([]string, len(shown))
	l.names = max(l.names, 8)
	for i, m := range shown {
		l.names = max(l.names, min(len(m.name), 16))
		if m.task != 0 {
			what[i] = cut(strings.TrimSpace(fmt.Sprintf("%d %s", m.task, oneLine(subject(m.task)))), taskColumn)
		}
		l.tasks = max(l.tasks, columns(what[i]))
		if m.turn > 0 {
			l.turns = max(l.turns, 7, len(fmt.Sprintf("turn %d", m.turn)))
		}
	}
	var rows []string
	for i, m := range shown {
		rows = append(rows, l.row(p, m, what[i], words(now.Sub(m.since)), width-1))
	}
	if more := len(l.members) - most; more > 0 {
		rows = append(rows, fmt.Sprintf("... and %d more", more))
	}
	return rows
}

// row is one member in room columns. What does not fit gives way: what it does right now first, then turn, then task.
func (l *living) row(p paint, m *liver, task, took string, room int) string {
	const least = 8 // columns; less of a text says nothing
	names := min(l.names, max(room-len(took)-2, least))
	head := pad(cut(string(m.name), names), names)
	left := room - columns(head) - columns(took) - 2
	rest := ""
	column := func(s string, width int) {
		if width > 0 && left >= width+2 {
			rest += "  " + pad(s, width)
			left -= width + 2
		}
	}
	column(m.does, 7)
	if tasks := min(l.tasks, left-2); tasks >= min(l.tasks, least) {
		column(cut(task, tasks), tasks)
	}
	turn := ""
	if m.turn > 0 {
		turn = fmt.Sprintf("turn %d", m.turn)
	}
	column(turn, l.turns)
	if doing := min(columns(m.doing), left-2); m.doing != "" && doing >= min(columns(m.doing), least) {
		column(cut(m.doing, doing), doing)
	}
	return p.who(string(m.name), head) + strings.TrimRight(rest, " ") + "  " + took
}
