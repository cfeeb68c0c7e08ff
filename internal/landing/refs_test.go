package landing_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// during lands a task with a check that does something else first.
func (w *world) during(t muster.Task, f func()) (landing.Verdict, error) {
	return w.duringIn(w.ctx(), t, f)
}

// duringIn is during with a context for the landing.
func (w *world) duringIn(ctx context.Context, t muster.Task, f func()) (landing.Verdict, error) {
	return w.lander("true", launchAfter(f, launch)).Land(ctx, t.ID, t.Fence, "late work", t.Owner)
}

// launchAfter returns launch, with a call of f before its first one.
func launchAfter(f func(), launch func() (proc.Launcher, error)) func() (proc.Launcher, error) {
	return func() (proc.Launcher, error) {
		f()
		f = func() {}
		return launch()
	}
}

func (w *world) must(err error) { w.t.Helper(); require.NoError(w.t, err) }

// landedUnrecorded is a task whose commit is on the target while the board still says landing: what a crash leaves.
func (w *world) landedUnrecorded(receipt string) muster.Task {
	w.t.Helper()
	task, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	onto := w.git("rev-parse", target)
	head, _, err := w.lanes.Commit(w.ctx(), task.Worktree, "work")
	w.must(err)
	_, err = w.board.BeginLanding(w.ctx(), task.ID, task.Fence, muster.PendingLanding{Head: head, Onto: onto, Summary: "noted before the crash"})
	w.must(err)
	w.moveAsLanded(task, lane, receipt)
	return task
}

// mergeUnreturned merges the target into the lane of a task, and returns the commit that was to land. The board still says
// landing: what a crash leaves where there are conflicts.
func (w *world) mergeUnreturned(task muster.Task) (head string) {
	w.t.Helper()
	head, _, err := w.lanes.Commit(w.ctx(), task.Worktree, "work")
	w.must(err)
	tip := w.git("rev-parse", target)
	_, err = w.board.BeginLanding(w.ctx(), task.ID, task.Fence, muster.PendingLanding{Head: head, Onto: tip})
	w.must(err)
	_, err = w.lanes.Merge(w.ctx(), task.Worktree, tip)
	w.must(err)
	return head
}

// moveAsLanded moves the target as the landing of a task that is noted does, and records nothing.
func (w *world) moveAsLanded(task muster.Task, lane, receipt string) {
	w.t.Helper()
	onto := w.git("rev-parse", target)
	commit, err := w.repo.CommitTree(w.ctx(), gittest.Git(w.t, lane, "rev-parse", "HEAD^{tree}"), []string{onto},
		fmt.Sprintf("One\n\nMuster-Task: 9\n\nMuster-Task: %d\nMuster-Member: alice\nMuster-Check: %s\n", task.ID, receipt))
	w.must(err)
	updates := []git.RefUpdate{{Ref: target, New: commit, Old: onto}}
	ref := fmt.Sprintf("refs/muster/landing/%d-%d", task.ID, task.Fence)
	at, err := w.repo.Ref(w.ctx(), ref)
	w.must(err)
	if at != "" {
		updates = append(updates, git.RefUpdate{Ref: ref, Old: at})
	}
	w.must(w.repo.UpdateRefs(w.ctx(), updates))
}

// What a crash has left; the same call goes on.
func TestGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task := w.landedUnrecorded(muster.ReceiptGreen + ", make test\nMuster-Review: approved by ann")
	tip := w.git("rev-parse", target)
	other, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	w.lands(other) // others go on meanwhile
	w.process("")
	v := w.landed(w.land.Land(w.ctx(), task.ID, task.Fence, "", task.Owner))
	equal(t, "it landed as", *v.Task.Landed, muster.Landed{Commit: tip, Receipt: muster.ReceiptGreen,
		Check: "make test", Review: "approved by ann"})
	equal(t, "the result", v.Task.Result, "noted before the crash")
	equal(t, "it landed twice", w.git("rev-list", "--count", "main.."+target), "2")
}

