package view

import (
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// queueOf is what the events of a queue with four tasks tell, of which the first two are checked together.
func queueOf() (events []muster.Event) {
	for i, e := range []muster.Event{
		at(journal.CheckBase, "", 0, "result", "ok", "seconds", 30.0, "command", "go test ./..."),
		at(journal.MemberSpawned, "alice", 0, "role", "coder"),
		at(journal.TaskClaimed, "alice", 2, "lane", "task-2"),
		at(journal.TaskLanding, "alice", 2, "head", "3f2a91cdd"),
		at(journal.TaskLanding, "bob", 3, "head", "4f2a91cdd"),
		at(journal.LandingCheck, "", 3, "tasks", []int{2, 3}),
		at(journal.TaskLanding, "carol", 5, "head", "5f2a91cdd"),
		at(journal.TaskLanding, "dave", 7, "head", "6f2a91cdd"),
	} {
		e.At = 1000 + float64(i)/10
		events = append(events, e)
	}
	return events
}

// Only a task that is checked is said to be, and each of the others has its place.
func TestTheQueueSaysWhereATaskStands(t *testing.T) {
	var l landings
	describe := func(seconds float64, want map[muster.TaskID]string) {
		t.Helper()
		for id, text := range want {
			if got := l.describe(id, muster.Time(1000+seconds)); got != text {
				t.Errorf("after %v s %d is %q, want %q", seconds, id, got, text)
			}
		}
	}
	for _, e := range queueOf() {
		l.apply(e)
	}
	describe(10, map[muster.TaskID]string{2: "checked with 1 other, about 20 s", 3: "checked with 1 other, about 20 s",
		5: "first in the queue, about 50 s", 7: "second in the queue, about 50 s", 9: ""})
	describe(29.5, map[muster.TaskID]string{2: "checked with 1 other, about 1 s"})
	describe(40, map[muster.TaskID]string{2: "checked with 1 other", 5: "first in the queue, about 20 s"})

	// It is red, and halved. A check of even more than that is over too.
	l.apply(at(journal.LandingCheck, "", 5, "tasks", []int{2, 3, 5}))
	l.apply(at(journal.LandingChecked, "", 3, "tasks", []int{2, 3}, "result", "red", "seconds", 40.0))
	half := at(journal.LandingCheck, "", 2, "tasks", []int{2})
	half.At = 1041
	l.apply(half)
	describe(41, map[muster.TaskID]string{2: "checked, about 40 s", 3: "first in the queue, about 1 min", 5: "second in the queue, about 1 min"})
	l.apply(at(journal.TaskCompleted, "alice", 2))
	l.apply(at(journal.TaskReturned, "bob", 3))
	describe(50, map[muster.TaskID]string{2: "", 3: "", 5: "first in the queue, about 40 s"})
	// Who has come back goes first.
	l.apply(at(journal.TaskLanding, "bob", 3))
	describe(50, map[muster.TaskID]string{3: "first in the queue, about 40 s", 5: "second in the queue, about 40 s"})
	l.apply(at(journal.RunResumed, "", 0))
	describe(50, map[muster.TaskID]string{5: "", 7: ""})
	same(t, strings.Join([]string{ordinal(3), ordinal(10), ordinal(11), ordinal(13), ordinal(21), ordinal(22), ordinal(111)}, " "), "third tenth 11th 13th 21st 22nd 111th")
}

// `muster status` has the checks that run, since when, and who waits behind them.
func TestStatusHasTheQueue(t *testing.T) {
	o := Overview{Team: "a", Now: muster.Time(1012.5), Alive: true, Run: muster.Run{Check: "go test ./..."}}
	o.Presence.Apply(at(journal.CheckStarted, "", 0, "command", "go test ./..."))
	o.Presence.Apply(at(journal.TaskLanding, "alice", 2))
	o.Presence.queue.base = muster.Time(1000)
	if text := o.Draw(Screen{}); !strings.Contains(text, "CHECKS  the base is checked for 12 s: go test ./...\n        then 2\n") {
		t.Errorf("behind the base:\n%s", text)
	}
	for _, e := range queueOf() {
		o.Presence.Apply(e)
	}
	o.Collisions = []muster.Collision{{Task: 5, With: 7, WithOwner: "dave", Files: []muster.CollidingFile{{Path: "a.go"}}}}
	for width, want := range map[int]string{
		0:  "CHECKS  2, 3 checked together for 12 s, about 18 s still: go test ./...\n        then 5, 7\nCOLLIDE 5 collides with 7 of dave in a.go\n",
		80: "CHECKS  2, 3 checked together for 12 s, about 18 s still: go test ./...\n        then 5, 7\nCOLLIDE 5 collides with 7 of dave in a.go\n",
		30: "CHECKS  2, 3 checked toget...\n        then 5, 7\nCOLLIDE 5 collides with 7...\n",
	} {
		if text := o.Draw(Screen{Width: width}); !strings.Contains(text, want) {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
	same(t, fmt.Sprint(o.Presence.Queued(o.Now)), "[{2 0 [2 3] 1000.5 18} {3 0 [2 3] 1000.5 18} {5 1 [] 0 48} {7 2 [] 0 48}]")
	if text := (Overview{Presence: o.Presence}).Draw(Screen{}); strings.Contains(text, "CHECKS") {
		t.Errorf("no process lives:\n%s", text)
	}
}

// Off a terminal one line says that a check runs, for all its tasks, and one for each landing that waits for long.
func TestAQueueIsToldOnce(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000), lookup(muster.Task{ID: 2, Subject: "counter"}, muster.Task{ID: 5, Subject: "report"}))
	for _, e := range queueOf() {
		p.Event(e)
	}
	for _, s := range []float64{1, 1.6, 2, 3, 9} {
		p.Tick(muster.Time(1000 + s))
	}
	ended := at(journal.LandingChecked, "", 3, "tasks", []int{2, 3}, "result", "red", "seconds", 9.0, "failed", "TestCount (count_test.go:4)")
	ended.At = 1009.5
	p.Event(ended)
	same(t, out.String(), `  0.0s landing  check  the base                  go test ./...  ok 30.0 s
  0.1s alice    joins  coder
  0.2s alice    takes  2 counter                 lane task-2
  1.6s landing  check  2, 3 together             running
  1.6s landing  lands? 5 report                  first in the queue, about 1 min
  2.0s landing  lands? 7                         second in the queue, about 1 min
  9.5s landing  check  2, 3 together             FAIL 9.0 s: TestCount (count_test.go:4)
`)
}

// The log has both events, and the commands of checks are left out where they were said.
func TestLinesOfLandings(t *testing.T) {
	covered := at(journal.TaskCompleted, "alice", 2, "commit", "3f2a91cdd", "receipt", "covered", "check", "make", "covered_by", 7, "seconds", 0.5)
	flaky := at(journal.TaskCompleted, "alice", 2, "commit", "3f2a91cdd", "receipt", "ok", "check", "make", "seconds", 0.5, "flaky", true)
	for want, e := range map[string]muster.Event{
		"2, 3 together             make  running":                                 at(journal.LandingCheck, "", 3, "tasks", []int{2, 3}),
		"2, 3 together             make  ok 1.5 s":                                at(journal.LandingChecked, "", 3, "tasks", []int{2, 3}, "result", "ok", "seconds", 1.5),
		"3                         make  cannot run":                              at(journal.LandingChecked, "", 3, "tasks", []int{3}, "result", "cannot run"),
		"2                         3f2a91c  make  covered by #7":                  covered,
		"2                         3f2a91c  make  ok 0.5 s, red by chance before": flaky,
		// Read from the journal, a list has another type. One that makes no sense has the task alone.
		"5, 7 together             make  running": at(journal.LandingCheck, "", 7, "tasks", []any{5.0, 7.0}),
		"7                         make  running": at(journal.LandingCheck, "", 7, "tasks", []any{"x"}),
	} {
		got := Lines(e, Facts{Check: "make"})[0]
		same(t, got.Text, want)
		same(t, got.withoutCommand().Text, strings.Replace(want, "make  ", "", 1))
	}
	for want, landed := range map[string]muster.Landed{
		"make  covered by the check of #2":     {Check: "make", Receipt: muster.ReceiptCovered, CoveredBy: 2, Seconds: 1},
		"make  ok 0.7 s, red by chance before": {Check: "make", Receipt: "ok", Seconds: 0.7, Flaky: true},
		"not verified":                         {Receipt: "not verified"},
	} {
		same(t, landingEvidence(landed), want)
	}
	named := checkLine("1 make  it", "make", "ok", Good)
	same(t, named.withoutCommand().Text, "1 make  it                ok")
}

// TestTheTestOfACheck checks that what waits for a check says which test it runs, and forgets it with the check.
func TestTheTestOfACheck(t *testing.T) {
	p := NewProgress(Options{OnlyLines: true, Print: func(string) {},
		Task: func(muster.TaskID) (muster.Task, error) { return muster.Task{Subject: "counter"}, nil }})
	row := func() string { return p.Rows(muster.Time(1004), 100, 0)[0] }
	p.Event(at(journal.MemberSpawned, "alice", 0))
	p.Event(at(journal.TaskClaimed, "alice", 1))
	p.Event(at(journal.CheckStarted, "", 0, "command", "go test"))
	p.Event(at(journal.TaskLanding, "alice", 1))
	p.Test(0, "TestBase")
	same(t, row(), "alice     landing  1 counter  first, the base is checked: TestBase  4 s")
	p.Event(at(journal.CheckBase, "", 0, "command", "go test", "result", "ok", "seconds", 60.0))
	p.Event(at(journal.LandingCheck, "alice", 1))
	same(t, row(), "alice     landing  1 counter  checked, about 55 s  4 s")
	p.Test(1, "TestCount\x1b[2J/empty")
	same(t, row(), "alice     landing  1 counter  checked: TestCount[2J/empty, about 55 s  4 s")
	p.Event(at(journal.LandingChecked, "alice", 1, "result", "red", "seconds", 60.0))
	p.Event(at(journal.LandingCheck, "alice", 1))
	same(t, row(), "alice     landing  1 counter  checked, about 55 s  4 s")
}
