package landing_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
)

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
	}, launch), func(o *landing.Options) { o.Log = slog.New(lines) })
	wants(t, fault(l.Land(w.ctx(), task.ID, task.Fence, "", task.Owner)), muster.ErrUnavailable, "durable")
	if lines.n != 4 {
		t.Errorf("tried %d times, want 4", lines.n)
	}
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
		if _, err := l.Land(ctx, one.ID, one.Fence, "", one.Owner); !errors.Is(err, muster.CauseUser) {
			t.Fatalf("stopped with %v", err)
		}
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
	if before.Onto != first || after.Onto != first {
		t.Errorf("noted onto %s, then onto %s, want %s both times", before.Onto, after.Onto, first)
	}
}

// A landing leaves one pack, also when the target moves while its check runs: the pack of the lane's work, and that of
// a commit which could not land, are part of the last one.
func TestALandingLeavesOnePack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n", "dir/b.txt": "b\n"})
	w.git("repack", "-a", "-d", "-q")
	one, lane := w.task("One", "alice", map[string]string{"dir/one": "1\n", "same": "same\n"})
	w.write(lane, map[string]string{"more": "more\n"})
	gittest.Git(t, lane, "add", "more")
	gittest.Git(t, lane, "commit", "-q", "-m", "more")
	two, _ := w.task("Two", "bob", map[string]string{"dir/two": "2\n", "same": "same\n"})
	packs := func() int {
		files, err := filepath.Glob(filepath.Join(w.root, ".git/objects/pack/*.pack"))
		w.must(err)
		return len(files)
	}
	l := w.lander("true", launchAfter(func() { w.lands(two) }, launch))
	if v, err := l.Land(w.ctx(), one.ID, one.Fence, "", one.Owner); err != nil || v.Task.Landed == nil {
		t.Fatalf("%+v, %v", v, err)
	}
	equal(t, "packs", packs(), 3)
	must(t, w.repo.MergePacks(w.ctx(), 2))
	equal(t, "packs", packs(), 2)
	w.git("prune-packed")
	w.git("fsck", "--strict")
	if w.show("dir/one") != "1" || w.show("dir/two") != "2" || w.show("more") != "more" {
		t.Error("not all of the work is on the target")
	}
}
