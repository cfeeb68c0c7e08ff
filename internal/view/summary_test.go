package view

import (
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

func landedTask(id muster.TaskID, subject string, owner muster.Name, commit, receipt string) muster.Task {
	return muster.Task{ID: id, Subject: subject, Status: muster.Completed, Owner: owner, UpdatedAt: 1010,
		Landed: &muster.Landed{Commit: commit, Receipt: receipt, Check: "go test ./...", Seconds: 0.7}}
}

func summaryOf(t *testing.T, e Summary) string {
	t.Helper()
	if e.Tally == nil {
		e.Tally = NewTally()
	}
	e.Run.StartedAt, e.Run.Target, e.Now = 1000, "muster/demo", muster.Time(1014.2)
	return e.Draw(Screen{})
}

func same(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestSummaryOfARunThatLanded(t *testing.T) {
	n := NewTally()
	events := []muster.Event{
		at(journal.TurnEnded, "lead", 0, "input", 20000.0, "output", 1700.0),
		at(journal.TaskClaimed, "alice", 1),
		at(journal.TaskClaimed, "bob", 2),
		at(journal.TurnEnded, "alice", 1, "input", 4000.0, "output", 100.0),
		at(journal.TurnEnded, "bob", 0, "input", 1000.0, "output", 500.0, "cache_read", 4500.0), // in whose hand 2 is
		at(journal.TaskReturned, "bob", 2, "reason", "check"),
		at(journal.TaskReturned, "bob", 2, "reason", "conflict"),
		at(journal.TaskCompleted, "alice", 1, "commit", "9c01d3eff"),
		at(journal.TaskCompleted, "bob", 2, "commit", "3f2a91cff"),
	}
	for i, e := range events {
		e.At = 1000 + float64(i)
		n.Add(e)
	}
	got := summaryOf(t, Summary{Run: muster.Run{Check: "go test ./..."}, Tally: n, Tasks: []muster.Task{
		landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"),
		landedTask(2, "counter", "bob", "3f2a91cff", "ok"),
		{ID: 3, Subject: "look", Status: muster.Completed, Owner: "bob", CompletedBy: "bob", UpdatedAt: 1011},
		{ID: 9, Subject: "of an earlier run", Status: muster.Completed, UpdatedAt: 900},
	}})
	same(t, got, `2 of 3 tasks landed on muster/demo, 1 done without a change in 14.2 s, each checked with go test ./...

#  TASK       OWNER  COMMIT   TRIES  CHECK       TIME  TOKENS
1  tokenizer  alice  9c01d3e      1  ok 0.7s     6.0s    4.1k
2  counter    bob    3f2a91c      3  ok 0.7s     6.0s    6.0k
3  look       bob    -               no change
                                                14.2s   31.8k

returned and fixed: 1 red check, 1 conflict
see them:   git log --oneline muster/demo
take them:  muster merge
`)
}

// The lead's last words stand between what has landed and how to take it, and never twice.
func TestSummaryHasTheLastWords(t *testing.T) {
	one := landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok")
	run, left := muster.Run{Check: "make"}, muster.Task{ID: 2, Subject: "more", Status: muster.NeedsAttention, Result: "no", CreatedAt: 1005}
	long := strings.TrimSuffix(strings.Repeat("line\n", 25), "\n")
	for name, c := range map[string]struct {
		end   Summary
		width int
		want  string // "" is none
	}{
		"some":           {Summary{Text: "It counts words.\n\n    go run .\x1b[2J\nsee the tests \n"}, 0, "the lead says:\n  It counts words.\n\n      go run .[2J\n  see the tests\n"},
		"none":           {Summary{}, 0, ""},
		"shown":          {Summary{Text: "It counts.", WordsShown: true}, 0, ""},
		"narrow":         {Summary{Text: "It counts words, and lines."}, 24, "the lead says:\n  It counts words, and\n  lines.\n"},
		"markdown":       {Summary{Text: "# It *counts*\n\n- one\n- two", Markdown: true}, 80, "the lead says:\n  # It *counts*\n\n  - one\n  - two\n"},
		"as written":     {Summary{Text: "# It\n- one\n- two\n\n| a | b |\n|--|--|\n|1|22|", Markdown: true}, 0, "the lead says:\n  # It\n  - one\n  - two\n\n  | a | b |\n  |--|--|\n  |1|22|\n"},
		"table":          {Summary{Text: "| a | b |\n|--|--|\n|1|22|", Markdown: true}, 80, "the lead says:\n  a  b\n  -  --\n  1  22\n"},
		"reason":         {Summary{Text: "a limit\n*do* this\n| a |", Code: 3, Markdown: true}, 80, "in full:\n  a limit\n  *do* this\n  | a |\n"},
		"long":           {Summary{Text: long, RepositoryFlag: "-C x "}, 0, "the lead says:\n" + strings.Repeat("  line\n", 20) + "  ... and 5 more lines: muster -C x log --member lead --json -n 1\n"},
		"in headline":    {Summary{Text: "a limit", Code: 3, Tasks: []muster.Task{left}}, 0, ""},
		"cut there":      {Summary{Text: strings.Repeat("why ", 50), Code: 3, Tasks: []muster.Task{left}}, 0, "in full:\n  " + strings.TrimSpace(strings.Repeat("why ", 50)) + "\n"},
		"red":            {Summary{Text: "It counts.", Code: 3, CheckIsRed: true}, 0, "the lead says:\n  It counts.\n"},
		"stopped":        {Summary{Text: "a limit", Code: 3}, 0, ""},
		"stopped, hints": {Summary{Text: "a limit\ndo this", Code: 3}, 0, "in full:\n  a limit\n  do this\n"},
		"off":            {Summary{Text: "Task 1 is gone\nIt counts.", Code: 3, OffTarget: []muster.TaskID{1}}, 0, "the lead says:\n  It counts.\n"},
	} {
		t.Run(name, func(t *testing.T) {
			c.end.Run, c.end.Tally, c.end.Now, c.end.Tasks = run, NewTally(), muster.Time(1014.2), append(c.end.Tasks, one)
			c.end.Run.StartedAt = 1000
			got := c.end.Draw(Screen{Width: c.width})
			if c.want != "" && !strings.Contains(got, "\n\n"+c.want+"\n") || c.want == "" && (strings.Contains(got, "says:") || strings.Contains(got, "in full:")) {
				t.Errorf("want %q in\n%s", c.want, got)
			}
		})
	}
}

// What came back because of what others had landed is told apart, and what is flaky was not returned.
func TestSummaryTellsApartWhatCameBack(t *testing.T) {
	n := NewTally()
	for _, e := range []muster.Event{
		at(journal.TaskReturned, "bob", 2, "reason", "check", "counts", false),
		at(journal.TaskReturned, "bob", 2, "reason", "check", "counts", true),
		at(journal.TaskReturned, "alice", 1, "reason", "conflict", "counts", false),
		at(journal.TaskReturned, "alice", 7, "reason", "conflict", "counts", false), // it has not landed
	} {
		n.Add(e)
	}
	one, two := landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"), landedTask(2, "counter", "bob", "3f2a91cff", "ok")
	two.Landed.Flaky = true
	got := summaryOf(t, Summary{Run: muster.Run{Check: "make"}, Tally: n, Tasks: []muster.Task{one, two}, Proof: "all of it"})
	for _, want := range []string{
		"\nreturned and fixed: 2 red checks, 1 conflict (2 by what had landed meanwhile)\n",
		"\nflaky check: red and then green on the same tree, at the landing of 2\n", "\nreceipts:   all of it\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	n = NewTally()
	n.Add(at(journal.TaskReturned, "alice", 1, "reason", "conflict", "counts", false))
	if got = summaryOf(t, Summary{Tally: n, Tasks: []muster.Task{one}}); !strings.Contains(got, "fixed: 1 conflict (by what had landed meanwhile)\n") {
		t.Errorf("all of them:\n%s", got)
	}
	// A reason that people have no noun for is one as well.
	for _, reason := range []string{"target", "large", "target", "review"} {
		n.Add(at(journal.TaskReturned, "alice", 1, "reason", reason, "counts", true))
	}
	want := "fixed: 1 conflict, 1 review, 2 moved targets, 1 large (1 by what had landed meanwhile)\n"
	if got = summaryOf(t, Summary{Tally: n, Tasks: []muster.Task{one}}); !strings.Contains(got, want) {
		t.Errorf("other reasons:\n%s", got)
	}
}

// Work that was taken off the target is not counted as landed there, and what is done about it is told whole.
func TestWorkTakenOffTheTargetSaysSo(t *testing.T) {
	why := "Task 1 landed and is no longer on muster/demo, which somebody has moved or removed; to have it back: " +
		strings.Repeat("git ", 30) + "merge"
	e := Summary{Run: muster.Run{Check: "make"}, Code: 3, Text: why + "\nThe lead's last words.",
		OffTarget: []muster.TaskID{1}, Tasks: []muster.Task{
			landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"), landedTask(2, "counter", "bob", "3f2a91cff", "ok")}}
	for _, e.CheckIsRed = range []bool{false, true} {
		got := strings.Split(summaryOf(t, e), "\n")
		if !strings.HasPrefix(got[0],
			"1 of 2 tasks landed on muster/demo, 1 landed and no longer on it in 14.2 s, ") || got[1] != why ||
			got[2] != "" {
			t.Errorf("%q", got)
		}
	}
	e.Tasks = append(e.Tasks, muster.Task{ID: 3, Subject: "docs", Status: muster.Pending})
	if got := summaryOf(t, e); !strings.Contains(got, "; 1 is left: The lead's last words.\n") ||
		!strings.Contains(got, "\n"+why+"\n") {
		t.Error(got)
	}
	e = Summary{Code: 3, Text: "the budget is spent", Tasks: e.Tasks[1:2]}
	if got := summaryOf(t, e); !strings.Contains(got, "\nthe budget is spent\n\n") {
		t.Error(got)
	}
}

func TestWorkLeftOverSaysWhy(t *testing.T) {
	got := summaryOf(t, Summary{Run: muster.Run{Check: "make"}, Code: 3, Text: "task 5 needs attention",
		Tasks: []muster.Task{
			landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"),
			{ID: 5, Subject: "report", Status: muster.NeedsAttention, UpdatedAt: 1005,
				Result: "came back 3 times, last: conflict"},
			{ID: 6, Subject: "docs", Status: muster.Pending, BlockedBy: []muster.TaskID{5}},
			{ID: 7, Subject: "a subject that is far too long for its column", Status: muster.InProgress, Owner: "bob"},
			{ID: 8, Subject: "tests", Status: muster.Pending, ClaimRole: "tester"},
		}})
	same(t, got, `1 of 5 tasks landed on muster/demo, each checked with make; 4 are left: task 5 needs attention
 5  report                    needs you  came back 3 times, last: conflict (muster log --task 5)
 6  docs                      waiting    waits for 5
 7  a subject that is far...  working    bob's
 8  tests                     ready      for a tester

#  TASK       OWNER  COMMIT   TRIES  CHECK     TIME  TOKENS
1  tokenizer  alice  9c01d3e      1  ok 0.7s
                                              14.2s

see them:   git log --oneline muster/demo
take them:  muster merge
try again:  muster task retry 5
go on:      muster resume
`)
}

// A task that was claimed and came back is not called one that nobody has taken.
func TestATaskThatWasLeftSaysByWhom(t *testing.T) {
	n := NewTally()
	for _, e := range []muster.Event{
		at(journal.TaskClaimed, "alice", 3),
		at(journal.TaskReturned, "alice", 3, "reason", "conflict"),
		at(journal.TaskReturned, "alice", 3, "reason", "check"),
		at(journal.TaskReleased, "alice", 3),
		at(journal.TaskClaimed, "bob", 4),
		at(journal.TaskReturned, "bob", 4, "reason", "conflict"),
		at(journal.TaskReleased, "bob", 4),
	} {
		n.Add(e)
	}
	got := summaryOf(t, Summary{Run: muster.Run{Check: "make"}, Code: 3, Text: "stopped", Tally: n,
		Tasks: []muster.Task{
			{ID: 3, Subject: "report", Status: muster.Pending, Fence: 1, Returned: "TestCount on the merged tree"},
			{ID: 4, Subject: "docs", Status: muster.Pending, Fence: 1, ClaimRole: "writer", Returned: "conflict in a.go with 2"},
			{ID: 5, Subject: "tests", Status: muster.Pending, Fence: 2},
			{ID: 6, Subject: "more", Status: muster.Pending},
		}})
	for _, want := range []string{
		"\n 3  report     ready      alice left it; 2 landings came back, the last: TestCount on the merged tree\n",
		"\n 4  docs       ready      bob left it; 1 landing came back: conflict in a.go with 2\n",
		"\n 5  tests      ready      nobody has it now\n",
		"\n 6  more       ready      nobody has taken it\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

func TestTableIsAligned(t *testing.T) {
	tb := Table{Titles: []string{">ID", "NAME", "X"}, Wide: 1}
	tb.Row(1, "件件", "y")
	tb.Row(12, Text(strings.Repeat("long ", 10)), "z")
	same(t, tb.Draw(Screen{Width: 30}), `ID  NAME                    X
 1  件件                    y
12  long long long long...  z
`)
}

func TestTimesForPeople(t *testing.T) {
	for d, want := range map[float64][4]string{
		0:      {"0.0s", "0s", "0 s", "0.0 s"},
		14.24:  {"14.2s", "14s", "14 s", "14.2 s"},
		59.97:  {"1m00s", "59s", "59 s", "1 min 0 s"},
		65:     {"1m05s", "1m", "1 min", "1 min 5 s"},
		3725:   {"1h02m", "1h", "1 h", "1 h 2 min"},
		200000: {"55h33m", "2d", "2 days", "55 h 33 min"},
	} {
		x := muster.Time(5000 + d).Sub(muster.Time(5000))
		if got := [4]string{elapsed(x), Age(x), Duration(x), longDuration(x)}; got != want {
			t.Errorf("%v: %v, want %v", d, got, want)
		}
	}
	for n, want := range map[float64]string{0: "0", 812: "812", 4100: "4.1k", 999_949: "999.9k", 1_200_000: "1.2M"} {
		if got := tokens(n); got != want {
			t.Errorf("%v: %s, want %s", n, got, want)
		}
	}
}

func TestWhatAnEarlierRunGaveUpIsNotThisRuns(t *testing.T) {
	old := muster.Task{ID: 1, Subject: "old", Status: muster.NeedsAttention, CreatedAt: 800, UpdatedAt: 900,
		Result: "came back"}
	got := summaryOf(t, Summary{Run: muster.Run{Check: "make"},
		Tasks: []muster.Task{old, landedTask(2, "new", "alice", "9c01d3eff", "ok")}})
	if !strings.HasPrefix(got, "1 of 1 task landed on muster/demo in 14.2 s, each checked with make\n") ||
		strings.Contains(got, "resume") || strings.Contains(got, "try again") {
		t.Error(got)
	}
	got = summaryOf(t, Summary{Text: "The answer.", Tasks: []muster.Task{old}})
	same(t, got, "The answer.\n")
	// What this run gave up is its own, but there is nothing to go on with.
	old.UpdatedAt = 1001
	got = summaryOf(t, Summary{Code: 3, Run: muster.Run{EndedAt: 1009}, Text: "stuck", RepositoryFlag: "-C kept ",
		Tasks: []muster.Task{old}})
	if !strings.Contains(got, "1 is left") || !strings.Contains(got, "try again:  muster -C kept task retry 1\n") ||
		strings.Contains(got, "resume") {
		t.Error(got)
	}
}

func TestTheTimeWithoutATeamIsNotCounted(t *testing.T) {
	n := NewTally()
	for _, e := range []struct {
		at float64
		muster.Event
	}{
		{1000, at(journal.RunStarted, "lead", 0)},
		{1001, at(journal.TaskClaimed, "alice", 1)},
		{1003, at(journal.TurnEnded, "alice", 1)}, // and is killed
		{5000, at(journal.TaskClaimed, "bob", 2)}, // by the user, while nobody lives
		{9003, at(journal.RunResumed, "lead", 0)},
		{9004, at(journal.TaskCompleted, "alice", 1, "commit", "9c01d3eff")},
		{9006, at(journal.TaskCompleted, "bob", 2, "commit", "9c01d3eff")},
	} {
		e.Event.At = e.at
		n.Add(e.Event)
	}
	if a, b := n.effortOf(1).time.Seconds(), n.effortOf(2).time.Seconds(); a < 2.9 || a > 3.1 || b < 2.9 || b > 3.1 {
		t.Errorf("%v and %v, want 3 s each", a, b)
	}
	s := Summary{Run: muster.Run{StartedAt: 1000, EndedAt: 9010}, Tally: n}
	if got := longDuration(s.duration()); got != "10.0 s" {
		t.Error(got)
	}
}

// The first line says what has landed, and whether a check stands behind it.
func TestTheFirstLineOfASummary(t *testing.T) {
	note := at(journal.RunNote, "", 0, "text", "the check proves nothing: go.mod names your checkout", "unverified", "go.mod names your checkout")
	red := at(journal.CheckBase, "", 0, "result", "red", "failed", "TestApp (app_test.go:12)")
	checked := muster.Run{Check: "make"}
	for want, c := range map[string]struct {
		summary  Summary
		receipts []string // of the tasks that landed
		events   []muster.Event
	}{
		`1 of 1 task landed on muster/demo in 14.2 s, NOT VERIFIED: no check is set (muster init finds one)`:                                 {Summary{}, []string{"not verified"}, nil},
		`2 of 2 tasks landed on muster/demo in 14.2 s, 1 of them NOT VERIFIED: go.mod names your checkout`:                                   {Summary{Run: checked}, []string{"not verified", "ok"}, []muster.Event{note, note}},
		`1 of 1 task landed on muster/demo in 14.2 s, NOT VERIFIED: the check is red as it was at the start: make`:                           {Summary{Run: checked, CheckIsRed: true, Code: 3}, []string{"still red"}, nil},
		`1 of 1 task landed on muster/demo in 14.2 s, NOT VERIFIED: the check is red as it was at the start: make, TestApp (app_test.go:12)`: {Summary{Run: checked, CheckIsRed: true, Code: 3}, []string{"still red"}, []muster.Event{red}},
		`2 of 2 tasks landed on muster/demo in 14.2 s, checked with make: 1 of them landed while it was still red`:                           {Summary{Run: checked}, []string{"still red", "ok"}, nil},
		"It is":      {Summary{Text: "It is\nin main.go.\x1b[2J"}, nil, nil}, // an answer without tasks is just that
		"overloaded": {Summary{Code: 3, Text: "overloaded"}, nil, nil},
	} {
		c.summary.Tally = NewTally()
		for _, e := range c.events {
			c.summary.Tally.Add(e)
		}
		for i, receipt := range c.receipts {
			c.summary.Tasks = append(c.summary.Tasks, landedTask(muster.TaskID(i+1), "a", "alice", "9c01d3eff", receipt))
		}
		got := summaryOf(t, c.summary)
		first, rest, _ := strings.Cut(got, "\n")
		same(t, first, want)
		if len(c.receipts) == 1 && strings.Contains(rest, " ok") || strings.ContainsRune(rest, '\x1b') {
			t.Errorf("called a pass, or it steers the terminal:\n%s", got)
		}
	}
}
