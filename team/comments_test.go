package team

import (
	"testing"

	"muster"
	"muster/internal/treediff"
)

// TestCommentOf reads comments from the mail that they are, and takes nothing else for one.
func TestCommentOf(t *testing.T) {
	for about, want := range map[string]muster.TaskID{"your task #4 (a (small) job)": 4, "task #12 (x), which has landed as 1234567": 12, "task #3 (a\nb), which bob has": 3} {
		c := Comment{File: "a dir/b:2.go", Line: 31, Quoted: "x := 1: 2", Text: "why?\n\nas a:1: b", To: "bob", Row: -1}
		id, got, ok := commentOf(muster.Message{From: muster.User, To: "bob", Content: commentMail(about, c)})
		if !ok || id != want || got != c {
			t.Errorf("%s: task %d, %+v, %t", about, id, got, ok)
		}
	}
	whole := commentMail("task #4 (x)", Comment{File: "a.go", Line: 1, Quoted: "a", Text: "b"})
	for _, m := range []muster.Message{{From: "alice", Content: whole}, {From: muster.User, Content: "see: " + whole}, {From: muster.User, Content: "Review of the plan"}} {
		if _, c, ok := commentOf(m); ok {
			t.Errorf("%+v is the comment %+v", m, c)
		}
	}
}

// TestLocate finds the line that a comment is about where lines above it have come and gone.
func TestLocate(t *testing.T) {
	d := treediff.Diff{Files: []treediff.FileChange{{File: "a.go"}, {File: "b.go"}}, Text: "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n" +
		"@@ -1,2 +1,3 @@\n+}\n-diff --git a/b.go b/b.go\n \tx()\n+}\n@@ -30 +31 @@ x\n-old\n+\tx()\n\\ No newline at end of file\n" +
		"diff --git a/b.go b/b.go\nnew file mode 100644\n--- /dev/null\n+++ b/b.go\n@@ -0,0 +1,1 @@\n+@@ -1 +1 @@\n"}
	for _, c := range []struct {
		file   string
		line   int
		quoted string
		row    int
	}{{"a.go", 2, "}", 4}, {"a.go", 9, "}", 7}, {"a.go", 20, "x()", 10}, {"a.go", 2, "x()", 6}, {"b.go", 1, "@@ -1 +1 @@", 17}, {"a.go", 1, "old", -1}, {"c.go", 1, "}", -1}} {
		all := []Comment{{File: c.file, Line: c.line, Quoted: c.quoted, Row: -1}}
		if locate(d, all); all[0].Row != c.row {
			t.Errorf("%+v is in row %d", c, all[0].Row)
		}
	}
}
