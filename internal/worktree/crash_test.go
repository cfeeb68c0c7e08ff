package worktree_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// TestMain lets the test binary be the process that is killed.
func TestMain(m *testing.M) {
	if root := os.Getenv("LANES_TO_KILL"); root != "" {
		makeAndRemove(root)
		return
	}
	gittest.Main(m)
}

// makeAndRemove makes a lane with work in it, and archives it.
func makeAndRemove(root string) {
	ctx := context.Background()
	if err := faultinject.Arm(); err != nil {
		panic(err)
	}
	repo, err := git.Open(ctx, root)
	if err != nil {
		panic(err)
	}
	log := mem.New().Log()
	l, err := worktree.Open(repo, durable.New(durable.OS{}), paths.Dir(root), journal.New(log), log, worktree.Options{})
	if err != nil {
		panic(err)
	}
	lane, createErr := l.Create(ctx, "one", 1, "HEAD")
	writeErr := os.WriteFile(lane.Path+"/b", []byte("b\n"), 0o600)
	_, archiveErr := l.Archive(ctx, "one")
	if err := errors.Join(createErr, writeErr, archiveErr); err != nil {
		panic(err)
	}
}

// A process that makes and removes a lane is killed at each step: after recovery nothing is half there, and the work is
// in the lane or in its archive.
func TestKilledAtEachStep(t *testing.T) {
	t.Parallel()
	if !failpoint.Enabled {
		t.Skip("needs -tags failpoint")
	}
	for point, isArchived := range map[string]bool{"lane.creating": false, "lane.branch": false, "lane.added": false,
		"lane.active": false, "lane.archived": true, "lane.removing": true, "lane.removed": true, "lane.branchless": true,
		"lane.dropped": true} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"a": "a\n"})
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "LANES_TO_KILL="+w.root, faultinject.Variable+"=kill:"+point)
			if out, err := cmd.CombinedOutput(); err == nil || len(out) > 0 {
				t.Fatalf("it was not killed: %v\n%s", err, out)
			}
			require.NoError(t, w.Recover(w.ctx()))
			if isArchived && w.git(w.root, "show", "refs/muster/archive/one-1:b") != "b" {
				t.Error("the work is archived nowhere")
			}
			for _, lane := range w.must(w.List(w.ctx())) {
				equal(t, string(lane.Name), lane.Status, muster.LaneActive)
				w.ok(w.Enter(w.ctx(), lane.Name))
				require.NoError(t, w.Remove(w.ctx(), lane.Name, true))
			}
			w.tidy()
			w.git(w.root, "fsck")
		})
	}
}

func (w *world) must(all []muster.Lane, err error) []muster.Lane {
	w.t.Helper()
	require.NoError(w.t, err)
	return all
}

// The states that a crash can leave, one by one.
func TestRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", ".gitignore": "*.log\n"})
	ctx := w.ctx()
	head, _ := w.repo.Head(ctx)
	// intent only; branch only; branch and worktree; branch that has moved; being made by a living process; used twice.
	for _, b := range []string{"branch", "moved", "whole", "living", "used", "built"} {
		w.git(w.root, "branch", "wt/"+b)
	}
	w.git(w.root, "worktree", "add", "-q", w.root+"/.worktrees/whole", "wt/whole")
	w.git(w.root, "worktree", "add", "-q", w.root+"/.worktrees/used", "wt/used")
	w.git(w.root+"/.worktrees/used", "commit", "-q", "--allow-empty", "-m", "work")
	w.git(w.root, "worktree", "add", "-q", w.root+"/.worktrees/built", "wt/built")
	gittest.Write(t, w.root, map[string]string{".worktrees/built/x.log": "what git ignores\n"})
	w.git(w.root, "worktree", "lock", w.root+"/.worktrees/whole") // as git does while it makes one
	w.git(w.root, "update-ref", "refs/heads/wt/moved", w.git(w.root, "commit-tree", "-p", head, "-m", "x", head+"^{tree}"))
	gittest.Write(t, w.root, map[string]string{".git/refs/heads/wt/branch.lock": ""}) // as a killed git leaves it
	unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-9.lock")
	require.NoError(t, err)
	creating := func(name, more string) string { return w.row(name, muster.LaneCreating, more) }
	w.rows(creating("intent", ""), creating("branch", `,"maker":"lane-maker-1"`), creating("moved", ""), creating("used", ""),
		creating("whole", `,"maker":"lane-maker-2"`), creating("living", `,"maker":"lane-maker-9"`),
		creating("built", ""))
	require.NoError(t, w.Recover(ctx))
	status := map[muster.Name]muster.LaneStatus{}
	for _, lane := range w.must(w.List(ctx)) {
		status[lane.Name] = lane.Status
	}
	if len(status) != 4 || status["living"] != muster.LaneCreating || status["moved"] != muster.LaneFailed ||
		status["used"] != muster.LaneActive || status["built"] != muster.LaneActive ||
		!exists(w.root+"/.worktrees/used") {
		t.Errorf("after recovery: %v", status)
	}
	equal(t, "branches", w.git(w.root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/wt/"),
		"built\nliving\nmoved\nused")
	// The maker dies: whoever wants the name next gets it.
	if _, err := w.Create(ctx, "living", 0, ""); err == nil {
		t.Error("took a lane from its living maker")
	}
	require.NoError(t, unlock())
	w.ok(w.Create(ctx, "living", 0, ""))
}
