package git_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/internal/git"
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
	shown := func(all []git.FileChange, err error) string {
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
	equal(t, "the tree", shown(git.TreeChanges(t.Context(), r, base, work+"^{tree}")), first)
	want := `.gitattributes [] "* -di"
a ["a\n"] "ours\n"
a ["ours\n" "side\n"] "both\n"
late [] "late\n"
there ["a lin"] "a lin"
ünicode "x" [] "new\n"`
	equal(t, "the commits", shown(git.HistoryChanges(t.Context(), r, run("rev-parse", "side"), head)), want)
	equal(t, "no commits", shown(git.HistoryChanges(t.Context(), r, head, head)), "")
	if _, err := git.HistoryChanges(t.Context(), r, base, "nothing"); err == nil {
		t.Error("no error for what is no commit")
	}
}

// skipOwn leaves out what is the team's.
func skipOwn(ref string) bool { return strings.HasPrefix(ref, "refs/heads/wt/") }

// Each change of what is the user's is seen, once, with its name.
func TestFingerprint(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "1\n", "d/b": "1\n", ".gitignore": "*.log\n"})
	gittest.Write(t, root, map[string]string{"notes": "mine\n"})
	repo := require.Value(git.Open(t.Context(), root))(t)
	take := func(before *git.Fingerprint) *git.Fingerprint {
		t.Helper()
		return require.Value(git.TakeFingerprint(t.Context(), repo, before, skipOwn))(t)
	}
	last := take(nil)
	for _, c := range []struct{ do, want string }{
		{"true", ""},
		{"git status", ""},
		{"touch x.log", ""},
		{"git branch wt/lane && git commit-tree -m x HEAD^{tree}", ""},
		{"echo 2 >a", "files of your checkout: a"},
		{"echo theirs >notes", "files of your checkout: notes"},
		{"rm notes", "files of your checkout: notes"},
		{"mkdir new && echo x >new/file", "files of your checkout: new/file"},
		{"rm -r d", "files of your checkout: d/b"},
		{"chmod +x a", "files of your checkout: a"},
		{"git add a", "the index"},
		{"git update-index --assume-unchanged .gitignore", "the index"},
		{"git branch feature", "refs: feature"},
		{"git pack-refs --all", ""},
		{"git tag v1 && git update-ref refs/remotes/o/main HEAD", "refs: o/main, tag v1"},
		{"git branch -D feature", "refs: feature"},
		{"git update-ref refs/stash HEAD", "refs: the stash"},
		{"git replace HEAD $(git commit-tree -m y HEAD^{tree})", "refs: refs/replace/"},
		{"git switch -q -c other", "HEAD (other, was main); refs: other"},
		{"git checkout -q --detach", "HEAD ("},
		{"git config user.name x", ".git/config"},
		{"printf '#!/bin/sh\\n' >.git/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"rm .git/hooks/pre-commit", ".git/hooks/pre-commit"},
		{"echo x >>.git/info/exclude", ".git/info/exclude"},
		{"true", ""},
	} {
		cmd := exec.Command("sh", "-c", c.do)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", c.do, err, out)
		}
		now := take(last)
		if got := strings.Join(now.Changes(last), "; "); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
			t.Errorf("%s: %q, want %q", c.do, got, c.want)
		}
		last = now
	}
}
