package git_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

func TestUpdateRefs(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	ctx := t.Context()
	one, _ := r.Head(ctx)
	tree := require.Value(r.Tree(ctx, one))(t)
	two := require.Value(r.CommitTree(ctx, tree, []string{one}, "two"))(t)
	do := func(want *muster.Error, u ...git.RefUpdate) {
		t.Helper()
		err := r.UpdateRefs(ctx, u)
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Fatalf("%v: %v", u, err)
		}
	}
	is := func(ref, want string) {
		t.Helper()
		returns(t, want)(r.Ref(ctx, ref))
	}
	const target, fence = "refs/heads/muster/demo", "refs/muster/landing/1-1"
	do(nil, git.RefUpdate{Ref: target, New: one}, git.RefUpdate{Ref: fence, New: two})
	is(target, one)
	// The landing: all or nothing.
	do(nil, git.RefUpdate{Ref: target, New: two, Old: one}, git.RefUpdate{Ref: fence, Old: two})
	is(target, two)
	is(fence, "")
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one, Old: two}, git.RefUpdate{Ref: fence, Old: two})
	is(target, two)
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one, Old: one})                  // verify
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one})                            // create
	do(muster.ErrStale, git.RefUpdate{Ref: target}, git.RefUpdate{Ref: fence, New: one}) // must not exist
	is(fence, "")
	do(nil, git.RefUpdate{Ref: fence}, git.RefUpdate{Ref: fence + "0", New: one})
	do(muster.ErrHeld, git.RefUpdate{Ref: target + "/below", New: one})
	do(muster.ErrHeld, git.RefUpdate{Ref: "refs/heads/muster", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: "HEAD", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: "refs/heads/a b", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: target, New: "main", Old: two})
	do(nil, git.RefUpdate{Ref: target, Old: two})
	is(target, "")
}

