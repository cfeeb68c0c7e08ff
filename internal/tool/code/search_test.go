package code

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
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
		if err := os.Remove(filepath.Join(k.dir, "gone.go")); err != nil {
			t.Fatal(err)
		}
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
		if err := os.Chtimes(filepath.Join(k.dir, name), changed, changed); err != nil {
			t.Fatal(err)
		}
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
	if err := os.Chmod(filepath.Join(k.dir, "evil"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.git("config", "core.fsmonitor", filepath.Join(k.dir, "evil"))
	t.Setenv("GIT_DIR", "/nowhere")
	same(t, "glob", k.ok("glob", in{"pattern": "*.go"}), "a.go")
	if _, err := os.Stat(filepath.Join(k.dir, "ran")); err == nil {
		t.Error("glob ran a program that the repository's configuration names")
	}
}
