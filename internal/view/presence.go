package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/journal"
)

// Presence is what the members do right now, according to the events.
type Presence struct {
	members []*Activity // in the order in which they joined, the lead first
	check   string      // the run's

	// names, tasks and turns are the widest columns so far. They never shrink, because jumping lines cannot be read.
	names, tasks, turns int
}

// Activity is what one member does.
type Activity struct {
	name  muster.Name
	state string // working, idle, landing, waits
	task  muster.TaskID
	turn  int
	// Doing is the running tool, or why the member is idle.
	Doing string
	Since time.Time
}

// Apply updates the presence with one event.
func (l *Presence) Apply(e muster.Event) {
	if e.Kind == journal.CheckStarted || e.Kind == journal.CheckBase {
		l.check = OneLine(e.Text("command"))
	}
	if e.Member == "" || e.Member == muster.System || e.Member == muster.User {
		return
	}
	at := muster.Time(e.At)
	switch e.Kind {
	case journal.MemberShutdown:
		l.members = slices.DeleteFunc(l.members, func(m *Activity) bool { return m.name == e.Member })
	case journal.MemberSpawned, journal.MemberResumed, journal.MemberWorking:
		l.getOrAdd(e.Member, at).update("working", "", at)
	case journal.MemberIdle:
		l.getOrAdd(e.Member, at).update("idle", IdleReason(e.Member, e.Text("reason")), at)
	case journal.TurnStarted:
		m := l.getOrAdd(e.Member, at)
		m.turn = int(e.Number("turn"))
		m.update("working", "thinks", at)
	case journal.TurnEnded:
		if m := l.getOrAdd(e.Member, at); m.Doing == "thinks" {
			m.update(m.state, "", at)
		}
	case journal.ToolStarted:
		m := l.getOrAdd(e.Member, at)
		if bySubagent(e) { // the member itself is still in its call of subagent
			return
		}
		if tool := e.Text("tool"); tool == "wait" {
			m.update("idle", IdleReason(e.Member, string(muster.IdleMessages)), at)
		} else {
			m.update("working", strings.TrimSpace(OneLine(tool)+" "+OneLine(e.Text("text"))), at)
		}
	case journal.ToolEnded:
		if bySubagent(e) {
			return
		}
		l.getOrAdd(e.Member, at).update("working", "", at)
	case journal.ModelRetry:
		l.getOrAdd(e.Member, at).update("waits", OneLine(e.Text("text")), at)
	default:
		l.applyTask(e, at)
	}
}

// bySubagent reports whether the call that an event tells of is one of a member's subagent.
func bySubagent(e muster.Event) bool {
	is, _ := e.Fields["subagent"].(bool)
	return is
}

// applyTask applies an event of a task to the member that it names. Somebody outside the team is no member.
func (l *Presence) applyTask(e muster.Event, at time.Time) {
	m := l.Find(e.Member)
	if m == nil {
		return
	}
	switch e.Kind {
	case journal.TaskClaimed:
		m.task = e.Task
	case journal.TaskLanding:
		doing := ""
		if l.check != "" {
			doing = "checks " + l.check
		}
		m.update("landing", doing, at)
	case journal.TaskReturned:
		m.update("working", "", at)
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if m.task == e.Task {
			m.task = 0
			m.update("working", "", at)
		}
	}
}

// update sets what the member does, and since when.
func (m *Activity) update(does, doing string, at time.Time) {
	m.state, m.Doing, m.Since = does, doing, at
}

// Find returns what the member does, or nil if no event has mentioned it.
func (l *Presence) Find(n muster.Name) *Activity {
	if i := slices.IndexFunc(l.members, func(m *Activity) bool { return m.name == n }); i >= 0 {
		return l.members[i]
	}
	return nil
}

// getOrAdd returns the activity of a member, adding one if there is none. The lead comes first.
func (l *Presence) getOrAdd(n muster.Name, since time.Time) *Activity {
	if m := l.Find(n); m != nil {
		return m
	}
	m := &Activity{name: n, state: "working", Since: since}
	at := len(l.members)
	if n == muster.Lead {
		at = 0
	}
	l.members = slices.Insert(l.members, at, m)
	return m
}

// IdleReason says why a member is idle.
func IdleReason(who muster.Name, reason string) string {
	if who == muster.Lead && muster.IdleReason(reason) == muster.IdleMessages {
		return "waits for the team"
	}
	if w, ok := idleReasons[muster.IdleReason(reason)]; ok {
		return w
	}
	return OneLine(reason)
}

// Rows returns the members as lines of less than width columns:
//
//	alice  working  2 counter   turn 7  bash go test ./...  12 s
func (l *Presence) Rows(p Paint, now time.Time, width int, subject func(muster.TaskID) string) []string {
	const most = 12 // what fits above the bottom of any terminal
	shown := l.members[:min(len(l.members), most)]
	what := make([]string, len(shown))
	l.names = max(l.names, 8)
	for i, m := range shown {
		l.names = max(l.names, min(len(m.name), 16))
		if m.task != 0 {
			what[i] = Cut(strings.TrimSpace(fmt.Sprintf("%d %s", m.task, OneLine(subject(m.task)))), taskColumn)
		}
		l.tasks = max(l.tasks, columns(what[i]))
		if m.turn > 0 {
			l.turns = max(l.turns, 7, len(fmt.Sprintf("turn %d", m.turn)))
		}
	}
	// The columns are as wide as the widest of all rows, so the rows are laid out only when all are known.
	var rows []string
	for i, m := range shown {
		rows = append(rows, l.row(p, m, what[i], Duration(now.Sub(m.Since)), width-1))
	}
	if more := len(l.members) - most; more > 0 {
		rows = append(rows, fmt.Sprintf("... and %d more", more))
	}
	return rows
}

// row returns one member in room columns. Where they are too few, it leaves out first what the member does right now,
// then the turn, then the task.
func (l *Presence) row(p Paint, m *Activity, task, took string, room int) string {
	const least = 8 // columns; less of a text says nothing
	names := min(l.names, max(room-len(took)-2, least))
	head := Pad(Cut(string(m.name), names), names)
	left := room - columns(head) - columns(took) - 2
	rest := ""
	column := func(s string, width int) {
		if width > 0 && left >= width+2 {
			rest += "  " + Pad(s, width)
			left -= width + 2
		}
	}
	column(m.state, 7)
	if tasks := min(l.tasks, left-2); tasks >= min(l.tasks, least) {
		column(Cut(task, tasks), tasks)
	}
	turn := ""
	if m.turn > 0 {
		turn = fmt.Sprintf("turn %d", m.turn)
	}
	column(turn, l.turns)
	if doing := min(columns(m.Doing), left-2); m.Doing != "" && doing >= min(columns(m.Doing), least) {
		column(Cut(m.Doing, doing), doing)
	}
	return p.Who(string(m.name), head) + strings.TrimRight(rest, " ") + "  " + took
}