// Many writers count on one ref: no step is lost, and whoever was too late is told so.
func TestUpdateRefsIsCompareAndSet(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	ctx := t.Context()
	head, _ := r.Head(ctx)
	tree, _ := r.Tree(ctx, head)
	const ref = "refs/heads/count"
	require.NoError(t, r.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: head}}))
	var wg sync.WaitGroup
	var stale atomic.Int32
	for range 4 {
		wg.Go(func() {
			for done := 0; done < 5; {
				old, err := r.Ref(ctx, ref)
				if err != nil {
					t.Error(err)
					return
				}
				next, err := r.CommitTree(ctx, tree, []string{old}, "step")
				if err != nil {
					t.Error(err)
					return
				}
				switch err := r.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: next, Old: old}}); {
				case err == nil:
					done++
				case errors.Is(err, muster.ErrStale):
					stale.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := gittest.Git(t, root, "rev-list", "--count", head+".."+ref); n > "20" || n == "" {
		t.Errorf("%s steps, %d were stale", n, stale.Load())
	}
}

// next is a new commit on top of HEAD, on no branch.
func next(t *testing.T, r *git.Repo) (head, id string) {
	t.Helper()
	head = gittest.Git(t, r.Root(), "rev-parse", "HEAD")
	return head, gittest.Git(t, r.Root(), "commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "next")
}

// Where a branch is, is told without git: whoever asks at every turn would wait for a process each time.
func TestABranchIsReadFromItsFile(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, two := next(t, r)
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	returns(t, "")(r.Ref(t.Context(), "refs/heads/none"))
	t.Setenv("PATH", path)
	gittest.Git(t, root, "update-ref", "refs/muster/packed", head)
	for _, b := range []string{"a/loose", "a/packed", "a/both"} {
		gittest.Git(t, root, "branch", b)
		if b != "a/loose" {
			gittest.Git(t, root, "pack-refs", "--all")
		}
	}
	gittest.Git(t, root, "update-ref", "refs/heads/a/both", two)
	gittest.Git(t, root, "update-ref", "refs/heads/a/loose", two)
	gittest.Git(t, root, "update-ref", "refs/muster/loose", two)
	t.Setenv("PATH", t.TempDir())
	for ref, want := range map[string]string{"refs/heads/a/loose": two, "refs/heads/a/packed": head, "refs/heads/a/both": two, "refs/heads/a/none": "",
		"refs/muster/loose": two, "refs/muster/packed": head, "refs/muster/none": ""} {
		returns(t, want)(r.Ref(t.Context(), ref))
		if want == "" || strings.HasPrefix(ref, "refs/muster/") {
			continue
		}
		returns(t, want)(r.Resolve(t.Context(), ref))
		returns(t, want)(r.Resolve(t.Context(), want))
	}
	returns(t, head)(r.Head(t.Context()))
}

func TestWhatIsNoPlainBranchIsLeftToGit(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, two := next(t, r)
	gittest.Git(t, root, "branch", "real", two)
	gittest.Git(t, root, "symbolic-ref", "refs/heads/other", "refs/heads/real")
	gittest.Git(t, root, "tag", "-a", "-m", "a tag", "marked", two)
	for rev, want := range map[string]string{"refs/heads/other": two, "refs/tags/marked": two, "real": two, "HEAD": head} {
		returns(t, want)(r.Resolve(t.Context(), rev))
	}
	// To set it to where it leads makes it a branch of its own, and what it led to stays.
	require.NoError(t, r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/other", New: two, Old: two}}))
	_, link, err := r.Branch(t.Context(), "refs/heads/other")
	if err != nil || link != "" {
		t.Errorf("it leads to %q, %v", link, err)
	}
	returns(t, two)(r.Resolve(t.Context(), "refs/heads/real"))
	gittest.Git(t, root, "checkout", "-q", "--detach", two)
	returns(t, two)(r.Head(t.Context()))
	// A file that a crash has emptied is no branch.
	gittest.Write(t, root, map[string]string{".git/refs/heads/real": ""})
	if _, err := r.Resolve(t.Context(), "refs/heads/real"); !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("an empty ref: %v", err)
	}
	if _, err := r.Resolve(t.Context(), strings.Repeat("12", 20)); !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("a commit that is not there: %v", err)
	}
}

// What HEAD is in a lane is told without git where the lane and its registration name each other.
func TestStanding(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	base := t.TempDir()
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	lane := func(name string) string {
		dir := filepath.Join(base, name)
		gittest.Git(t, root, "branch", "wt/"+name)
		require.NoError(t, r.AddWorktree(t.Context(), dir, "wt/"+name, ""))
		return dir
	}
	is := func(what, dir, want string, sure bool) {
		t.Helper()
		if head, ok := git.PlaceHead(r, dir); ok != sure || ok && head != want {
			t.Errorf("%s: on %q, %v; want %q, %v", what, head, ok, want, sure)
		}
	}
	one, two := lane("one"), lane("two")
	is("a lane", one, "refs/heads/wt/one", true)
	is("below its top", filepath.Join(one, ".git"), "", false)
	is("the main worktree", root, "", false)
	gittest.Git(t, one, "checkout", "-q", "--detach")
	is("detached", one, "HEAD", true)
	gittest.Git(t, one, "checkout", "-q", "wt/one")
	gittest.Git(t, root, "update-ref", "-d", "refs/heads/wt/one")
	is("its branch is gone", one, "", false)
	link := gittest.Read(t, two, ".git")
	three := lane("three")
	gittest.Write(t, three, map[string]string{".git": link})
	is("it says that it is another lane", three, "", false)
	gittest.Write(t, two, map[string]string{".git": "gitdir: " + filepath.Join(root, ".git") + "\n"})
	is("it says that it is the main worktree", two, "", false)
	gittest.Write(t, two, map[string]string{".git": link})
	is("mended", two, "refs/heads/wt/two", true)
	require.NoError(t, os.Symlink(two, filepath.Join(base, "four")))
	is("a link to a lane", filepath.Join(base, "four"), "", false)
}

// That a branch is checked out nowhere is seen without git, and never of one that git finds checked out somewhere.
func TestABranchThatIsNowhere(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	gittest.Git(t, root, "branch", "target")
	linked := filepath.Join(t.TempDir(), "linked")
	is := func(what string, want bool) {
		t.Helper()
		if got := git.IsNowhere(r, "refs/heads/target"); got != want {
			t.Errorf("%s: nowhere is %t", what, got)
		}
		path := os.Getenv("PATH")
		if want {
			t.Setenv("PATH", t.TempDir())
		}
		if at, err := r.CheckedOut(t.Context(), "refs/heads/target"); want && at != "" || err != nil {
			t.Errorf("%s: it is checked out at %q, %v", what, at, err)
		}
		t.Setenv("PATH", path)
	}
	is("no other worktree", true)
	gittest.Git(t, root, "worktree", "add", "-q", "-b", "side", linked)
	is("another one", true)
	gittest.Git(t, linked, "checkout", "-q", "--detach", "target")
	is("detached", true)
	gittest.Git(t, root, "pack-refs", "--all")
	is("packed", true)
	gittest.Git(t, linked, "checkout", "-q", "target")
	is("in the other one", false)
	gittest.Git(t, linked, "symbolic-ref", "refs/heads/alias", "refs/heads/target")
	gittest.Git(t, linked, "symbolic-ref", "HEAD", "refs/heads/alias")
	is("by another name", false)
	gittest.Git(t, linked, "checkout", "-q", "side")
	is("in none of them", true)
	gittest.Git(t, root, "checkout", "-q", "target")
	is("in the main one", false)
	head := filepath.Join(root, ".git", "HEAD")
	gittest.Write(t, root, map[string]string{".git/refs/heads/target": gittest.Git(t, root, "rev-parse", "HEAD") + "\n"})
	require.NoError(t, os.Remove(head))
	require.NoError(t, os.Symlink("refs/heads/target", head))
	is("by a symbolic link", false)
}

// plant leaves a lock as a git does that died so long ago.
func plant(t *testing.T, root, lock string, ago time.Duration) {
	t.Helper()
	path := filepath.Join(root, ".git", lock)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	at := time.Now().Add(-ago)
	require.NoError(t, errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at)))
}

