package difflines

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/highlight"
)

// sketch writes lines with their numbers, and changed words in brackets.
func sketch(lines []Line) string {
	var b strings.Builder
	for _, l := range lines {
		text, at := "", 0
		for _, s := range l.Spans {
			piece := l.Text[at : at+s.Len]
			if at += s.Len; s.IsChanged {
				piece = "[" + piece + "]"
			}
			text += piece
		}
		fmt.Fprintf(&b, "%s %d %d %s%s\n", l.Kind, l.Old, l.New, l.Sign(), strings.ReplaceAll(text, "][", "")+l.Text[at:])
	}
	return b.String()
}

func TestParse(t *testing.T) {
	patch := "diff --git \"a/\\303\\244\" \"b/\\303\\244\"\nindex 1..2\n--- a/x\n+++ b/x\n@@ -1,4 +1,3 @@ func\n same\n---- old\n-diff --git a/y b/y\n+++ new\n\n" +
		"@@ -10 +9,0 @@\n-gone\n@@ -20,0 +20 @@\n+late\r\n\\ No newline at end of file\n" +
		"diff --git a/y b/y\ndeleted file mode 100644\n@@ -1 +0,0 @@\n-x\n"
	lines := Parse(patch, []string{"ä", "y"})
	want := `file 0 0 diff --git "a/\303\244" "b/\303\244"
meta 0 0 index 1..2
meta 0 0 --- a/x
meta 0 0 +++ b/x
hunk 0 0 @@ -1,4 +1,3 @@ func
context 1 1  same
removed 2 0 ---- old
removed 3 0 -diff --git a/y b/y
added 0 2 +++ new
context 4 3  
hunk 0 0 @@ -10 +9,0 @@
removed 10 0 -gone
hunk 0 0 @@ -20,0 +20 @@
added 0 20 +late` + "\r" + `
meta 0 0 \ No newline at end of file
file 0 0 diff --git a/y b/y
meta 0 0 deleted file mode 100644
hunk 0 0 @@ -1 +0,0 @@
removed 1 0 -x
`
	if got := sketch(lines); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if a, b := lines[5].File, lines[18].File; a != "ä" || b != "y" {
		t.Errorf("the files are %q and %q", a, b)
	}
}

// lines returns lines of a hunk.
func hunk(all ...string) (lines []Line) {
	for _, s := range all {
		kind := map[byte]Kind{'-': Removed, '+': Added, ' ': Context, '\\': Meta}[s[0]]
		if lines = append(lines, Line{Kind: kind, Text: s[1:], File: "a.go"}); kind == Meta {
			lines[len(lines)-1].Text = s
		}
	}
	return lines
}

// TestWords: the words that were changed are marked where a line was changed in a few places, and nowhere else.
func TestWords(t *testing.T) {
	for _, c := range [][2][]string{
		{{"-return one(a, b)", "+return two(a, b)"}, {"-return [one](a, b)", "+return [two](a, b)"}},
		{{"-a b c d e f", "+a x y d e f"}, {"-a [b c] d e f", "+a [x y] d e f"}},
		{{"-self.value = value", "+return self.value"}, {"-self.value = value", "+return self.value"}},
		{{"-if x {", "+for _, y := range z {"}, {"-if x {", "+for _, y := range z {"}},
		{{"-a = 1", "+new line of its own", "+a = 2"}, {"-a = [1]", "+new line of its own", "+a = [2]"}},
		{{"-a = 1", "-b = 1", "\\ No newline at end of file", "+a = 2", "+b = 2"}, {"-a = [1]", "-b = [1]", "\\ No newline at end of file", "+a = [2]", "+b = [2]"}},
		{{"-a = 1", " ", "+a = 2"}, {"-a = 1", " ", "+a = 2"}},
		{{"-我喜欢红茶", "+我喜欢绿茶"}, {"-我喜欢[红]茶", "+我喜欢[绿]茶"}},
		{{"-\tx()", "+\t\tx()"}, {"-\tx()", "+\t\tx()"}},
		{{"-x \xff y z", "+x \xfe y z"}, {"-x [\xff] y z", "+x [\xfe] y z"}},
	} {
		lines := hunk(c[0]...)
		Mark(lines)
		want := strings.Join(c[1], "\n") + "\n"
		got := ""
		for i, line := range strings.Split(strings.TrimSuffix(sketch(lines), "\n"), "\n") {
			got += strings.TrimPrefix(line, string(lines[i].Kind)+" 0 0 ") + "\n"
		}
		if got != want {
			t.Errorf("got\n%swant\n%s", got, want)
		}
	}
}

