package view

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// Of many members those are shown that do something, in the order in which they joined; the others are counted.
func TestMembersThatMatterAreShown(t *testing.T) {
	var l Presence
	for i := range 200 {
		name := muster.Name(fmt.Sprintf("m%d", i))
		l.Apply(at(journal.MemberSpawned, name, 0))
		switch {
		case i%50 == 49:
			l.Apply(at(journal.ToolStarted, name, 0, "tool", "bash", "text", "make"))
		case i == 7:
			l.Apply(at(journal.ModelRetry, name, 0, "text", "the server is busy"))
		default:
			l.Apply(at(journal.MemberIdle, name, 0, "reason", "no_task"))
		}
	}
	l.Apply(at(journal.MemberIdle, "lead", 0, "reason", "messages"))
	rows := l.rows(Paint{}, muster.Time(1001), 80, 7, func(muster.TaskID) string { return "" })
	var names []string
	for _, r := range rows[:len(rows)-1] {
		names = append(names, strings.Fields(r)[0])
	}
	same(t, strings.Join(names, " "), "lead m0 m7 m49 m99 m149 m199")
	same(t, rows[len(rows)-1], "... and 194 more: 194 idle")
	l.Apply(at(journal.MemberWorking, "m3", 0))
	l.Apply(at(journal.MemberWorking, "m4", 0))
	l.Apply(at(journal.MemberWorking, "m5", 0))
	rows = l.rows(Paint{}, muster.Time(1001), 80, 7, func(muster.TaskID) string { return "" })
	same(t, rows[len(rows)-1], "... and 194 more: 2 working, 192 idle")
}

// On a narrow terminal a long name is cut, so that what each member does stays in sight.
func TestNarrowRowsSayWhatMembersDo(t *testing.T) {
	var l Presence
	for _, e := range []muster.Event{at(journal.MemberIdle, "lead", 0, "reason", string(muster.IdleMessages)),
		at(journal.MemberIdle, "bob", 0, "reason", string(muster.IdleTasks)), at(journal.MemberWorking, "alexandra-maria", 0), at(journal.TaskClaimed, "alexandra-maria", 7),
		at(journal.ToolStarted, "alexandra-maria", 0, "tool", "bash", "text", "go test ./...")} {
		l.Apply(e)
	}
	subject := func(muster.TaskID) string { return "count the words" }
	rows := l.rows(Paint{}, muster.Time(1005), 30, 7, subject)
	same(t, strings.Join(rows, "\n"), "lead      waiting for...  5 s\nbob       idle: waits...  5 s\nalexa...  7: bash go...   5 s")
	rows = l.rows(Paint{}, muster.Time(1005), 80, 7, subject)
	same(t, rows[2], "alexandra-maria  working  7 count the words  bash go test ./...  5 s")
}

// Of many open tasks, those that somebody has begun are named, and a command lists the others.
func TestOpenTasksAreNotAllNamed(t *testing.T) {
	var open []muster.Task
	for i := range 200 {
		open = append(open, muster.Task{ID: muster.TaskID(i + 1), Subject: "a\nlong one", Status: muster.Pending})
	}
	open[198].Status = muster.InProgress
	got := OpenTasks(open, 6, "muster task list")
	if len(got) != 11 {
		t.Fatalf("%d lines: %q", len(got), got)
	}
	same(t, strings.Join(got[:2], "\n"), " 199  a l...  stopped\n   1  a l...  ready")
	same(t, got[10], "      and 190 more: muster task list")
	same(t, strings.Join(OpenTasks(open[:1], 12, "x"), "\n"), "   1  a long one    ready")
	if all := OpenTasks(open[:10], 12, "x"); len(all) != 10 {
		t.Errorf("ten tasks have %d lines", len(all))
	}
}

