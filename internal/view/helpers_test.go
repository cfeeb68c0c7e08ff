package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/journal"
)

// rowsOf returns the rows of a presence, one a line, and fails unless they cost what was spent.
func rowsOf(t *testing.T, l *Presence) string {
	t.Helper()
	rows := l.Rows(Paint{}, muster.Time(100), 100, func(muster.TaskID) string { return "parser" })
	sum := spend.Sum{}
	for _, m := range l.members {
		sum = sum.Plus(l.costs[m.name])
	}
	if sum != l.spent {
		t.Errorf("the rows cost %+v, and all %+v:\n%s", sum, l.spent, strings.Join(rows, "\n"))
	}
	return strings.Join(rows, "\n")
}

// working is a presence of alice with a helper, and of bob.
func working() *Presence {
	l := &Presence{}
	add(l, journal.MemberSpawned, "alice", nil)
	add(l, journal.MemberSpawned, "bob", nil)
	add(l, journal.TaskClaimed, "alice", nil)
	add(l, journal.TurnStarted, "alice", map[string]any{"turns": 1.0})
	add(l, journal.TurnEnded, "alice", map[string]any{"dollars": 1.0})
	add(l, journal.AgentStarted, "alice", ofHelper(map[string]any{"model": "m"}))
	add(l, journal.TurnEnded, "alice", ofHelper(map[string]any{"turn": 1.0, "dollars": 0.25}))
	add(l, journal.ToolStarted, "alice", ofHelper(map[string]any{"tool": "grep", "text": "x"}))
	return l
}

func add(l *Presence, kind string, who muster.Name, fields map[string]any) {
	e := muster.Event{Kind: kind, At: 90, Member: who, Task: 2, Fields: fields}
	l.addCost(e)
	l.Apply(e)
}

func ofHelper(fields map[string]any) map[string]any {
	fields["subagent"], fields["agent"], fields["role"] = true, "alice.explore-1", "explore"
	return fields
}

// A helper has a row below its member until it ends. Its cost is its member's from then on.
func TestHelperRows(t *testing.T) {
	l := working()
	want := "alice        working  2 parser  turn 1   $1.00  10 s\n" +
		"  explore-1  working  2 parser  turn 1   $0.25  grep x  10 s\n" +
		"bob          working  10 s"
	if got := rowsOf(t, l); got != want {
		t.Errorf("while it works:\n%s\nwant\n%s", got, want)
	}
	for _, kind := range []string{journal.ToolEnded, journal.AgentEnded, journal.ToolEnded} { // the last call was abandoned
		add(l, kind, "alice", ofHelper(map[string]any{}))
	}
	got := rowsOf(t, l)
	if strings.Contains(got, "explore") || !strings.Contains(got, "$1.25") {
		t.Errorf("when it has ended:\n%s", got)
	}
}

// A helper whose end no event tells has no row any more when its member goes on, rests or lives again.
func TestHelpersEndWithTheTurnOfTheirMember(t *testing.T) {
	for _, kind := range []string{journal.TurnStarted, journal.MemberIdle, journal.MemberResumed, journal.MemberSpawned,
		journal.MemberShutdown} {
		l := working()
		if add(l, kind, "bob", nil); l.Find("alice.explore-1") == nil {
			t.Errorf("%s of bob ends the helper of alice", kind)
		}
		if add(l, kind, "alice", nil); l.Find("alice.explore-1") != nil {
			t.Errorf("after %s alice has a helper:\n%s", kind, rowsOf(t, l))
		}
	}
	l := working()
	if l.stopAll(time.Time{}); l.Find("alice.explore-1") != nil {
		t.Error("a helper has a row in a team that has stopped")
	}
}

// Events of older versions do not name the helper. Its member has what it costs.
func TestHelpersWithoutNames(t *testing.T) {
	l := &Presence{}
	add(l, journal.MemberSpawned, "alice", nil)
	add(l, journal.ToolStarted, "alice", map[string]any{"subagent": true, "tool": "grep"})
	add(l, journal.TurnEnded, "alice", map[string]any{"subagent": true, "dollars": 0.5})
	if got, want := rowsOf(t, l), "alice     working  $0.50  10 s"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The helper of a member whose process has gone is not shown at work, whatever its last event was.
func TestHelpersOfTheDead(t *testing.T) {
	for _, status := range []muster.MemberStatus{muster.Working, muster.Idle, muster.Shutdown} {
		for _, isAlive := range []bool{true, false} {
			o := Overview{Presence: *working(), Members: []Member{{Alive: isAlive, Member: muster.Member{Name: "alice", Status: status}},
				{Alive: true, Member: muster.Member{Name: "bob", Status: muster.Working}}}}
			o.AddHelpers()
			want := "[alice bob]"
			if status == muster.Working && isAlive {
				want = "[alice alice.explore-1 bob]"
			}
			var names []muster.Name
			for _, m := range o.Members {
				names = append(names, m.Name)
			}
			if got := fmt.Sprint(names); got != want {
				t.Errorf("alice is %s, and lives: %v: %s, want %s", status, isAlive, got, want)
			}
		}
	}
}

// The rows of muster cost add up to the total.
func TestTheCostOfHelpers(t *testing.T) {
	b := spend.NewBook()
	dollars := func(n int) *spend.Dollars { d := spend.FromFloat(float64(n)); return &d }
	for i, c := range []spend.Call{{Member: "alice", Dollars: dollars(3)}, {Member: "bob", Dollars: dollars(5)},
		{Member: "alice", Agent: "alice.work-1", Role: "work", Dollars: dollars(1)},
		{Member: "alice", Agent: "alice.explore-1", Role: "explore", Dollars: dollars(4)},
		{Member: "alice", Agent: "alice.explore-1", Role: "explore", Dollars: dollars(1)}} {
		c.ID, c.State, c.Input = fmt.Sprint(i), spend.Ended, 10
		b.Add(c)
	}
	s := NewSpending(muster.Run{}, "t", *b, nil)
	rows, sums := s.byMember()
	if want := []muster.Name{"alice", "alice.explore-1", "alice.work-1", "bob"}; !slices.Equal(rows, want) {
		t.Errorf("the rows are %v, want %v", rows, want)
	}
	all := spend.Sum{}
	for _, row := range rows {
		all = all.Plus(sums[row])
	}
	if all != s.Total || sums["alice"].Cost() != "$3.00" || b.Members["alice"].Cost() != "$9.00" {
		t.Errorf("the rows cost %+v, want %+v; alice %v", all, s.Total, sums["alice"])
	}
	if got := s.Draw(Screen{}); !strings.Contains(got, "\nalice            1     10       0       0  $3.00\n"+
		"  explore-1      2     20       0       0  $5.00\n") {
		t.Errorf("they are drawn as\n%s", got)
	}
}