// TestCode: the old code and the new one go on each for itself over the lines that both have.
func TestCode(t *testing.T) {
	lines := hunk("-a /* b", "+a", " c", "-d */", " return")
	Mark(lines)
	if l := lines[2]; l.Spans != nil { // as it is now
		t.Errorf("%+v", l)
	}
	if got := lines[3].Spans; len(got) != 1 || got[0].Code != highlight.Comment {
		t.Errorf("the end of the old comment is %+v", got)
	}
	if got := lines[4].Spans; len(got) != 1 || got[0].Code != highlight.Keyword {
		t.Errorf("return is %+v", got)
	}
}

func TestRows(t *testing.T) {
	lines := hunk(" a", "-b", "-c", "\\ No newline at end of file", "+d", " e", "+f", "-g")
	got := ""
	for left, right := range Rows(lines, true) {
		got += fmt.Sprintf("%d:%d ", left, right)
	}
	if want := "0:0 1:4 2:-1 3:3 5:5 -1:6 7:-1 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	n := 0
	for left, right := range Rows(lines, false) {
		if left != n || right != n {
			t.Errorf("row %d is %d:%d", n, left, right)
		}
		n++
	}
	if n != len(lines) {
		t.Errorf("%d rows", n)
	}
}

// TestAnyText: whatever a text holds, each of its lines is one, the pieces of a line are the line, and side by side no
// line is lost.
func TestAnyText(t *testing.T) {
	parts := []string{"diff --git a/a.go b/a.go\n", "@@ -1,3 +1,9 @@\n", "@@ -9999999999999999999 +1 @@\n", "+", "-", " ", "\\", "\n", "\r", "func", "é", "世", "\xff", "\"", "/*", "\t"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(parts)).Draw(t, "text"), "")
		lines := Parse(text, []string{"a.go"})
		Mark(lines)
		again := ""
		for _, l := range lines {
			n := 0
			for _, s := range l.Spans {
				n += s.Len
			}
			if l.Spans != nil && n != len(l.Text) {
				t.Fatalf("%q has %d bytes in pieces", l.Text, n)
			}
			again += l.Sign() + l.Text + "\n"
		}
		// A blank line may have got its sign again.
		if bare := strings.NewReplacer("\n", "", " ", ""); bare.Replace(again) != bare.Replace(text) {
			t.Fatalf("%q became %q", text, again)
		}
		seen := map[int]bool{}
		for left, right := range Rows(lines, true) {
			seen[left], seen[right] = true, true
		}
		for i := range lines {
			if !seen[i] {
				t.Fatalf("line %d of %q is on no side", i, text)
			}
		}
	})
}

// TestHostileLines: long runs and long lines are not compared each with each.
func TestHostileLines(t *testing.T) {
	start := time.Now()
	var lines []string
	for i := range 4000 {
		lines = append(lines, fmt.Sprintf("-%d %s", i, strings.Repeat("a b ", 200)))
	}
	for i := range 4000 {
		lines = append(lines, fmt.Sprintf("+%d %s", i, strings.Repeat("b c ", 200)))
	}
	Mark(hunk(append(lines, "-"+strings.Repeat("a ", 5<<20), "+"+strings.Repeat("b ", 5<<20))...))
	if d := time.Since(start); d > time.Minute {
		t.Errorf("it took %s", d)
	}
}

func BenchmarkMark(b *testing.B) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf(" \tif err := do(ctx, %d); err != nil {", i), fmt.Sprintf("-\t\treturn fmt.Errorf(\"a %d: %%w\", err)", i),
			fmt.Sprintf("+\t\treturn fmt.Errorf(\"b %d: %%w\", err)", i), " }", " ")
	}
	all := hunk(lines...)
	for b.Loop() {
		Mark(all)
	}
}
