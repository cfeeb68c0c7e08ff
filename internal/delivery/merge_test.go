package delivery_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

func TestMain(m *testing.M) { gittest.Main(m) }

// target is the branch on which the work lies in these tests.
const target = "muster/team"

// newRepository returns a repository on main with the files a, b and c, and a target that has changed a.
func newRepository(t *testing.T) (dir string, tip string) {
	t.Helper()
	dir = gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
	gittest.Git(t, dir, "switch", "-q", "-c", target)
	gittest.Write(t, dir, map[string]string{"a": "landed\n"})
	gittest.Git(t, dir, "commit", "-qam", "landed")
	tip = gittest.Git(t, dir, "rev-parse", "HEAD")
	gittest.Git(t, dir, "switch", "-q", "main")
	return dir, tip
}

// commit commits the files in the user's checkout.
func commit(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	gittest.Write(t, dir, files)
	gittest.Git(t, dir, "add", "-A")
	gittest.Git(t, dir, "commit", "-qm", "mine")
}

// contents describes a checkout without the times of its files: git writes a file anew when it restores it.
func contents(t *testing.T, dir string) string {
	t.Helper()
	return regexp.MustCompile(`\d+-\d+-\d+ \S+ \+0000 UTC`).ReplaceAllString(gittest.Checkout(t, dir), "TIME")
}

// merge merges the target into the checkout at dir.
func merge(t *testing.T, dir, tip string) (delivery.Merged, error) {
	t.Helper()
	repo := require.Value(git.Open(t.Context(), dir))(t)
	c, err := delivery.Open(t.Context(), repo, target)
	if err != nil {
		return delivery.Merged{}, err
	}
	return delivery.Merge(t.Context(), c, target, tip, false)
}

// What cannot be merged without a loss is refused with what to do, and nothing has changed.
func TestMergeRefusesWhatWouldLoseSomething(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string)
		code    *muster.Error
		says    string
		hint    string
	}{
		"a changed file": {func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"a": "mine\n"})
		}, muster.ErrHeld, "uncommitted changes in a would be overwritten", "git stash"},
		"an untracked file": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "rm", "-q", "a")
			gittest.Git(t, dir, "commit", "-qm", "without a")
			gittest.Git(t, dir, "branch", "-f", target, "HEAD")
			gittest.Git(t, dir, "worktree", "add", "-q", dir+"-2", target)
			gittest.Write(t, dir+"-2", map[string]string{"new": "landed\n"})
			gittest.Git(t, dir+"-2", "add", "-A")
			gittest.Git(t, dir+"-2", "commit", "-qm", "new")
			gittest.Write(t, dir, map[string]string{"new": "mine\n"})
		}, muster.ErrHeld, "files that git does not track would be overwritten, so main stays as it is: new", "move them elsewhere"},
		"a staged change beside a merge": {func(t *testing.T, dir string) {
			commit(t, dir, map[string]string{"b": "mine\n"})
			gittest.Write(t, dir, map[string]string{"c": "staged\n"})
			gittest.Git(t, dir, "add", "c")
		}, muster.ErrHeld, "staged changes (c)", "git stash"},
		"a conflict": {func(t *testing.T, dir string) {
			commit(t, dir, map[string]string{"a": "mine\n"})
		}, muster.ErrInvalid, "main and muster/team have both changed a", "git merge muster/team"},
		"a detached HEAD": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "switch", "-q", "--detach")
		}, muster.ErrInvalid, "HEAD is detached", "git switch BRANCH"},
		"the target itself": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "switch", "-q", target)
		}, muster.ErrInvalid, "muster/team is checked out here", "git switch"},
		"a lane": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "switch", "-q", "-c", "wt/task-1")
		}, muster.ErrInvalid, "is a lane of the team", "cd "},
		"a merge under way": {func(t *testing.T, dir string) {
			commit(t, dir, map[string]string{"a": "mine\n"})
			if _, err := gittest.Try(dir, "merge", target); err == nil {
				t.Fatal("it merges")
			}
		}, muster.ErrHeld, "a merge is under way", "git merge --abort"},
		"a hook that refuses": {func(t *testing.T, dir string) {
			commit(t, dir, map[string]string{"b": "mine\n"})
			hook := filepath.Join(dir, ".git", "hooks", "pre-merge-commit")
			require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\necho not today >&2\nexit 1\n"), 0o755))
		}, muster.ErrUnavailable, "not today", "git merge muster/team"},
		"another history": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "checkout", "-q", "--orphan", "new")
			gittest.Git(t, dir, "commit", "-qm", "new")
		}, muster.ErrInvalid, "no commit in common", "--allow-unrelated-histories"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, tip := newRepository(t)
			c.prepare(t, dir)
			if at, err := gittest.Try(dir, "rev-parse", target); err == nil {
				tip = at
			}
			before := contents(t, dir)
			_, err := merge(t, dir, tip)
			failed, ok := errors.AsType[*muster.Error](err)
			if !ok || failed.Code != c.code.Code || !strings.Contains(failed.Message, c.says) ||
				!strings.Contains(failed.Hint, c.hint) {
				t.Fatalf("%#v", err)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
			}
			if name != "a merge under way" {
				if _, err := os.Stat(filepath.Join(dir, ".git", "MERGE_HEAD")); err == nil {
					t.Error("a merge was left half done")
				}
			}
		})
	}
}

