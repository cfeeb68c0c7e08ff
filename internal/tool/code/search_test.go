package code

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
)

func lanes(t *testing.T, f func(t *testing.T, k *kit, ignores bool)) {
	t.Run("git", func(t *testing.T) {
		k := newKit(t)
		k.git("init", "-q")
		f(t, k, true)
	})
	t.Run("plain", func(t *testing.T) { f(t, newKit(t), false) })
}

func TestGlob(t *testing.T) {
	lanes(t, func(t *testing.T, k *kit, ignores bool) {
		for _, name := range []string{"a.go", "b.txt", "cmd/main.go", "cmd/x/y.go", "cmd/x/y_test.go", "ü b/c.go",
			"build/out.go"} {
			k.put(name, "x")
		}
		k.put(".gitignore", "/build/\n")
		k.put("gone.go", "x")
		if ignores {
			k.git("add", ".")
			k.put("sub/repo.go", "x")
		} else {
			k.put("sub/.git/inside.go", "x")
			k.put("sub/repo.go", "x")
		}
		require.NoError(t, os.Remove(filepath.Join(k.dir, "gone.go")))
		out := "build/out.go\n"
		if ignores {
			out = ""
		}
		for pattern, want := range map[string]string{
			"*.go":             "a.go\n" + out + "cmd/main.go\ncmd/x/y.go\ncmd/x/y_test.go\nsub/repo.go\nü b/c.go",
			"**/*.go":          "a.go\n" + out + "cmd/main.go\ncmd/x/y.go\ncmd/x/y_test.go\nsub/repo.go\nü b/c.go",
			"./*.go":           "a.go",
			"cmd/*.go":         "cmd/main.go",
			"cmd/**":           "cmd/main.go\ncmd/x/y.go\ncmd/x/y_test.go",
			"cmd/":             "cmd/main.go\ncmd/x/y.go\ncmd/x/y_test.go",
			"*/x/y*.go":        "cmd/x/y.go\ncmd/x/y_test.go",
			"**/*_test.{go,c}": "cmd/x/y_test.go",
			"a.go":             "a.go",
			"main.go":          "cmd/main.go",
			"cmd":              "cmd is a directory: cmd/** lists its files.",
			"build/*":          "build/out.go", // asked for by name, ignored or not
			"*.rs":             "No file matches *.rs.",
			"none/*.go":        "No file matches none/*.go.",
			k.dir + "/cmd/*":   k.dir + "/cmd/main.go",
		} {
			same(t, pattern, k.ok("glob", in{"pattern": pattern}), want)
		}
		same(t, "no pattern", k.sorry("glob", in{"pattern": "[a"}),
			`"[a" is not a pattern: use *, **, ?, [a-z] and {a,b}.`)
		k.sorry("glob", in{"pattern": ""})
	})
}

func TestGlobByAge(t *testing.T) {
	k := newKit(t)
	for i, name := range []string{"old.go", "new.go", "a.go", "sub/b.go"} {
		k.put(name, "x")
		changed := time.Unix([]int64{1000, 3000, 2000, 2000}[i], 0)
		require.NoError(t, os.Chtimes(filepath.Join(k.dir, name), changed, changed))
	}
	same(t, "by age", k.ok("glob", in{"pattern": "*.go", "sort": "age"}), "new.go\na.go\nsub/b.go\nold.go")
	same(t, "by name", k.ok("glob", in{"pattern": "*.go", "sort": "name"}), "a.go\nnew.go\nold.go\nsub/b.go")
}

func TestGlobIsBounded(t *testing.T) {
	k := newKit(t)
	for i := range 1100 {
		k.put(fmt.Sprintf("f%04d", i), "")
	}
	got := strings.Split(k.ok("glob", in{"pattern": "f*"}), "\n")
	if len(got) != 1001 || got[999] != "f0999" || got[1000] != "[the first 1000 of 1100 files: narrow the pattern]" {
		t.Errorf("%d lines, last %q", len(got), got[len(got)-1])
	}
}

