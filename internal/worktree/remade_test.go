package worktree_test

import (
	"fmt"
	"testing"

	"muster/internal/durable"
	"muster/internal/testing/gittest"
)

// Recovery undoes a half-made lane only if it is still the one that it looked at. Between the look and the maker's
// lease, somebody else can have undone it and begun to make a lane of the same name, under another lease. That maker is
// alive, and its branch must stay.
func TestRecoveryLeavesALaneThatAnotherMakerHasBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	root := w.root
	head := gittest.Git(t, root, "rev-parse", "HEAD")
	madeBy := func(maker string) {
		gittest.Write(t, root, map[string]string{".worktrees/index.json": fmt.Sprintf(
			`{"worktrees":{"one":{"name":"one","path":%q,"branch":"wt/one","status":"creating","base":%q,"maker":%q}}}`,
			root+"/.worktrees/one", head, maker)})
	}
	gittest.Git(t, root, "branch", "wt/one")
	madeBy("lane-maker-1") // which has died
	isAsked := false
	lanes := w.on(&onDisk{name: "lane-maker-1.lock", act: func() {
		isAsked = true
		unlock, err := durable.New(durable.OS{}).TryLock(root + "/.team/locks/lane-maker-2.lock")
		check(t, err)
		t.Cleanup(func() { _ = unlock() })
		madeBy("lane-maker-2")
	}})
	check(t, lanes.Recover(t.Context()))
	if !isAsked {
		t.Fatal("recovery never asked whether the maker lives")
	}
	if got := gittest.Git(t, root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/wt/"); got != "one" {
		t.Errorf("branches %q: the lane of a living maker was undone", got)
	}
	if lane, err := lanes.Get(t.Context(), "one"); err != nil || string(lane.Extra["maker"]) != `"lane-maker-2"` {
		t.Errorf("%+v, %v", lane, err)
	}
}
