package git_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// plant leaves a lock as a git does that died so long ago.
func plant(t *testing.T, root, lock string, ago time.Duration) {
	t.Helper()
	path := filepath.Join(root, ".git", lock)
	check(t, os.MkdirAll(filepath.Dir(path), 0o755))
	at := time.Now().Add(-ago)
	check(t, errors.Join(os.WriteFile(path, nil, 0o644), os.Chtimes(path, at, at)))
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
	check(t, r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/x", Old: head}, {Ref: "refs/muster/landing/1-1", New: head}}))
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("a lock was broken after %v", waited)
	}
	if left := locks(t, root); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// The lock of the packed refs is left to a git that lives and may hold it, however old it is.
func TestTheLockOfALivingGitIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which gits live")
	}
	t.Parallel()
	root := gittest.Repo(t, nil)
	plant(t, root, "packed-refs.lock", time.Hour)
	living := exec.Command("git", "cat-file", "--batch")
	living.Dir = root
	in, err := living.StdinPipe()
	check(t, err)
	out, err := living.StdoutPipe()
	check(t, err)
	check(t, living.Start())
	if _, err := fmt.Fprintln(in, "HEAD"); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it runs, and stands where it should
		t.Fatal(err)
	}
	path := filepath.Join(root, ".git", "packed-refs.lock")
	lock := git.Watch(path)
	returns(t, false)(lock())
	check(t, in.Close())
	_, _ = io.Copy(io.Discard, out)
	check(t, living.Wait())
	for broken := false; !broken; { // another test's git may look like one of ours while it starts
		if broken, err = lock(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBreakLocks(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	plant(t, root, "refs/muster/landing/1-1.lock", 0)
	plant(t, root, "refs/muster/archive/a-1.lock", 0)
	plant(t, root, "refs/heads/mine.lock", 0)
	check(t, r.BreakLocks(t.Context(), "refs/muster"))
	if left := locks(t, root); len(left) != 1 || filepath.Base(left[0]) != "mine.lock" {
		t.Errorf("left over: %v", left)
	}
	// Somebody else's branch: its lock must have been left long ago.
	plant(t, root, "refs/heads/mine.lock", 9500*time.Millisecond)
	start := time.Now()
	check(t, r.AwaitLock(t.Context(), "refs/heads/mine"))
	if left := locks(t, root); len(left) != 0 || time.Since(start) < 300*time.Millisecond {
		t.Errorf("after %v: %v", time.Since(start), left)
	}
}