func TestGrep(t *testing.T) {
	lanes(t, func(t *testing.T, k *kit, ignores bool) {
		k.put("a.go", "package a\n\nfunc Alpha() {}\n")
		k.put("sub/b.go", "func beta() {}\r\nfunc gamma() {}\r\n")
		k.put("sub/c.txt", "func in text\n")
		k.put("bin", "func\x00")
		k.put("latin", "func gr\xfcn\n")
		k.put(".gitignore", "ignored\n")
		k.put("ignored", "func hidden\n")
		k.put("long", strings.Repeat("x", 5000)+"func"+strings.Repeat("y", 5000)+"\n")
		hidden := "ignored:1:func hidden\n"
		if ignores {
			hidden = ""
		}
		long := "long:1:..." + strings.Repeat("x", 100) + "func" + strings.Repeat("y", 196) + "...\n"
		for name, c := range map[string]struct {
			in   in
			want string
		}{
			"all": {in{"pattern": "func"}, "a.go:3:func Alpha() {}\n" + hidden + "latin:1:func gr\uFFFDn\n" +
				long + "sub/b.go:1:func beta() {}\nsub/b.go:2:func gamma() {}\nsub/c.txt:1:func in text\n"},
			"a directory": {in{"pattern": "func", "path": "sub"},
				"sub/b.go:1:func beta() {}\nsub/b.go:2:func gamma() {}\nsub/c.txt:1:func in text\n"},
			"an ignored": {in{"pattern": "func", "path": "ignored"}, "ignored:1:func hidden\n"},
			"by name": {in{"pattern": "func", "glob": "*.go"},
				"a.go:3:func Alpha() {}\nsub/b.go:1:func beta() {}\nsub/b.go:2:func gamma() {}\n"},
			"by path": {in{"pattern": "func", "glob": "sub/*.go"},
				"sub/b.go:1:func beta() {}\nsub/b.go:2:func gamma() {}\n"},
			"below it": {in{"pattern": "func", "path": "sub", "glob": "./*.txt"}, "sub/c.txt:1:func in text\n"},
			"absolute": {in{"pattern": "beta", "path": k.dir + "/sub"}, k.dir + "/sub/b.go:1:func beta() {}\n"},
			"nothing":  {in{"pattern": "delta", "glob": "*.go"}, "No match in 2 files."},
		} {
			same(t, name, k.ok("grep", c.in), c.want)
		}
		same(t, "no regexp", k.sorry("grep", in{"pattern": "a(b"}),
			"error parsing regexp: missing closing ): `a(b` (RE2 syntax: escape what is meant literally; no "+
				"lookaround, no backreferences).")
		same(t, "no file", k.sorry("grep", in{"pattern": "a", "path": "sub/d.go"}),
			"there is no sub/d.go; in the same directory: sub/b.go")
		k.sorry("grep", in{"pattern": ""})
		k.sorry("grep", in{"pattern": "a", "glob": "[a"})
	})
}

// TestGrepIsBounded: the first matches in order, whoever finds them first, and how many there are.
func TestGrepIsBounded(t *testing.T) {
	k := newKit(t)
	var matches []string
	for i := range 300 {
		k.put(fmt.Sprintf("f%03d", i), strings.Repeat("match\nother\n", i%7))
		for line := range i % 7 {
			matches = append(matches, fmt.Sprintf("f%03d:%d:match\n", i, 2*line+1))
		}
	}
	want := strings.Join(matches[:200], "") + fmt.Sprintf("[the first 200 of %d matches in %d files: narrow the search, or go on "+
		"with offset 200]\n", len(matches), 300-43)
	for range 5 {
		same(t, "in order", k.ok("grep", in{"pattern": "match"}), want)
	}
	page := k.ok("grep", in{"pattern": "match", "offset": 203, "head_limit": 7})
	page, _, _ = strings.Cut(page, "[")
	same(t, "a page", page, strings.Join(matches[203:210], ""))
}

