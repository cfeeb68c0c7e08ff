package git_test

import (
	"os/exec"
	"strings"
	"testing"

	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

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
