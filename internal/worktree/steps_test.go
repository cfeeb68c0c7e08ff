package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
)

// brokenDisk is a file system and a log of which one operation fails. What counts are the ones that open, lock or
// remove a file whose name has the part, and that append to or read a stream.
type brokenDisk struct {
	durable.OS
	part string

	mu     sync.Mutex
	left   int    // how many operations there are up to the one that fails
	failed string // that one, once it has come
}

func (d *brokenDisk) of(op, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !strings.Contains(name, d.part) {
		return nil
	}
	if d.left--; d.left != 0 {
		return nil
	}
	d.failed = op + " " + name
	return muster.Errorf(muster.Unavailable, "the disk is gone")
}

func (d *brokenDisk) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	if err := d.of("open", name); err != nil {
		return nil, err
	}
	return d.OS.OpenFile(name, flag, perm)
}

func (d *brokenDisk) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	if err := d.of("lock", name); err != nil {
		return nil, err
	}
	return d.OS.TryLock(name, how)
}

func (d *brokenDisk) Remove(name string) error {
	if err := d.of("remove", name); err != nil {
		return err
	}
	return d.OS.Remove(name)
}

// brokenLog is the log on the disk.
type brokenLog struct {
	muster.Log
	disk *brokenDisk
}

func (l brokenLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if err := l.disk.of("append", stream); err != nil {
		return 0, err
	}
	return l.Log.Append(ctx, stream, at, recs...)
}

func (l brokenLog) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	if err := l.disk.of("read", stream); err != nil {
		return func(yield func(muster.Record, error) bool) { yield(muster.Record{}, err) }
	}
	return l.Log.Read(ctx, stream, after)
}

// failEachStep lets each step of work fail in turn: with the first disk the first operation fails, and so on. The error
// of the disk must be the error of work.
func (w *world) failEachStep(part string, prepare func(n int), work func(l *worktree.Lanes, n int) error) {
	w.t.Helper()
	for n := 1; ; n++ {
		prepare(n)
		disk := &brokenDisk{part: part, left: n}
		log := brokenLog{w.log, disk}
		l, err := worktree.Open(w.repo, durable.New(disk), paths.Dir(w.root), journal.New(log), log, worktree.Options{})
		require.NoError(w.t, err)
		err = work(l, n)
		if disk.failed == "" {
			if err != nil || n == 1 {
				w.t.Errorf("without a failure there is %v after %d steps", err, n-1)
			}
			return
		}
		if !errors.Is(err, muster.ErrUnavailable) {
			w.t.Errorf("step %d, %s, has failed, and the error is %v", n, disk.failed, err)
		}
	}
}

// rows writes an index of these rows.
func (w *world) rows(rows ...string) {
	w.t.Helper()
	gittest.Write(w.t, w.root, map[string]string{
		".worktrees/index.json": `{"worktrees":{` + strings.Join(rows, ",") + `}}`})
}

// row is the row of a lane at HEAD, with more fields.
func (w *world) row(name string, status muster.LaneStatus, more string) string {
	w.t.Helper()
	return fmt.Sprintf(`%q:{"name":%q,"path":%q,"branch":"wt/%s","status":%q,"base":%q%s}`, name, name,
		w.root+"/.worktrees/"+name, name, status, w.git(w.root, "rev-parse", "HEAD"), more)
}

