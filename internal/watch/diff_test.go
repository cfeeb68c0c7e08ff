package watch

import (
	"fmt"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"
)

// openDiff shows the diff of task 2, and reads it.
func openDiff(t *testing.T, width, height int) *screen {
	s := open(t, width, height)
	s.team.diff = diff
	s.keys("tab", "tab", "down", "down", "d", "enter")
	return s
}

func TestALineIsCommentedOn(t *testing.T) {
	s := openDiff(t, 80, 24)
	s.has("> 1 1  func Count() {") // the mark begins on the first line of the file
	s.keys("j", "j")
	s.has(">   2 +    return 0")
	s.keys("c", "why 0?")
	s.has("comment: why 0?", "Enter send  Esc close")
	s.keys("enter")
	s.has("you to alice: why 0?", "comment sent to alice") // the box is still open
	s.golden("comment-80")
	s.keys("refused", "enter")
	s.has("count.go has no line 2 any more", "comment: refused") // nothing that was typed is lost
	s.keys("esc", "j", "enter")
	s.has("comment:") // what was said belongs to the line
	s.keys("esc", "k", "k")
	s.has("> 2   -    return 1")
	s.keys("enter", "A", "c")
	s.has("no comment here: the mark is on no line that the file has now")
	s.did(`comment 2 count.go:2 "why 0?"`, `comment 2 count.go:2 "refused"`)
	s.has("you to alice: why 0?")
}

// Of a line that looks like the head of a file, within a hunk, the number is right.
func TestLinesOfAHunkAreCounted(t *testing.T) {
	s := open(t, 80, 40)
	s.team.diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n---- old\n-diff --git a/y b/y\n+++ new\n end\n" +
		"@@ -10 +9,0 @@\n-gone\n@@ -20,0 +20 @@\n+late\n\\ No newline at end of file\n"
	s.keys("tab", "tab", "down", "down", "d", "enter")
	var got []string
	for _, r := range s.m.detail.rows {
		if r.at.line > 0 {
			got = append(got, fmt.Sprintf("%s:%d %s", r.at.file, r.at.line, r.text))
		}
	}
	want := "count.go:1 +++ new\ncount.go:2  end\ncount.go:20 +late"
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("got\n%s\nwant\n%s", text, want)
	}
}

func TestLongLinesScrollAside(t *testing.T) {
	s := open(t, 80, 24)
	s.team.diff = strings.Replace(diff, "return 0", "return 0 // "+strings.Repeat("a long reason, ", 8)+"the end", 1)
	s.keys("tab", "tab", "down", "down", "d", "enter")
	s.hasNot("the end")
	for range 20 {
		s.keys("l")
	}
	s.has("the end")
	for range 20 {
		s.keys("h") // back to the left, and then to the lists
	}
	s.has(">  2 working", "+    return 0")
}

// The mark stays on its line when the work goes on above it.
func TestTheMarkStaysOnItsLine(t *testing.T) {
	s := openDiff(t, 80, 24)
	s.keys("j", "j", "j")
	s.has("> 3 3  }")
	o := overview()
	o.Tasks[1].Description += "\nOne more line.\nAnd another."
	s.send(changedMsg{overview: o})
	s.has("And another.", "> 3 3  }")
}

func TestBothSidesStandBesideEachOther(t *testing.T) {
	s := openDiff(t, 200, 30)
	s.keys("s", "j")
	s.golden("split-200")
	s.keys("s")
	s.has(">   2 +    return 0", "  2   -    return 1")
}

// What was said and the box for more are seen on the last row of the screen, too.
func TestACommentOnTheLastRowIsSeen(t *testing.T) {
	s := openDiff(t, 80, 24)
	s.send(tea.WindowSizeMsg{Width: 80, Height: 12}) // the diff is longer than the screen
	s.keys("end", "c", "why this?", "enter")
	s.has("you to alice: why this?", "comment:")
	s.keys("and that?", "enter")
	s.has("you to alice: and that?", "comment:")
	s.keys("esc")
	s.has("you to alice: and that?")
}