func TestSearchesEndWithTheirContext(t *testing.T) {
	k := newKit(t)
	for i := range 100 {
		k.put(fmt.Sprintf("f%d", i), "x")
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(muster.CauseUser)
	for _, name := range []string{"grep", "glob"} {
		if _, err := k.try(ctx, name, in{"pattern": "x"}); !errors.Is(err, muster.CauseUser) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGitIsNotLedAstray: what an agent writes into the configuration runs nothing.
func TestGitIsNotLedAstray(t *testing.T) {
	k := newKit(t)
	k.git("init", "-q")
	k.put("a.go", "x")
	k.put("evil", "#!/bin/sh\ntouch "+k.dir+"/ran\n")
	require.NoError(t, os.Chmod(filepath.Join(k.dir, "evil"), 0o700))
	k.git("config", "core.fsmonitor", filepath.Join(k.dir, "evil"))
	t.Setenv("GIT_DIR", "/nowhere")
	same(t, "glob", k.ok("glob", in{"pattern": "*.go"}), "a.go")
	if _, err := os.Stat(filepath.Join(k.dir, "ran")); err == nil {
		t.Error("glob ran a program that the repository's configuration names")
	}
}

func TestGrepShowsWhatModelsAskFor(t *testing.T) {
	k := newKit(t)
	k.put("a.go", "package a\n\nfunc Alpha() {\n\treturn\n}\n\nfunc Beta() {\n\treturn\n}\n")
	k.put("b.ts", "export const alpha = 1\r\nconst b = alpha\r\n")
	k.put("sub/c.tsx", "alpha\nalpha\nalpha")
	k.put("sub/d.pyi", "ALPHA = 1\n")
	k.put("sub/Makefile", "alpha:\n")
	k.put("sub/e.gone", "alpha alpha\n")
	for name, c := range map[string]struct {
		in   in
		want string
	}{
		"after": {in{"pattern": "Alpha", "-A": 2}, "a.go:3:func Alpha() {\na.go-4-\treturn\na.go-5-}\n"},
		"around, with a gap": {in{"pattern": "func", "-C": 1, "glob": "*.go"}, "a.go-2-\na.go:3:func Alpha() {\n" +
			"a.go-4-\treturn\n--\na.go-6-\na.go:7:func Beta() {\na.go-8-\treturn\n"},
		"around, touching": {in{"pattern": "return", "-C": 2, "glob": "*.go"}, "a.go-2-\na.go-3-func Alpha() {\n" +
			"a.go:4:\treturn\na.go-5-}\na.go-6-\na.go-7-func Beta() {\na.go:8:\treturn\na.go-9-}\n"},
		"a match in the lines after another": {in{"pattern": "alpha", "-A": 1, "path": "sub/c.tsx"},
			"sub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
		"files": {in{"pattern": "alpha", "output_mode": "files_with_matches"}, "b.ts\nsub/Makefile\nsub/c.tsx\nsub/e.gone\n"},
		"counts": {in{"pattern": "alpha", "output_mode": "count"},
			"b.ts:2\nsub/Makefile:1\nsub/c.tsx:3\nsub/e.gone:1\n[4 files with 7 matches]\n"},
		"the next files": {in{"pattern": "alpha", "output_mode": "files_with_matches", "head_limit": 1, "offset": 2},
			"sub/c.tsx\n[3 to 3 of 4 files; go on with offset 3]\n"},
		"the last matches": {in{"pattern": "alpha", "head_limit": 3, "offset": 5},
			"sub/c.tsx:3:alpha\nsub/e.gone:1:alpha alpha\n[6 to 7 of 7 matches in 4 files: these are the last]\n"},
		"a type":            {in{"pattern": "alpha", "type": "ts"}, "b.ts:1:export const alpha = 1\nb.ts:2:const b = alpha\nsub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
		"by whole names":    {in{"pattern": "alpha", "type": "make"}, "sub/Makefile:1:alpha:\n"},
		"type and glob":     {in{"pattern": "alpha", "type": "ts", "glob": "sub/**", "head_limit": 1, "output_mode": "files_with_matches"}, "sub/c.tsx\n"},
		"an excluding glob": {in{"pattern": "alpha", "glob": "!*.ts*", "output_mode": "count"}, "sub/Makefile:1\nsub/e.gone:1\n[2 files with 2 matches]\n"},
		"no such file":      {in{"pattern": "alpha", "type": "rust"}, "There is no file to search: nothing is there that path, glob and type accept."},
		"lines": {in{"pattern": `Alpha\(\) \{.*?\}`, "multiline": true},
			"a.go:3:func Alpha() {\na.go:4:\treturn\na.go:5:}\n"},
		"a newline in the pattern": {in{"pattern": `\}\n\nfunc`}, "a.go:5:}\na.go:6:\na.go:7:func Beta() {\n"},
		"a class of all but some":  {in{"pattern": `return[^ ]`}, "No match in 6 files."},
		"the end of a last line":   {in{"pattern": `a$`, "multiline": true, "path": "sub/c.tsx", "offset": 2}, "sub/c.tsx:3:alpha\n[3 to 3 of 3 matches in 1 file: these are the last]\n"},
		"nothing, there":           {in{"pattern": `$|x`, "multiline": true, "path": "sub/c.tsx", "output_mode": "count"}, "sub/c.tsx:3\n"},
		"lines with context": {in{"pattern": `return\s+\}`, "multiline": true, "-A": 1, "head_limit": 1},
			"a.go:4:\treturn\na.go:5:}\na.go-6-\n[the first 1 of 2 matches in 1 file: narrow the search, or go on with offset 1]\n"},
		"matches that share a line": {in{"pattern": "alpha\nalpha|alpha$", "path": "sub/c.tsx"},
			"sub/c.tsx:1:alpha\nsub/c.tsx:2:alpha\nsub/c.tsx:3:alpha\n"},
		"a text, not a pattern": {in{"pattern": "Alpha() {", "literal": true}, "a.go:3:func Alpha() {\n"},
		"Copilot's text":        {in{"query": "Alpha() {", "isRegexp": false}, "a.go:3:func Alpha() {\n"},
		"Copilot's pattern":     {in{"query": "Al.ha", "isRegexp": true}, "a.go:3:func Alpha() {\n"},
		"the beginning of a file": {in{"pattern": `\A\w+|\d\z`, "multiline": true, "type": "ts"},
			"b.ts:1:export const alpha = 1\nsub/c.tsx:1:alpha\n"},
	} {
		same(t, name, k.ok("grep", c.in), c.want)
	}
	for name, c := range map[string]struct {
		in   in
		want string
	}{
		"a negative count":    {in{"pattern": "a", "-A": -1}, "-A, -B, -C, head_limit and offset are counts: they cannot be negative."},
		"a pattern as a type": {in{"pattern": "a", "type": "*.go"}, "type is a name such as go, py or ts; a pattern such as *.go belongs in glob."},
		"a far offset":        {in{"pattern": "a", "offset": 1_000_000}, "offset may be 50000 at most: narrow the search."},
	} {
		same(t, name, k.sorry("grep", c.in), c.want)
	}
}

// TestGrepReadsLargeFiles: a match behind what a worker reads at once, in a line of any length.
func TestGrepReadsLargeFiles(t *testing.T) {
	k := newKit(t)
	k.put("wide", strings.Repeat("x", 1<<20)+"needle"+strings.Repeat("y", 1<<20))
	k.put("long", strings.Repeat("hay\n", 2<<20)+"needle\nhay\n")
	same(t, "wide", k.ok("grep", in{"pattern": "nee[d]le", "path": "wide"}),
		fmt.Sprintf("wide:1:...%sneedle%s...\n", strings.Repeat("x", 100), strings.Repeat("y", 194)))
	same(t, "long", k.ok("grep", in{"pattern": "needle", "path": "long", "-C": 1}),
		"long-2097152-hay\nlong:2097153:needle\nlong-2097154-hay\n")
}

// TestQueryFindsWhatRegexpFinds compares a search with package regexp, line by line, and over lines.
func TestQueryFindsWhatRegexpFinds(t *testing.T) {
	atom := rapid.SampledFrom([]string{"a", "b", "ab", "é", ".", `\w`, `\s`, `\S`, `[^a]`, `[a-é]`, "^", "$", `\b`, `\B`,
		`\d+`, "(?i:B)", "k", "(?i:K)", `\x{fffd}`, `\A`, `\z`, "aba", `\r`})
	expression := rapid.Custom(func(t *rapid.T) string {
		s := ""
		for i := range rapid.IntRange(1, 4).Draw(t, "parts") {
			part := atom.Draw(t, "atom") + rapid.SampledFrom([]string{"", "", "*", "+", "?", "{2}", "*?", "??"}).Draw(t, "times")
			switch {
			case i > 0 && rapid.IntRange(0, 3).Draw(t, "or") == 0:
				s = "(" + s + ")|" + part
			default:
				s += part
			}
		}
		return s
	})
	text := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "ab", " ", "\n", "\n", "\r\n", "\r", "é", "\xff", "K", "\u212a", "7",
		"_", "世", "\uFFFD"}), 0, 30)
	rapid.Check(t, func(t *rapid.T) {
		in := grepInput{Pattern: expression.Draw(t, "pattern"), IgnoreCase: rapid.Bool().Draw(t, "-i")}
		if _, err := regexp.Compile(in.Pattern); err != nil {
			t.Skip(err)
		}
		data, flag := []byte(strings.Join(text.Draw(t, "text"), "")), ""
		if in.IgnoreCase {
			flag = "i"
		}
		check := func(want []int) {
			q, err := newQuery(in)
			var got []int
			if err == nil {
				err = q.each(context.Background(), data, func(from, _ int) bool {
					got = append(got, bytes.Count(data[:from], []byte("\n")))
					return true
				})
			}
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%+v in %q: lines %v, want %v; %v", in, data, got, want, err)
			}
		}
		re := regexp.MustCompile("(?" + flag + ")" + in.Pattern)
		var lines []int
		for i, line := range bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n")) {
			if len(data) > 0 && re.Match(bytes.TrimSuffix(line, []byte("\r"))) {
				lines = append(lines, i)
			}
		}
		check(lines)
		// Over lines, a match is the first one behind the last line of the match before.
		in.Multiline, lines = true, nil
		for pos := 0; pos < len(data); {
			re := regexp.MustCompile(fmt.Sprintf(`\A(?s:.{%d}.*?)((?sm%s:%s))`, utf8.RuneCount(data[:pos]), flag, in.Pattern))
			place := re.FindSubmatchIndex(data)
			if place == nil || isBehind(data, place[2]) {
				break
			}
			lines = append(lines, bytes.Count(data[:place[2]], []byte("\n")))
			pos = lineAfter(data, place[2], place[3])
		}
		check(lines)
	})
}
