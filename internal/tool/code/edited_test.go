package code

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"muster/internal/difflines"
	"muster/llm"
)

// sketch writes lines of a difference as people know them, with the numbers that are known.
func sketch(lines []difflines.Line) string {
	var b strings.Builder
	signs := map[difflines.Kind]string{difflines.Removed: "-", difflines.Added: "+", difflines.Context: " ", difflines.File: "= ", difflines.Gap: "~"}
	for _, l := range lines {
		b.WriteString(signs[l.Kind] + l.Text)
		if l.Old > 0 || l.New > 0 {
			fmt.Fprintf(&b, " (%d,%d)", l.Old, l.New)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// TestEditOf takes the difference from calls as models write them.
func TestEditOf(t *testing.T) {
	call := func(name string, fields ...string) llm.Call {
		in := map[string]any{}
		for i := 0; i < len(fields); i += 2 {
			in[fields[i]] = fields[i+1]
		}
		input, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		return llm.Call{Name: name, Input: input}
	}
	numbered := func(from, to int) string {
		var b strings.Builder
		for i := from; i <= to; i++ {
			fmt.Fprintf(&b, "line %d\n", i)
		}
		return b.String()
	}
	context := func(from, to int) string {
		return strings.TrimSuffix(" "+strings.ReplaceAll(numbered(from, to), "\n", "\n "), " ")
	}
	for name, c := range map[string]struct {
		call   llm.Call
		lines  string
		counts string
	}{
		"a new text in the place of an old one": {
			call("edit_file", "path", "a.go", "old_text", "func a() {\n\treturn 1\n}", "new_text", "func a() {\n\tx := 2\n\treturn x\n}"),
			" func a() {\n-\treturn 1\n+\tx := 2\n+\treturn x\n }\n", "+2 -1"},
		"the names of fields in other programs": {
			call("edit_file", "file_path", "a.go", "old_string", "a", "new_string", "b"), "-a\n+b\n", "+1 -1"},
		"the end of the last line is no difference": {
			call("edit_file", "path", "a.go", "old_text", "a\r\nb\r\n", "new_text", "a\nc"), " a\n-b\n+c\n", "+1 -1"},
		"a text that goes": {call("edit_file", "path", "a.go", "old_text", "a\nb", "new_text", ""), "-a\n-b\n", "-2"},
		"all context, also far from the changes": {
			call("edit_file", "path", "a.go", "old_text", numbered(1, 30), "new_text", numbered(1, 9)+"x\n"+numbered(11, 20)+"y\n"+numbered(21, 30)),
			context(1, 9) + "-line 10\n+x\n" + context(11, 20) + "+y\n" + context(21, 30), "+2 -1"},
		"several changes, one of them in all places": {
			llm.Call{Name: "edit_file", Input: json.RawMessage(`{"path":"a.go","edits":[{"old_text":"a","new_text":"b"},
				{"old_text":"-- c","new_text":"++ d","replace_all":true}]}`)},
			"-a\n+b\n~everywhere in the file\n--- c\n+++ d\n", "+2 -2"},
		"nothing that a model may not write": {
			call("edit_file", "path", "a.go", "old_text", "@@ -9,1 +9,1 @@\n\\ No newline", "new_text", "@@ -9,1 +9,1 @@\n\x1b[2J"),
			" @@ -9,1 +9,1 @@\n-\\ No newline\n+\x1b[2J\n", "+1 -1"},
		"a whole file":  {call("write_file", "path", "a.go", "content", "a\n\nb"), "+a (0,1)\n+ (0,2)\n+b (0,3)\n", "+3"},
		"an empty file": {call("write_file", "path", "a.go", "content", ""), "", "+0"},
		"a patch": {call("apply_patch", "input", "*** Begin Patch\n*** Update File: a.go\n*** Move to: b.go\n@@ func a\n-1\n+2\n 3\n@@\n 4\n-5\n"+
			"*** Add File: new.go\n+package new\n*** Delete File: old.go\n*** End Patch"),
			"= a.go → b.go\n~func a\n-1\n+2\n 3\n~\n 4\n-5\n= new.go (new)\n+package new (0,1)\n= old.go (deleted)\n", "+2 -2"},
		"a unified diff": {call("apply_patch", "input", "--- a/x.go\n+++ b/x.go\n@@ -4,2 +4,2 @@\n a\n-b\n+c\n"), "= x.go\n a\n-b\n+c\n", "+1 -1"},
		"a patch in a shell": {call("bash", "command", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.go\n-1\n+2\n*** End Patch\nEOF"),
			"= a.go\n-1\n+2\n", "+1 -1"},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := EditOf(c.call)
			if got := sketch(e.Lines); !ok || got != c.lines || e.Counts() != c.counts {
				t.Errorf("%t, %s, %q\nwant %s, %q", ok, e.Counts(), got, c.counts, c.lines)
			}
		})
	}
	for _, c := range []llm.Call{call("bash", "command", "ls"), call("apply_patch", "input", "no patch"),
		{Name: "edit_file", Input: json.RawMessage(`{"path`)}, {Name: "write_file", Input: json.RawMessage(`[]`)}} {
		if e, ok := EditOf(c); ok {
			t.Errorf("%s %s is the edit %+v", c.Name, c.Input, e)
		}
	}
}

// TestEditContext checks which lines of context Preview keeps, and that Bare keeps none.
func TestEditContext(t *testing.T) {
	e := ReadUnified("--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n 1\n-2\n+two\n \n 4\n 5\n 6\n+seven\n \n+eight\n \n")
	if got, want := sketch(e.Preview(9)), " 1 (1,1)\n-2 (2,0)\n+two (0,2)\n~\n 6 (6,6)\n+seven (0,7)\n  (7,8)\n+eight (0,9)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := sketch(e.Bare().Preview(9)), "-2 (2,0)\n+two (0,2)\n~\n+seven (0,7)\n~\n+eight (0,9)\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestEditPreview takes what is seen first of a difference.
func TestEditPreview(t *testing.T) {
	patch := "*** Begin Patch\n*** Update File: a.go\n c\n-1\n+2\n c\n c\n+3\n@@\n-4\n*** Update File: b.go\n c\n+5\n c\n*** End Patch"
	input, err := json.Marshal(map[string]string{"input": patch})
	if err != nil {
		t.Fatal(err)
	}
	e, ok := EditOf(llm.Call{Name: "apply_patch", Input: input})
	if !ok {
		t.Fatal("it is no edit")
	}
	const first = "= a.go\n c\n-1\n+2\n c\n c\n+3\n"
	const all = first + "~\n-4\n= b.go\n c\n+5\n c\n"
	for n, want := range map[int]string{1: "= a.go\n c\n-1\n", 3: first, 4: first + "~\n-4\n", 9: all, 20: all} {
		if got := sketch(e.Preview(n)); got != want {
			t.Errorf("of %d lines: %q, want %q", n, got, want)
		}
	}
}
