package view

import (
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// TestBelowACall checks that what a call has changed or printed stands below its line, and that its failure is said once.
func TestBelowACall(t *testing.T) {
	var printed strings.Builder
	p := NewProgress(Options{OnlyLines: true, Print: func(s string) { printed.WriteString(s) }, Start: muster.Time(1000),
		Below: func(e muster.Event, _ int) (counts string, rows []string) {
			switch e.Text("call") {
			case "c1":
				return "+1 -0", []string{"         + new"}
			case "c4":
				return "", []string{"         FAILED", "         [exit 1]"}
			}
			return "", nil
		}})
	for _, e := range []muster.Event{at(journal.ToolStarted, "lead", 0, "tool", "edit_file", "call", "c1", "text", "a.go"),
		at(journal.ToolEnded, "lead", 0, "tool", "edit_file", "call", "c1"),
		at(journal.ToolEnded, "lead", 0, "tool", "edit_file", "call", "c2", "error", "no such text"),
		at(journal.ToolEnded, "lead", 0, "tool", "bash", "call", "c3"),
		at(journal.ToolEnded, "lead", 0, "tool", "bash", "call", "c4", "error", "FAILED [exit 1]")} {
		p.Event(e)
	}
	same(t, strings.TrimSpace(printed.String()), `0.0s edit_file  a.go  +1 -0  [1]
         + new

  0.0s edit_file  error: no such text  [2]
  0.0s bash  [3]

  0.0s bash  failed  [4]
         FAILED
         [exit 1]`)
}

// TestARecalledCall checks that a call of before has the time of its day, and its number.
func TestARecalledCall(t *testing.T) {
	var printed strings.Builder
	p := NewProgress(Options{OnlyLines: true, Print: func(s string) { printed.WriteString(s) }, Start: muster.Time(100_000),
		Below: func(muster.Event, int) (string, []string) { return "", []string{"         OK"} }})
	ended := at(journal.ToolEnded, "lead", 0, "tool", "bash", "call", "c1")
	p.Recall(at(journal.ToolStarted, "lead", 0, "tool", "bash", "call", "c1", "text", "make"), ended, true)
	same(t, printed.String(), "\n "+muster.Time(ended.At).Local().Format("15:04")+" bash  make  [1]\n         OK\n")
	if e, ok := p.Call(1); !ok || e.Text("call") != "c1" {
		t.Errorf("the call %v", e)
	}
}