// What is in nobody's way stays uncommitted, and the branch moves forward.
func TestMergeMovesForwardBesideOtherChanges(t *testing.T) {
	t.Parallel()
	dir, tip := newRepository(t)
	gittest.Write(t, dir, map[string]string{"b": "mine\n", "untracked": "mine\n"})
	m, err := merge(t, dir, tip)
	if err != nil || m.How != delivery.FastForward || m.At != tip || m.Branch != "main" || len(m.Commits) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	if at := gittest.Git(t, dir, "rev-parse", "main"); at != tip {
		t.Errorf("main is at %s", at)
	}
	if a, b := gittest.Read(t, dir, "a"), gittest.Read(t, dir, "b"); a != "landed\n" || b != "mine\n" {
		t.Errorf("the files have %q and %q", a, b)
	}
	if m, err = merge(t, dir, tip); err != nil || m.How != delivery.Nothing || len(m.Commits) != 0 {
		t.Errorf("once more: %+v, %v", m, err)
	}
}

// Where both have commits, the user's own git makes the merge: with their hooks, in a linked worktree too.
func TestMergeIsTheUsers(t *testing.T) {
	t.Parallel()
	dir, tip := newRepository(t)
	linked := dir + "-linked"
	gittest.Git(t, dir, "worktree", "add", "-q", "-b", "feature", linked)
	commit(t, linked, map[string]string{"b": "mine\n"})
	hook := filepath.Join(dir, ".git", "hooks", "commit-msg")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\necho Signed-off-by: me >>\"$1\"\n"), 0o755))
	m, err := merge(t, linked, tip)
	if err != nil || m.How != delivery.MergeCommit || m.Branch != "feature" || len(m.Commits) != 1 {
		t.Fatalf("%+v, %v", m, err)
	}
	said := gittest.Git(t, linked, "log", "-1", "--format=%an: %B")
	if !strings.HasPrefix(said, "Ann Tester: Merge branch 'muster/team' into feature") ||
		!strings.Contains(said, "Signed-off-by: me") {
		t.Errorf("the commit says %q", said)
	}
	if at := gittest.Git(t, dir, "rev-parse", "main"); at == tip {
		t.Error("main has moved too")
	}
}

// What the user has taken by squash is not merged a second time.
func TestMergeOfWhatWasSquashed(t *testing.T) {
	t.Parallel()
	dir, tip := newRepository(t)
	commit(t, dir, map[string]string{"b": "mine\n"})
	gittest.Git(t, dir, "merge", "-q", "--squash", target)
	gittest.Git(t, dir, "commit", "-qm", "squashed")
	head := gittest.Git(t, dir, "rev-parse", "HEAD")
	m, err := merge(t, dir, tip)
	if err != nil || m.How != delivery.Nothing || gittest.Git(t, dir, "rev-parse", "HEAD") != head {
		t.Fatalf("%+v, %v", m, err)
	}
}