func locks(t *testing.T, root string) (all []string) {
	t.Helper()
	if err := filepath.WalkDir(filepath.Join(root, ".git"), func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".lock") {
			all = append(all, path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// A cancel at any moment: refs move whole or not at all, and no lock stays.
func TestACancelLeavesNoLock(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, _ := r.Head(t.Context())
	one, two := git.RefUpdate{Ref: "refs/muster/one", New: head}, git.RefUpdate{Ref: "refs/muster/two", New: head}
	for n := range tier.Amount(20, 100) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Duration(n)*10*time.Millisecond/time.Duration(tier.Amount(20, 100)), cancel)
		_ = r.UpdateRefs(ctx, []git.RefUpdate{one, two})
		cancel()
		if left := locks(t, root); len(left) > 0 {
			t.Fatalf("left over: %v", left)
		}
		now, err := r.Refs(t.Context(), "refs/muster/")
		if err != nil || now[one.Ref] != now[two.Ref] {
			t.Fatalf("half moved: %v, %v", now, err)
		}
		if now[one.Ref] != "" {
			one.New, one.Old, two.New, two.Old = "", head, "", head
		} else {
			one.New, one.Old, two.New, two.Old = head, "", head, ""
		}
	}
}

// A living git holds its lock for an instant, and a clock may make that lock look old. UpdateRefs breaks no lock that it
// has not watched for a second.
func TestAbandonedLocksAreBroken(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, _ := r.Head(t.Context())
	gittest.Git(t, root, "update-ref", "refs/heads/x", head)
	for _, lock := range []string{"refs/heads/x.lock", "refs/muster/landing/1-1.lock", "packed-refs.lock"} {
		plant(t, root, lock, time.Hour)
	}
	start := time.Now()
	require.NoError(t, r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/x", Old: head}, {Ref: "refs/muster/landing/1-1", New: head}}))
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("a lock was broken after %v", waited)
	}
	if left := locks(t, root); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// The lock of the packed refs is left alone for thirty seconds: packing takes long.
func TestTheLockOfThePackedRefs(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	for ago, isGone := range map[time.Duration]bool{29 * time.Second: false, 31 * time.Second: true} {
		plant(t, root, "packed-refs.lock", ago)
		returns(t, isGone)(git.Watch(filepath.Join(root, ".git", "packed-refs.lock"))())
	}
}

func TestBreakLocks(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	plant(t, root, "refs/muster/landing/1-1.lock", 0)
	plant(t, root, "refs/muster/archive/a-1.lock", 0)
	plant(t, root, "refs/heads/mine.lock", 0)
	require.NoError(t, r.BreakLocks(t.Context(), "refs/muster"))
	if left := locks(t, root); len(left) != 1 || filepath.Base(left[0]) != "mine.lock" {
		t.Errorf("left over: %v", left)
	}
	// Somebody else's branch: its lock must have been left long ago.
	plant(t, root, "refs/heads/mine.lock", 9500*time.Millisecond)
	start := time.Now()
	require.NoError(t, r.AwaitLock(t.Context(), "refs/heads/mine"))
	if left := locks(t, root); len(left) != 0 || time.Since(start) < 300*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(start), left)
	}
}

// What this process has put into a commit is known without git.
func TestTheTreeOfAMadeCommit(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	r := open(t, root)
	head, tree := gittest.Git(t, root, "rev-parse", "HEAD"), gittest.Git(t, root, "rev-parse", "HEAD^{tree}")
	var made []string
	for range 3 {
		id := require.Value(r.CommitTree(t.Context(), tree, []string{head}, "x\n"))(t)
		head, made = id, append(made, head)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	returns(t, tree)(r.Tree(t.Context(), head))
	for _, below := range made {
		returns(t, true)(r.IsAncestor(t.Context(), below, head))
	}
	t.Setenv("PATH", path)
	returns(t, false)(r.IsAncestor(t.Context(), head, made[0]))
}
