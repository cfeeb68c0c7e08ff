package git_test

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/git/gittest"
)

// plant leaves a lock as a git does that died so long ago.
func plant(t *testing.T, root, lock string, ago time.Duration) {
	t.Helper()
	path := filepath.Join(root, ".git", lock)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	at := time.Now().Add(-ago)
	if err := errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at)); err != nil {
		t.Fatal(err)
	}
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
	for range 120 {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(rand.N(10*time.Millisecond), cancel)
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

func TestAbandonedLocksAreBroken(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, _ := r.Head(t.Context())
	gittest.Git(t, root, "update-ref", "refs/heads/x", head)
	for _, lock := range []string{"refs/heads/x.lock", "refs/muster/landing/1-1.lock", "packed-refs.lock"} {
		plant(t, root, lock, time.Hour)
	}
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/x", Old: head}, {Ref: "refs/muster/landing/1-1", New: head}}); err != nil {
		t.Fatal(err)
	}
	if left := locks(t, root); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// A lock that is young may be a living git's: it is left, and named.
func TestAYoungLockIsLeft(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, _ := r.Head(t.Context())
	plant(t, root, "refs/heads/x.lock", 0)
	err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/x", New: head}})
	e, ok := errors.AsType[*muster.Error](err)
	if !ok || !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(e.Hint, "x.lock") {
		t.Errorf("%v", err)
	}
	if len(locks(t, root)) != 1 {
		t.Error("the lock is gone")
	}
}

func TestBreakLocks(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	plant(t, root, "refs/muster/landing/1-1.lock", 0)
	plant(t, root, "refs/muster/archive/a-1.lock", 0)
	plant(t, root, "refs/heads/mine.lock", 0)
	if err := r.BreakLocks(t.Context(), "refs/muster"); err != nil {
		t.Fatal(err)
	}
	if left := locks(t, root); len(left) != 1 || filepath.Base(left[0]) != "mine.lock" {
		t.Errorf("left over: %v", left)
	}
	// Somebody else's branch: its lock must have been left long ago.
	plant(t, root, "refs/heads/mine.lock", 9500*time.Millisecond)
	start := time.Now()
	if err := r.AwaitLock(t.Context(), "refs/heads/mine"); err != nil {
		t.Fatal(err)
	}
	if left := locks(t, root); len(left) != 0 || time.Since(start) < 300*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(start), left)
	}
}