// Work of a task without a lane has nothing to land.
func TestATaskWithoutALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", nil)
	task, _ := w.task("One", "alice", nil)
	task, err := w.board.SetLane(w.ctx(), task.ID, task.Fence, "", "")
	w.must(err)
	if v, err := w.try(task); err != nil || v.Task.Landed != nil || v.Task.Status != muster.Completed {
		t.Errorf("%+v, %v", v, err)
	}
}

// The landed commit is packed and synced before the target's ref moves: a ref on disk never names a commit that a power
// failure can still take away. The test makes packing impossible from the check on, which runs after the lane's own
// commits were packed. The landing must then fail with the target where it was, and succeed once packing works again.
func TestTheTargetMovesOnlyToADurableCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"})
	tip := w.git("rev-parse", target)
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	pack := filepath.Join(w.root, ".git", "objects", "pack")
	aside := pack + ".aside"
	lines := &lineHandler{text: "landing begins"}
	l := w.lander("true", launchAfter(func() {
		w.must(os.Rename(pack, aside))
		w.must(os.Symlink("nowhere", pack)) // git cannot create a directory of this name, not even for root
		packs, err := filepath.Glob(filepath.Join(aside, "*.pack"))
		w.must(err)
		for _, name := range packs { // what is in them stays readable
			unpack := exec.Command("sh", "-c", `git unpack-objects -q < "$0"`, name)
			unpack.Dir = w.root
			w.must(unpack.Run())
		}
	}, launch), func(o *landing.Options) { o.Log = slog.New(lines) })
	wants(t, fault(l.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)), muster.ErrUnavailable, "durable")
	equal(t, "tries", lines.n, 4)
	equal(t, "the target, where no commit is durable", w.git("rev-parse", target), tip)
	w.must(os.Remove(pack))
	w.must(os.Rename(aside, pack))
	w.lands(task)
}

// A landing that is entered again with newer work keeps the tip that it was first noted with. The commits that may be
// its own are searched for from that tip: with a later one, a commit that an earlier attempt landed would not be found
// after a crash, and the work would land a second time.
func TestALandingKeepsTheTipItWasFirstNotedWith(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	first := w.git("rev-parse", target)
	one, lane := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	interrupted := func() *muster.PendingLanding {
		t.Helper()
		ctx, cancel := context.WithCancelCause(w.ctx())
		stop := func() (proc.Launcher, error) {
			cancel(muster.CauseUser)
			return nil, context.Cause(ctx)
		}
		l := w.lander("true", stop)
		is(t, "it is stopped", fault(l.Land(ctx, one.ID, one.Fence, "", one.Owner)), muster.CauseUser)
		now, err := w.board.Get(w.ctx(), one.ID)
		if err != nil || now.Landing == nil {
			t.Fatalf("%+v, %v", now, err)
		}
		return now.Landing
	}
	before := interrupted()
	w.lands(two)
	w.write(lane, map[string]string{"more": "more\n"})
	after := interrupted()
	if after.Head == before.Head {
		t.Fatal("the newer work is not in the second attempt")
	}
	equal(t, "noted onto", [2]string{before.Onto, after.Onto}, [2]string{first, first})
}

// All of what landings have packed is there, also when the target moves while a check runs.
func TestWhatLandingsPackIsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n"})
	w.git("repack", "-a", "-d", "-q")
	one, lane := w.task("One", "alice", map[string]string{"dir/one": "1\n", "same": "same\n"})
	w.write(lane, map[string]string{"more": "more\n"})
	gittest.Git(t, lane, "add", "more")
	gittest.Git(t, lane, "commit", "-q", "-m", "more")
	two, _ := w.task("Two", "bob", map[string]string{"dir/two": "2\n", "same": "same\n"})
	l := w.lander("true", launchAfter(func() { w.lands(two) }, launch))
	w.landed(l.Land(w.ctx(), one.ID, one.Fence, "odd \x00\xff", one.Owner))
	says(t, w.git("log", "-1", "--format=%B", target), "\n\nodd ?\n\nMuster-Task: 1\n")
	w.must(fault(os.Stat(w.log("task-1-1-2.log")))) // merged and checked again on the target that has moved
	w.git("prune-packed")
	w.git("fsck", "--strict")
	w.has(map[string]string{"dir/one": "1", "dir/two": "2", "more": "more"})
}
