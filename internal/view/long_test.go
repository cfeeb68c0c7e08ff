package view

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// What lasts is told when it is under way, once, off a terminal too.
func TestLongWorkIsToldWhileItRuns(t *testing.T) {
	var out strings.Builder
	p := progressTo(&out, 0, muster.Time(1000), lookup(muster.Task{ID: 2, Subject: "counter"}))
	play(p,
		at(journal.CheckStarted, "", 0, "command", "go test ./..."),
		at(journal.MemberSpawned, "alice", 0, "role", "coder"),
		at(journal.TaskLanding, "alice", 2, "head", "3f2a91cdd"),
		at(journal.TaskClaimed, "alice", 3, "subject", "report"),
	)
	p.Tick(muster.Time(1000.9))
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d lines within a second:\n%s", n, out.String())
	}
	p.Tick(muster.Time(1001))
	p.Tick(muster.Time(1001.3))
	p.Tick(muster.Time(1009))
	done := at(journal.CheckBase, "", 0, "result", "ok", "seconds", 9.5, "command", "go test ./...")
	done.At = 1009.5
	p.Event(done)
	same(t, out.String(), `  0.1s alice    joins  coder
  0.3s alice    takes  3 report                  its lane is being made
  1.0s landing  check  the base                  go test ./...  running
  1.3s landing  lands? 2 counter                 first, the base is checked
  9.5s landing  check  the base                  ok 9.5 s
`)
}

// Where somebody else draws the rows, nothing of them is written.
func TestRowsGoToWhoDrawsThem(t *testing.T) {
	var out strings.Builder
	p := NewProgress(Options{Print: func(s string) { out.WriteString(s) }, Screen: Screen{Width: 60}, Start: muster.Time(1000), Task: lookup(), OnlyLines: true})
	play(p, at(journal.MemberSpawned, "alice", 0, "role", "coder"))
	p.Tick(muster.Time(1002))
	p.Tick(muster.Time(1002.2))
	p.Tick(muster.Time(1003))
	p.Close()
	if out.String() != "  0.0s alice    joins  coder\n" || !p.HasWritten() {
		t.Error(out.String())
	}
	if rows := p.Rows(muster.Time(1003), 30, 0); len(rows) != 1 || text.Columns(rows[0]) >= 30 {
		t.Errorf("%q", rows)
	}
}

func TestALongBeginningIsSaid(t *testing.T) {
	var out strings.Builder
	p := NewProgress(Options{Print: func(s string) { out.WriteString(s) }, Start: muster.Time(1000), Task: lookup(), Opening: "finds what is left"})
	p.Tick(muster.Time(1000).Add(longWorkDelay - time.Millisecond))
	p.Tick(muster.Time(1000).Add(longWorkDelay))
	p.Tick(muster.Time(1005))
	same(t, out.String(), "  0.0s muster   begins finds what is left\n")
	out.Reset()
	p = NewProgress(Options{Print: func(s string) { out.WriteString(s) }, Start: muster.Time(1000), Task: lookup(), Opening: "finds what is left"})
	play(p, at(journal.TurnStarted, "lead", 0, "turn", 1.0))
	p.Tick(muster.Time(1005))
	same(t, out.String(), "")
}
