package landing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// What has changed is told by contents: moved and odd files, submodules, merges, and whatever attributes say.
func TestFileChanges(t *testing.T) {
	long := strings.Repeat("a line\n", 50)
	root := gittest.Repo(t, map[string]string{"a": "a\n", "moved": long, "gone": "gone\n"})
	run := func(args ...string) string { return strings.TrimSpace(gittest.Git(t, root, args...)) }
	write := func(path, text string) {
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	r := require.Value(git.Open(t.Context(), root))(t)
	base := run("rev-parse", "HEAD")
	run("checkout", "-qb", "side")
	write("a", "side\n")
	run("commit", "-qam", "side")
	run("checkout", "-qb", "work", base)
	write(".gitattributes", "* -diff binary\n")
	write("a", "ours\n")
	write("ünicode \"x\"", "new\n")
	run("mv", "moved", "there")
	write("there", long+"more\n")
	run("rm", "-q", "gone")
	run("update-index", "--add", "--cacheinfo", "160000,"+base+",sub")
	run("add", "-A", ".gitattributes", "a", "ünicode \"x\"", "there")
	run("commit", "-qm", "work")
	work := run("rev-parse", "HEAD")
	write("late", "late\n")
	run("add", "late")
	run("commit", "-qm", "late")
	run("rm", "-q", "late")
	run("commit", "-qm", "not late")
	if _, err := r.Run(t.Context(), root, "merge", "-q", "side"); err == nil {
		t.Fatal("no conflict")
	}
	write("a", "both\n")
	run("add", "a")
	run("commit", "-qm", "merge")
	head := run("rev-parse", "HEAD")
	name := func(id string) string {
		blobs := require.Value(git.Blobs(t.Context(), r, []string{id}, 1000, 1000))(t)
		return string(blobs[id][:min(5, len(blobs[id]))])
	}
	shown := func(all []landing.FileChange, err error) string {
		require.NoError(t, err)
		var lines []string
		for _, c := range all {
			var old []string
			for _, id := range c.Old {
				old = append(old, name(id))
			}
			lines = append(lines, fmt.Sprintf("%s %q %q", c.Path, old, name(c.New)))
		}
		slices.Sort(lines)
		return strings.Join(lines, "\n")
	}
	first := `.gitattributes [] "* -di"
a ["a\n"] "ours\n"
there ["a lin"] "a lin"
ünicode "x" [] "new\n"`
	equal(t, "the tree", shown(landing.TreeChanges(t.Context(), r, base, work+"^{tree}")), first)
	want := `.gitattributes [] "* -di"
a ["a\n"] "ours\n"
a ["ours\n" "side\n"] "both\n"
late [] "late\n"
there ["a lin"] "a lin"
ünicode "x" [] "new\n"`
	equal(t, "the commits", shown(landing.HistoryChanges(t.Context(), r, run("rev-parse", "side"), head)), want)
	equal(t, "no commits", shown(landing.HistoryChanges(t.Context(), r, head, head)), "")
	if _, err := landing.HistoryChanges(t.Context(), r, base, "nothing"); err == nil {
		t.Error("no error for what is no commit")
	}
}
