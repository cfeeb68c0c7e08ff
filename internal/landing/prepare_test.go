package landing_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
	"muster/internal/testing/wait"
)

// branches is a repository with branches that stand differently to HEAD, which is at main.
func branches(t *testing.T) (root string, repo *git.Repo) {
	t.Helper()
	root = gittest.Repo(t, map[string]string{"a": "1\n", "b": "1\n"})
	commit := func(branch, from string, files map[string]string, removed ...string) {
		gittest.Git(t, root, "switch", "-q", "-c", branch, from)
		gittest.Write(t, root, files)
		for _, name := range removed {
			gittest.Git(t, root, "rm", "-q", name)
		}
		gittest.Git(t, root, "add", "-A")
		gittest.Git(t, root, "commit", "-q", "-m", "of "+branch)
	}
	gittest.Git(t, root, "branch", "behind")
	commit("taken", "main", map[string]string{"a": "2\n"})
	commit("removed", "main", nil, "a")
	commit("head", "main", map[string]string{"a": "2\n"}, "b")
	commit("ahead", "head", map[string]string{"c": "1\n"})
	gittest.Git(t, root, "switch", "-q", "head")
	gittest.Git(t, root, "branch", "Same")
	gittest.Git(t, root, "symbolic-ref", "refs/heads/alias", "refs/heads/behind")
	gittest.Git(t, root, "update-ref", "refs/heads/unrelated", gittest.Git(t, root, "commit-tree", "-m", "other", "HEAD^{tree}"))
	gittest.Git(t, root, "worktree", "add", "-q", "--detach", root+"-linked")
	repo, err := git.Open(t.Context(), root)
	must(t, err)
	return root, repo
}

// What each branch is found to be, and what is said of it.
func TestPrepareTargetSaysHowABranchStands(t *testing.T) {
	t.Parallel()
	root, repo := branches(t)
	at := func(ref string) string { return gittest.Git(t, root, "rev-parse", ref) }
	for _, c := range []struct {
		branch string
		named  bool
		note   string // "" is none
		code   *muster.Error
		moves  bool
	}{
		{"refs/heads/behind", true, "behind lacks 1 commit of HEAD: lanes are made from it as it is", nil, false},
		{"ahead", true, "", nil, false},
		{"ahead", false, "ahead has 1 commit that HEAD lacks", nil, false},
		{"Same", false, "", nil, false},
		{"unrelated", false, "have diverged", muster.ErrInvalid, false},
		{"removed", false, "have diverged", muster.ErrInvalid, false}, // its merge conflicts, and leaves HEAD's files
		{"taken", false, "HEAD has all of its work", nil, true},
		{"refs/heads/behind", false, "behind was behind and moved forward to HEAD", nil, true},
	} {
		branch := strings.TrimPrefix(c.branch, "refs/heads/")
		was := at(branch)
		note, err := landing.PrepareTarget(t.Context(), repo, c.branch, c.named, false)
		if c.code != nil {
			wants(t, err, c.code, branch+" and HEAD "+c.note)
		} else if err != nil || !strings.Contains(note, c.note) || (note == "") != (c.note == "") {
			t.Errorf("%s: %q, %v", c.branch, note, err)
		}
		want := was
		if c.moves {
			want = at("HEAD")
		}
		if now := at(branch); now != want {
			t.Errorf("%s is at %s, want %s", c.branch, now, want)
		}
	}
	equal(t, "made", gittest.Git(t, root, "branch", "--list", "refs/*"), "")
}

// A branch that another program moves meanwhile is left where that one put it.
func TestPrepareTargetOfABranchThatMoves(t *testing.T) {
	root, repo := branches(t)
	oddGit(t, "*' update-ref '*", 1, "git --git-dir='"+root+"/.git' branch -qf behind taken")
	_, err := landing.PrepareTarget(t.Context(), repo, "behind", false, false)
	wants(t, err, muster.ErrHeld, "behind has just been moved by somebody else")
	equal(t, "it was moved", gittest.Git(t, root, "rev-parse", "behind"), gittest.Git(t, root, "rev-parse", "taken"))
}

// The end of the context is what the caller is told, wherever it comes.
func TestPrepareTargetIsGivenUp(t *testing.T) {
	root, repo := branches(t)
	ended, end := context.WithCancel(t.Context())
	end()
	_, err := landing.PrepareTarget(ended, repo, "Same", false, false)
	if !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrInvalid) {
		t.Errorf("at the name: %v", err)
	}
	gittest.Git(t, root, "update-ref", "refs/heads/muster/demo", "HEAD")
	lock := root + "/.git/refs/heads/muster/demo.lock"
	must(t, os.WriteFile(lock, nil, 0o600))
	if _, err = landing.PrepareTarget(ended, repo, "muster/demo", false, false); !errors.Is(err, context.Canceled) {
		t.Errorf("at the lock: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	happened := oddGit(t, "*' merge-tree '*", 1, "exec sleep 60")
	over := make(chan error, 1)
	go func() {
		_, err := landing.PrepareTarget(ctx, repo, "taken", false, false)
		over <- err
	}()
	wait.For(t, "merging", happened)
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Errorf("at the merge: %v", err)
	}
}

// A user whose HEAD has no commit gets an error, and refs that cannot be synced are not called moved.
func TestPrepareTargetNeedsACommitAndADisk(t *testing.T) {
	t.Parallel()
	root, repo := branches(t)
	gittest.Git(t, root, "symbolic-ref", "HEAD", "refs/heads/unborn")
	wants(t, fault(landing.PrepareTarget(t.Context(), repo, "behind", false, false)), muster.ErrNotFound, "HEAD")
	gittest.Git(t, root, "symbolic-ref", "HEAD", "refs/heads/head")
	must(t, os.Symlink("reftable", root+"/.git/reftable"))
	_, err := landing.PrepareTarget(t.Context(), repo, "behind", false, false)
	wants(t, err, muster.ErrUnavailable, "cannot be synced")
}