// Work is shown as what landed.
func TestWork(t *testing.T) {
	same(t, LandedTasks(Screen{Width: 60}, []muster.Task{landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"), {ID: 2, Subject: "docs"}}),
		" 1  tokenizer  9c01d3e  ok 0.7s\n")
	for want, task := range map[string]muster.Task{"landed": landedTask(1, "a", "b", "c", "ok"), "done": {Status: muster.Completed}, "ready": {Status: muster.Pending},
		"waiting": {Status: muster.Pending, BlockedBy: ids(1)}, "in_progress": {Status: muster.InProgress}, "landing": {Status: muster.Landing}} {
		same(t, BoardLabel(task), want)
	}
}

func TestHang(t *testing.T) {
	for _, c := range [][2]string{
		{"here    r, on main\nrights  not confined: they run", "here    r, on main\nrights  not\n        confined:\n        they run"},
		{"short", "short"}, {"", ""}, {"muster: abcdefghijklmnopqrstuvwxyz", "muster:\n        abcdefghij\n        klmnopqrst\n        uvwxyz"},
	} {
		same(t, Hang(c[0], 8, 18), c[1])
	}
}

// The board and what waits for the user stand below the members, and are read again when something has happened.
func TestTheBoardStaysInSight(t *testing.T) {
	var out strings.Builder
	o, errBoard, reads := Overview{Board: map[string]int{"landed": 120, "in_progress": 2, "ready": 78}}, error(nil), 0
	width, height := 80, 24
	p := NewProgress(Options{Print: func(s string) { out.WriteString(s) }, Screen: Screen{Width: 80}, Start: muster.Time(1000), Task: lookup(),
		Rewraps: true, Size: func() (int, int) { return width, height }, Board: func() (Overview, error) { reads++; return o, errBoard }})
	last := func(n int) string {
		screen := emulate(t, out.String())
		return strings.Join(screen[len(screen)-n:], "\n")
	}
	now := muster.Time(1000)
	tick := func() { now = now.Add(2 * time.Second); p.Tick(now) }
	tick()
	if out.Len() > 0 || reads > 0 {
		t.Errorf("drawn before there is anybody: %q", out.String())
	}
	p.Event(at(journal.MemberSpawned, "alice", 0, "role", "coder"))
	tick()
	same(t, last(2), "alice     working  4 s\nboard     120 landed, 2 working, 78 ready")
	tick()
	tick()
	if reads != 1 {
		t.Errorf("read %d times for one event", reads)
	}
	o.Requests = []muster.Request{{ID: "7f2c91aa", Kind: muster.AskPlan, From: "alice", To: "lead", TaskID: 9, CreatedAt: 1000}}
	p.Event(at(journal.RequestCreated, "alice", 9, "request_id", "7f2c91aa", "to", "lead", "kind", "plan_approval", "text", "so"))
	tick()
	same(t, last(1), "NEEDS YOU 7f2c91aa  plan of alice for 9, wai...   muster requests show 7f2c91aa")
	for i := range 4 {
		o.Needy = append(o.Needy, muster.Task{ID: muster.TaskID(i + 1), Subject: "s", Result: "no"})
	}
	o.Mail = 2
	p.Event(at(journal.TaskAttention, "alice", 1))
	tick()
	same(t, last(2), "NEEDS YOU task 2  s: no   muster task retry 2\n          and 3 more: muster status")
	// What cannot be read stays as it was.
	errBoard = errors.New("no")
	p.Event(at(journal.MemberWorking, "alice", 0))
	tick()
	if !strings.Contains(last(5), "board     120 landed") {
		t.Errorf("lost:\n%s", last(5))
	}

	// The terminal gets narrower, and wraps what stands there: nothing of it stays.
	before := out.Len()
	high := len(p.drawn)
	width = 30
	tick()
	up := 0
	for _, r := range emulate(t, out.String()[:before])[len(emulate(t, out.String()[:before]))-high:] {
		up += 1 + max(text.Columns(r)-1, 0)/30
	}
	if got := out.String()[before:]; !strings.HasPrefix(got, fmt.Sprintf("\x1b[?2026h\x1b[%dA\r\x1b[J", up)) {
		t.Errorf("not %d lines up: %q", up, got)
	}
	for _, r := range p.drawn {
		if text.Columns(r) >= 30 {
			t.Errorf("%d columns: %q", text.Columns(r), r)
		}
	}
	// A low terminal has fewer members, never more rows than it can show.
	height = 10
	for i := range 30 {
		p.Event(at(journal.MemberSpawned, muster.Name(fmt.Sprintf("m%d", i)), 0, "role", "coder"))
	}
	tick()
	if len(p.drawn) >= height {
		t.Errorf("%d rows on a terminal of %d:\n%s", len(p.drawn), height, strings.Join(p.drawn, "\n"))
	}
	p.Close()
	if !strings.HasSuffix(out.String(), "\x1b[J\x1b[?2026l") {
		t.Errorf("not clean at the end: %q", out.String()[out.Len()-20:])
	}
}
