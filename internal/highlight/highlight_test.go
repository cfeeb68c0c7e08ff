package highlight

import (
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// sketch returns code with a letter for each kind before its pieces: c, s, k and n.
func sketch(l Lexer, code string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(code, "\n") {
		at := 0
		for _, x := range l.Line(line) {
			piece := line[at : at+x.Len]
			if at += x.Len; x.Kind != Plain {
				piece = string(" cskn"[x.Kind]) + "{" + piece + "}"
			}
			b.WriteString(piece)
		}
		b.WriteString(line[at:] + "\n")
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func TestLines(t *testing.T) {
	for _, c := range []struct{ language, code, want string }{
		{"go", `if x.type == 0x1F { // "no"`, `k{if} x.type == n{0x1F} { c{// "no"}`},
		{"go", "s := `raw \\` + \"a\\\"b\" + '\\''", "s := s{`raw \\`} + s{\"a\\\"b\"} + s{'\\''}"},
		{"go", "a /* b\nfunc\nc */ func", "a c{/* b}\nc{func}\nc{c */} k{func}"},
		{"go", "a := `one\nfunc`\nfunc", "a := s{`one}\ns{func`}\nk{func}"},
		{"go", " * the middle of a comment\n */\nreturn *p", "c{ * the middle of a comment}\nc{ */}\nk{return} *p"},
		{"GO title=x", "return", "k{return}"},
		{"rust,ignore", "fn f<'a>(x: &'a str) -> char { 'x' }", "k{fn} f<'a>(x: &'a str) -> char { s{'x'} }"},
		{"py", "def f():\n    \"\"\"one\n    two\"\"\"\n    return 'x' # it's", "k{def} f():\n    s{\"\"\"one}\ns{    two\"\"\"}\n    k{return} s{'x'} c{# it's}"},
		{"ts", "const a = `x ${b}` // c", "k{const} a = s{`x ${b}`} c{// c}"},
		{"tsx", "return <p>don't</p>", "k{return} <p>don't</p>"},
		{"c", "#include <a.h>\nint n = 1e-5;", "k{#include} <a.h>\nk{int} n = n{1e-5};"},
		{"bash", "if [ $# -gt 1 ]; then echo \"a\" # b", "k{if} [ $# -gt n{1} ]; k{then} k{echo} s{\"a\"} c{# b}"},
		{"sql", "select 'it''s' -- x", "k{select} s{'it''s'} c{-- x}"},
		{"json", `{"a": "b", "n": null, "u": "http://x"}`, `{k{"a"}: s{"b"}, k{"n"}: k{null}, k{"u"}: s{"http://x"}}`},
		{"yaml", "- a-b: x # c\n  d: don't\n  u: http://x:1", "- k{a-b}: x c{# c}\n  k{d}: don't\n  k{u}: http://x:n{1}"},
		{"toml", "[a.b]\nc = \"d\"", "k{[a.b]}\nk{c} = s{\"d\"}"},
		{"html", "<!-- a\nb --><p class=\"c\"\n  id='d'>it's <br/></p>", "c{<!-- a}\nc{b -->}<k{p} class=s{\"c\"}\n  id=s{'d'}>it's <k{br}/></k{p}>"},
		{"css", "a:hover {\n  color: #fff; /* x */\n}", "a:hover {\n  k{color}: #fff; c{/* x */}\n}"},
		{"md", "# Head\na `b`", "k{# Head}\na s{`b`}"},
		{"dockerfile", "from a\nCOPY --from=b c d", "k{from} a\nk{COPY} --from=b c d"},
		{"make", "all: a\n\tif x # y", "k{all}: a\n\tif x c{# y}"},
		{"unknown", "if x", "if x"},
		{"", "if x", "if x"},
	} {
		if got := sketch(For(c.language), c.code); got != c.want {
			t.Errorf("%s\n%s\nwant\n%s", c.language, got, c.want)
		}
	}
}

func TestForFile(t *testing.T) {
	for file, want := range map[string]string{"a/b.go": "go", "Dockerfile": "dockerfile", "Dockerfile.dev": "dockerfile",
		"x/Makefile": "make", "web/App.TSX": "typescript", "go.sum": "", ".bashrc": "bash", "README": "", "": ""} {
		got := ""
		if l := ForFile(file); l.IsKnown() {
			got = l.language.names[0]
		}
		if got != want {
			t.Errorf("%s is %q, not %q", file, got, want)
		}
	}
}

// TestPiecesAreTheLine: whatever a line holds, its pieces are the line, cut between characters.
func TestPiecesAreTheLine(t *testing.T) {
	marks := []string{"/*", "*/", `"`, "'", "`", `"""`, "<!--", "-->", "<", ">", "#", "\\", "a", "é", "世", "\xff", " ", "1", "e-", "."}
	rapid.Check(t, func(t *rapid.T) {
		l := languages()[rapid.IntRange(0, len(languages())-1).Draw(t, "language")]
		x := Lexer{language: &l}
		for range 3 {
			line := strings.Join(rapid.SliceOf(rapid.SampledFrom(marks)).Draw(t, "line"), "")
			spans, at := x.Line(line), 0
			for i, s := range spans {
				if at += s.Len; s.Len <= 0 || at < len(line) && line[at]&0xc0 == 0x80 {
					t.Fatalf("%s: piece %d of %q is wrong: %v", l.names[0], i, line, spans)
				}
			}
			if spans != nil && at != len(line) {
				t.Fatalf("%s: %v is not %q", l.names[0], spans, line)
			}
		}
	})
}

// TestLongLines: the time for a line grows with its length alone. A delimiter without an end would be looked for again
// at each of its kind, which for these lines takes minutes.
func TestLongLines(t *testing.T) {
	start, x := time.Now(), For("js")
	for range 4000 {
		if x.Line(strings.Repeat(`\"`, maxLine/2)); time.Since(start) > time.Minute {
			t.Fatal("the lines take more than a minute")
		}
	}
	for _, mark := range []string{`"\`, "'", "/*", "<!--", "`", "1e-", "<a "} {
		for _, l := range languages() {
			x := Lexer{language: &l}
			x.Line(strings.Repeat(mark, maxLine/len(mark)))
		}
	}
	x = For("go")
	if got := x.Line(strings.Repeat("func ", 1<<20)); got != nil {
		t.Errorf("a line of megabytes has %d pieces", len(got))
	}
}

func BenchmarkGo500(b *testing.B) {
	data, err := os.ReadFile("../teammate/life_phase_test.go")
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(string(data), "\n")[:500]
	b.SetBytes(int64(len(strings.Join(lines, "\n"))))
	b.ReportAllocs()
	for b.Loop() {
		l := For("go")
		for _, line := range lines {
			l.Line(line)
		}
	}
}
