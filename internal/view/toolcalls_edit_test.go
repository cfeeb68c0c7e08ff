package view

import (
	"strings"
	"testing"

	"muster"
	"muster/journal"
)

// TestAnEditIsShown checks that a call that edits a file has what it changes below its line, unless it failed.
func TestAnEditIsShown(t *testing.T) {
	var printed strings.Builder
	p := NewProgress(Options{OnlyLines: true, Print: func(s string) { printed.WriteString(s) }, Start: muster.Time(1000),
		Edit: func(call string) (string, []string) { return "+1 -0", []string{"         + new " + call} }})
	for _, e := range []muster.Event{at(journal.ToolStarted, "lead", 0, "tool", "edit_file", "call", "c1", "text", "a.go"),
		at(journal.ToolEnded, "lead", 0, "tool", "edit_file", "call", "c1"),
		at(journal.ToolEnded, "lead", 0, "tool", "edit_file", "call", "c2", "error", "no such text"),
		at(journal.ToolEnded, "lead", 0, "tool", "bash", "call", "c3")} {
		p.Event(e)
	}
	same(t, strings.TrimSpace(printed.String()), `0.0s lead     tool   1  edit_file a.go  0.0 s  +1 -0
         + new c1
  0.0s lead     tool   2  edit_file  0.0 s  error: no such text
  0.0s lead     tool   3  bash  0.0 s`)
}