// A disk that fails is told, whatever is done with a lane: nobody takes a step for done that was not.
func TestAStepThatFailsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	nobody, alice := worktree.Occupant{}, worktree.Occupant{Member: "alice", Host: "host-1.1"}
	w.failEachStep("", func(int) { w.rows(w.row("one", muster.LaneActive, "")) },
		func(l *worktree.Lanes, _ int) error {
			for _, step := range []func() error{
				func() error { _, err := l.Get(w.ctx(), "one"); return err },
				func() error { _, err := l.List(w.ctx()); return err },
				func() error { return l.Keep(w.ctx(), "one") },
				func() error { return l.Release(w.ctx(), "one") },
				func() error { return l.Occupy(w.ctx(), "one", nobody, alice) },
				func() error { _, err := l.Preserve(w.ctx(), "one"); return err },
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		})
	w.rows()
	w.failEachStep("", func(int) {
		require.NoError(t, w.Recover(w.ctx()))
	}, func(l *worktree.Lanes, n int) error {
		_, err := l.Create(w.ctx(), muster.Name(fmt.Sprintf("lane-%d", n)), 1, "HEAD")
		return err
	})
	// A lane of which only the branch is left.
	work := w.git(w.root, "commit-tree", "-p", "HEAD", "-m", "work", "HEAD^{tree}")
	w.failEachStep("", func(int) {
		w.git(w.root, "branch", "-f", "wt/one", work)
		w.rows(w.row("one", muster.LaneActive, ""))
	}, func(l *worktree.Lanes, _ int) error {
		_, err := l.ArchiveCompleted(w.ctx(),
			muster.Task{ID: 1, Fence: 1, Worktree: "one", Status: muster.Completed})
		return err
	})
	equal(t, "the work", w.git(w.root, "for-each-ref", "--format=%(refname)", "--points-at", work),
		"refs/muster/archive/one-1")
}

// So it is with a recovery, in whatever state a crash has left a lane.
func TestARecoveryThatFailsIsTold(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]func(w *world){
		"creating": func(w *world) { w.rows(w.row("one", muster.LaneCreating, `,"maker":"lane-maker-1"`)) },
		"removing": func(w *world) {
			w.rows(w.row("one", muster.LaneActive, `,"removing":{"ref":"refs/muster/archive/x-1"}`))
		},
		"missing": func(w *world) { w.rows(w.row("one", muster.LaneActive, "")) },
		"commits": func(w *world) {
			w.git(w.root, "branch", "-f", "wt/one")
			w.rows(w.row("one", muster.LaneActive, ""))
		},
		"temporary": func(w *world) {
			gittest.Write(w.t, w.root, map[string]string{".worktrees/.index.json.abc.tmp": "{"})
		},
		"lost": func(w *world) {
			if gittest.Read(w.t, w.root, ".worktrees/one/.git") == "" {
				w.create("one")
			}
			w.rows()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			w.failEachStep("", func(int) { left(w) },
				func(l *worktree.Lanes, _ int) error { return l.Recover(w.ctx()) })
			if left, _ := filepath.Glob(w.root + "/.worktrees/.*.tmp"); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// And with a repair, and with a check that changes nothing.
func TestARepairThatFailsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.failEachStep("", func(int) { w.rows(w.row("one", muster.LaneActive, "")) },
		func(l *worktree.Lanes, _ int) error { _, err := l.Repair(w.ctx()); return err })
	w.failEachStep("", func(int) { w.rows(w.row("one", muster.LaneCreating, `,"maker":"lane-maker-1"`)) },
		func(l *worktree.Lanes, _ int) error { _, err := l.Check(w.ctx()); return err })
	w.failEachStep("", func(int) {
		w.rows(w.row("one", muster.LaneFailed, ""), w.row("two", muster.LaneFailed, ""))
	}, func(l *worktree.Lanes, _ int) error {
		return l.ArchiveAll(w.ctx(), func(muster.Name, string) error { return nil })
	})
}

// A damaged index is replaced only when its bytes are kept and the damage is told.
func TestARebuildThatFailsIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	w.failEachStep("", func(n int) {
		w.writeIndex(fmt.Sprintf(`{"version":%d,"work`, n))
	}, func(l *worktree.Lanes, _ int) error { _, err := l.List(w.ctx()); return err })
	equal(t, "lanes", len(w.must(w.List(w.ctx()))), 1)
}

// conflict makes the lane one, whose file a has other content than that of main.
func (w *world) conflict() muster.Lane {
	w.t.Helper()
	lane := w.create("one")
	gittest.Write(w.t, lane.Path, map[string]string{"a": "ours\n"})
	w.ok2(w.Commit(w.ctx(), "one", "ours"))
	w.land(map[string]string{"a": "theirs\n"})
	return lane
}
