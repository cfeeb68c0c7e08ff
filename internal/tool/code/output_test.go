package code

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster/tool"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä€😀\n\tx":                           "plain ä€😀\n\tx",
		"\x1b[1;31mred\x1b[0m":                     "red",
		"\x1b]0;title\x07text":                     "text",
		"\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\": "link",
		"\x1b(Bx\x1b=y\x1b7z\x1bMw":                "xyzw",
		"\x1b[2J\x1b[?25l":                         "",
		"a\r\nb\rc\r\r\nd":                         "a\nb\nc\n\nd",
		"gr\xfc\xdfe":                              "gr\uFFFDe",
		"a\x00\x00b":                               "a\uFFFDb",
		"bell\a back\b form\f del\x7f":             "bell back form del",
		"\u009b31mx":                               "31mx",
		"cut \xe2\x82":                             "cut \uFFFD",
		"\x1b]never ends\nnext line":               "\nnext line",
		"\x1b[12\nx":                               "\nx",
		"\x1b\x1b[1mx":                             "x",
		"</inbox>":                                 "</inbox>",
	} {
		var c cleaner
		same(t, fmt.Sprintf("%q", in), string(c.finish(c.clean(nil, []byte(in)))), want)
	}
}

// TestCleanInPieces: where a write ends changes nothing, and nothing harmful gets through.
func TestCleanInPieces(t *testing.T) {
	piece := rapid.OneOf(rapid.Just("\x1b["), rapid.Just("\x1b]0;"), rapid.Just("31m"), rapid.Just("\r"),
		rapid.Just("\n"), rapid.Just("€"),
		rapid.Just("\x1b"), rapid.Just("\a"), rapid.Just("\\"), rapid.String(),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(t *rapid.T) {
		whole := strings.Join(rapid.SliceOf(piece).Draw(t, "pieces"), "")
		var one, many cleaner
		want := one.finish(one.clean(nil, []byte(whole)))
		var got []byte
		for rest := []byte(whole); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			got = many.clean(got, rest[:n])
			rest = rest[n:]
		}
		got = many.finish(got)
		if !bytes.Equal(got, want) {
			t.Fatalf("in pieces %q, at once %q", got, want)
		}
		if !utf8.Valid(got) {
			t.Fatalf("not UTF-8: %q", got)
		}
		for _, r := range string(got) {
			if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
				t.Fatalf("a control character: %q", got)
			}
		}
	})
}

// TestOutputOfAnySize: everything up to the limit; of more, a beginning, an end, and a file with the whole.
func TestOutputOfAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "output")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(dir)
		line := rapid.SampledFrom([]string{"a line\n", "ä€😀\n", strings.Repeat("long ", 5000) + "\n", "x"}).Draw(t, "line")
		lines := rapid.SampledFrom([]int{0, 1, 100, 7000, 20_000}).Draw(t, "lines")
		if len(line) > 1000 {
			lines /= 1000
		}
		whole := strings.Repeat(line, lines)
		out := NewOutput(filepath.Join(dir, "outputs"), "bash")
		for piece := range slices.Chunk([]byte(whole), rapid.SampledFrom([]int{1000, 4096, 1 << 20}).Draw(t, "step")) {
			if m, err := out.Write(piece); m != len(piece) || err != nil {
				t.Fatal(m, err)
			}
		}
		out.Done()
		got := out.Text()
		if utf8.RuneCountInString(got) > tool.MaxOutput || !utf8.ValidString(got) {
			t.Fatalf("%d characters", utf8.RuneCountInString(got))
		}
		last := out.Last(3)
		if want := strings.Split(strings.TrimRight(whole, "\n"), "\n"); len(line) < 100 && line != "x" &&
			last != strings.Join(want[max(0, len(want)-3):], "\n") {
			t.Fatalf("last lines %q", last)
		}
		if out.Path() == "" {
			if got != whole {
				t.Fatal("something is missing, and no file has it")
			}
			return
		}
		data, err := os.ReadFile(out.Path())
		if err != nil || string(data) != whole {
			t.Fatalf("%d bytes in the file, %d were written, error %v", len(data), len(whole), err)
		}
		head, rest, ok := strings.Cut(got, "\n... ")
		_, tail, ok2 := strings.Cut(rest, " ...\n")
		if !ok || !ok2 || !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) || len(tail) < 10_000 ||
			len(head) < 10_000 {
			t.Fatalf("beginning of %d bytes, end of %d", len(head), len(tail))
		}
		if want := fmt.Sprintf("%d of %d characters cut here; the whole is in %s",
			utf8.RuneCountInString(whole)-utf8.RuneCountInString(head)-utf8.RuneCountInString(tail),
			utf8.RuneCountInString(whole), out.Path()); !strings.HasPrefix(rest, want) {
			t.Fatalf("said: %.200s\nwant: %s", rest, want)
		}
	})
}

// TestOutputIsBounded: neither memory nor the file grow with what is printed.
func TestOutputIsBounded(t *testing.T) {
	const most = 4 << 20
	out := NewOutput(t.TempDir(), "bash")
	out.maxFileBytes = most
	block := bytes.Repeat([]byte("0123456789abcde\n"), 1<<16/16)
	if n := testing.AllocsPerRun(2*most/len(block), func() { _, _ = out.Write(block) }); n > 10 {
		t.Errorf("%f allocations for each write", n)
	}
	out.Done()
	if fi, err := os.Stat(out.Path()); err != nil || fi.Size() != most {
		t.Errorf("the file has %d bytes, error %v", fi.Size(), err)
	}
	if got := out.Text(); !strings.Contains(got, "characters cut here; the first 4194 KB are in "+out.Path()+" ...") {
		t.Errorf("%.100s ... %s", got, got[len(got)/2-200:len(got)/2+200])
	}
}

func TestOutputWithoutAFile(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out := NewOutput(blocked, "bash")
	fmt.Fprint(out, strings.Repeat("x\n", 60_000))
	out.Done()
	if got := out.Text(); !strings.Contains(got, "the whole could not be kept: mkdir "+blocked) || out.Path() != "" {
		t.Errorf("%s", got[len(got)/2-200:len(got)/2+200])
	}
}
