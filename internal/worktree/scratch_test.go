package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
)

// A scratch checkout that git cannot move is kept aside with all its files, each time under another name, and a new one
// is made. What is kept is connected to the repository no more, unless it has a repository of its own.
func TestABrokenScratchCheckoutIsKeptAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	first := w.git(w.root, "rev-parse", "HEAD")
	w.git(w.root, "commit", "-q", "--allow-empty", "-m", "two")
	second := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", first)
	check(t, err)
	for n, breaks := range []func(){
		func() { // git knows the checkout, and cannot change it
			gittest.Write(t, w.git(dir, "rev-parse", "--absolute-git-dir"), map[string]string{"index": "no index"})
		},
		func() {
			check(t, os.Remove(dir+"/.git"))
			w.git(dir, "init", "-q")
		},
	} {
		breaks()
		gittest.Write(t, dir, map[string]string{"mine": "mine\n"})
		returns(t, dir)(w.Scratch(w.ctx(), "alice", second))
		if w.git(dir, "rev-parse", "HEAD") != second || gittest.Read(t, dir, "mine") != "" {
			t.Error("it is not made anew")
		}
		aside := []string{dir + ".aside-1", dir + ".aside-2"}[n]
		if gittest.Read(t, aside, "mine") != "mine\n" {
			t.Errorf("%s has not what was kept", aside)
		}
		if _, err := os.Lstat(aside + "/.git"); os.IsNotExist(err) == (n == 1) {
			t.Errorf("the link of %s: %v", aside, err)
		}
	}
}

// A link in the place of a scratch checkout is moved aside, and what it leads to stays as it is: git would give up what
// was changed there. Nothing is made where a link in the place of their directory leads.
func TestAScratchCheckoutThatIsALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	first := w.git(w.root, "rev-parse", "HEAD")
	w.git(w.root, "commit", "-q", "--allow-empty", "-m", "two")
	users := filepath.Join(t.TempDir(), "users")
	w.git(w.root, "worktree", "add", "-q", "-b", "users", users)
	gittest.Write(t, users, map[string]string{"a": "changed\n"})
	scratch := filepath.Join(w.root, ".team", "scratch")
	check(t, errors.Join(os.MkdirAll(scratch, 0o700), os.Symlink(users, filepath.Join(scratch, "alice"))))
	dir, err := w.Scratch(w.ctx(), "alice", first)
	if err != nil || w.git(dir, "rev-parse", "HEAD") != first {
		t.Fatal(dir, err)
	}
	if gittest.Read(t, users, "a") != "changed\n" || w.git(users, "rev-parse", "--abbrev-ref", "HEAD") != "users" {
		t.Error("the user's checkout was changed")
	}
	elsewhere := t.TempDir()
	check(t, errors.Join(os.RemoveAll(scratch), os.Symlink(elsewhere, scratch)))
	_, err = w.Scratch(w.ctx(), "alice", first)
	wants(t, err, muster.ErrUnavailable, "symbolic link")
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("made elsewhere: %v, %v", left, err)
	}
}

// A checkout that cannot be made is told, and so is a call that has ended.
func TestAScratchCheckoutThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	wants(t, fault(w.Scratch(w.ctx(), "alice", strings.Repeat("1", 40))), muster.ErrUnavailable, "cannot be made")
	head := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", head)
	check(t, err)
	if err := os.Remove(dir + "/.git"); err != nil { // so that only git can tell what it is
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	for _, member := range []muster.Name{"alice", "bob"} {
		if _, err := w.Scratch(ctx, member, head); !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s: %v", member, err)
		}
	}
	if aside, _ := filepath.Glob(dir + ".aside-*"); len(aside) > 0 {
		t.Errorf("moved aside: %v", aside)
	}
}

// Several calls for one member at once make one checkout.
func TestOneScratchCheckoutAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	head := w.git(w.root, "rev-parse", "HEAD")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if dir, err := w.Scratch(w.ctx(), "alice", head); err != nil || gittest.Read(t, dir, "a") != "a\n" {
				t.Errorf("%s, %v", dir, err)
			}
		})
	}
	all.Wait()
	if found, _ := filepath.Glob(w.root + "/.team/scratch/*"); len(found) != 1 {
		t.Errorf("made %v", found)
	}
}
