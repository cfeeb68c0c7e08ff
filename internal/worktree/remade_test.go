package worktree_test

import (
	"fmt"
	"strings"
	"testing"

	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// beforeLock is a file system in which somebody else acts once, right before a lock of that name is tried.
type beforeLock struct {
	durable.OS
	name string
	act  func()
}

func (f *beforeLock) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	if strings.HasSuffix(name, "/"+f.name) && f.act != nil {
		act := f.act
		f.act = nil
		act()
	}
	return f.OS.TryLock(name, how)
}

// Recovery undoes a half-made lane only if it is still the one that it looked at. Between the look and the maker's
// lease, somebody else can have undone it and begun to make a lane of the same name, under another lease. That maker is
// alive, and its branch must stay.
func TestRecoveryLeavesALaneThatAnotherMakerHasBegun(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	repo, err := git.Open(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	head := gittest.Git(t, root, "rev-parse", "HEAD")
	madeBy := func(maker string) {
		gittest.Write(t, root, map[string]string{".worktrees/index.json": fmt.Sprintf(
			`{"worktrees":{"one":{"name":"one","path":%q,"branch":"wt/one","status":"creating","base":%q,"maker":%q}}}`,
			root+"/.worktrees/one", head, maker)})
	}
	gittest.Git(t, root, "branch", "wt/one")
	madeBy("lane-maker-1") // which has died
	files := &beforeLock{name: "lane-maker-1.lock"}
	files.act = func() {
		unlock, err := durable.New(durable.OS{}).TryLock(root + "/.team/locks/lane-maker-2.lock")
		if err != nil {
			t.Error(err)
			return
		}
		t.Cleanup(func() { _ = unlock() })
		madeBy("lane-maker-2")
	}
	log := mem.New().Log()
	lanes, err := worktree.Open(repo, durable.New(files), paths.Dir(root), journal.New(log), log, worktree.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := lanes.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if files.act != nil {
		t.Fatal("recovery never asked whether the maker lives")
	}
	if got := gittest.Git(t, root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/wt/"); got != "one" {
		t.Errorf("branches %q: the lane of a living maker was undone", got)
	}
	if lane, err := lanes.Get(t.Context(), "one"); err != nil || string(lane.Extra["maker"]) != `"lane-maker-2"` {
		t.Errorf("%+v, %v", lane, err)
	}
}
