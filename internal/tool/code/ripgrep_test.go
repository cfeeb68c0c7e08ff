package code

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// manyFiles makes as many files as ripgrep is used for, and a search in them.
func manyFiles(t *testing.T) (*kit, search, []string) {
	k := newKit(t)
	var names []string
	for i := range minRipgrepFiles {
		names = append(names, fmt.Sprintf("f%03d", i))
		k.put(names[i], "7\n")
	}
	at := require.Value(k.place.open("", false))(t)
	t.Cleanup(func() { _ = at.root.Close() })
	return k, search{tools: newToolset(k.place, k.jobs.launcher, nil, Options{}), at: at}, names
}

// TestRipgrepLeavesFiles: the files that a program rg names are left. Where it is missing, breaks, or belongs to the
// repository, all are.
func TestRipgrepLeavesFiles(t *testing.T) {
	bin := t.TempDir()
	k, s, names := manyFiles(t)
	for link, to := range map[string]string{"link": "f000", "out": "/dev/zero"} {
		require.NoError(t, os.Symlink(to, filepath.Join(k.dir, link)))
	}
	all := slices.Concat(names, []string{"link", "out", "gone"})
	program := func(dir, body string) {
		require.NoError(t, os.MkdirAll(dir, 0o700))
		script := []byte("#!/bin/sh\n" + body + "\n")
		require.NoError(t, os.WriteFile(filepath.Join(dir, "rg"), script, 0o700)) //nolint:gosec // A program.
	}
	program(filepath.Join(k.dir, "bin"), `printf './f001\000'`)
	two, both := []string{"f001", "f002"}, `printf './f001\000./f002\000'`
	asked := "--no-config --no-ignore --no-messages --no-mmap --text --crlf --encoding=none --files-with-matches --null " +
		"-e (?m:[0-9]$) -- ./" + strings.Join(names, " ./")
	for name, c := range map[string]struct {
		path, body string
		want       []string
	}{
		"names two":         {bin, both, two},
		"cannot read all":   {bin, both + "; exit 2", two},
		"finds nothing":     {bin, "exit 1", nil},
		"is asked for this": {bin, `[ "$*" = "` + asked + `" ] && ` + both, two},
		"is missing":        {"/nowhere", "", all},
		"is the lane's own": {k.dir + "/bin:bin:.", "", all},
		"is killed":         {bin, both + "; kill -9 $$", all},
		"refuses":           {bin, "echo regex parse error; exit 2", all},
		"names another":     {bin, both + `; printf './f9999\000'`, all},
	} {
		program(bin, c.body)
		s.tools.options.Environ = []string{"PATH=" + c.path}
		s.query = require.Value(newQuery(grepInput{Pattern: `\d$`}))(t)
		if got := s.narrow(t.Context(), slices.Clone(all)); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d files are left, want %d", name, len(got), len(c.want))
		}
	}
}

// TestRipgrepFindsTheSame: an expression means the same to ripgrep.
func TestRipgrepFindsTheSame(t *testing.T) {
	if _, err := exec.LookPath("rg"); err != nil {
		t.Skip("left out: rg is not installed")
	}
	k, s, names := manyFiles(t)
	odd := "a b\n-e \xff"
	for pattern, text := range map[string]string{
		`^x\d$`:           "a\nx7\r\n",
		`\Ax\z`:           "a\nx\r\n",
		`(?i:^X|k).$`:     "\u212aé\n",
		`é\W`:             "éé\n",
		`\bé`:             "aé\n",
		`é\B世`:            "é世\n",
		`\\bx?`:           "\\b\n",
		`[a&&b~~-]{3}`:    "a&b~\n",
		`x{2}{`:           "xx{\n",
		`[^\x00-\x7f]`:    "\x00é\n",
		`(?s)x.+|(?-s)y.`: "xé\n",
	} {
		k.put(odd, text)
		s.query = require.Value(newQuery(grepInput{Pattern: pattern}))(t)
		left := s.narrow(t.Context(), append(slices.Clone(names), odd, "gone"))
		if found := s.count(t.Context(), []string{odd}); !slices.Equal(left, []string{odd}) ||
			(len(found) != 1) != strings.Contains(text, "\x00") {
			t.Errorf("%s (%s): %d files are left, and %v matches", pattern, s.query.ripgrep, len(left), found)
		}
	}
}
