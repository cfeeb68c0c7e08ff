package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// Whatever is asked of a lane that is not there, the answer is that it is not there.
func TestALaneThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	one := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"changed": one(w.Changed(w.ctx(), "none")), "ignored": one(w.Ignored(w.ctx(), "none")),
		"status": one(w.Status(w.ctx(), "none")), "merge": one(w.Merge(w.ctx(), "none", "HEAD")),
		"unresolved": one(w.Unresolved(w.ctx(), "none")), "archive": one(w.Archive(w.ctx(), "none")),
		"preserve": one(w.Preserve(w.ctx(), "none")), "enter": one(w.Enter(w.ctx(), "none")),
		"remove": w.Remove(w.ctx(), "none", true), "keep": w.Keep(w.ctx(), "none"), "release": w.Release(w.ctx(), "none"),
	} {
		if !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A line that begins with a blank, or with many signs and no label, is no conflict marker.
func TestTheLineOfAConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"text": " indented\n<<<<<<<<\n> quoted\n4\n"})
	lane := w.create("one")
	gittest.Write(t, w.root, map[string]string{"text": " indented\n<<<<<<<<\n> quoted\ntheirs\n"})
	w.git(w.root, "commit", "-q", "-a", "-m", "theirs")
	gittest.Write(t, lane.Path, map[string]string{"text": " indented\n<<<<<<<<\n> quoted\nours\n"})
	if _, _, err := w.Commit(w.ctx(), "one", "ours"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "main")); err != nil {
		t.Fatal(err)
	}
	if open, err := w.Unresolved(w.ctx(), "one"); err != nil || fmt.Sprint(open) != "[text line 4]" {
		t.Errorf("open: %v, %v", open, err)
	}
}

// A note that names something else than a directory for checks removes nothing.
func TestANoteOfSomethingElseRemovesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	dir, remove, err := w.CheckDirs.Create()
	if err != nil {
		t.Fatal(err)
	}
	remove()
	precious := t.TempDir()
	gittest.Write(t, precious, map[string]string{"a": "a\n"})
	relative := "." + string(filepath.Separator) + filepath.Base(dir)
	for _, named := range []string{precious, relative} {
		gittest.Write(t, w.root, map[string]string{".team/locks/check-1": named + "\n"})
		removed, err := w.CheckDirs.RemoveAbandoned()
		if err != nil || len(removed) != 0 || gittest.Read(t, precious, "a") != "a\n" {
			t.Errorf("of %s, %v was removed, %v", named, removed, err)
		}
	}
}

// The end of a call does not look like a checkout.
func TestAScratchCheckoutOfACancelledCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	head, err := w.repo.Head(w.ctx())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Scratch(w.ctx(), "alice", head); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	if _, err := w.Scratch(ctx, "alice", head); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// onDisk is the file system, in which somebody else acts once, right after a file of that name was opened or right before
// its lock is tried. TryLock asks twice for a lock that is held.
type onDisk struct {
	durable.OS
	name string
	act  func()
	left int // how often the file is opened or locked before act
}

func (f *onDisk) isDue(name string) bool {
	if !strings.HasSuffix(name, "/"+f.name) || f.act == nil {
		return false
	}
	f.left--
	return f.left < 0
}

func (f *onDisk) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	file, err := f.OS.OpenFile(name, flag, perm)
	if f.isDue(name) {
		f.act()
		f.act = nil
	}
	return file, err
}

func (f *onDisk) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	if f.isDue(name) {
		f.act()
		f.act = nil
	}
	return f.OS.TryLock(name, how)
}

// on opens the lanes of w on another file system.
func (w *world) on(fs durable.FS) *worktree.Lanes {
	w.t.Helper()
	log := mem.New().Log()
	l, err := worktree.Open(w.repo, durable.New(fs), paths.Dir(w.root), journal.New(log), log, worktree.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	return l
}

// An index that another program is just writing is read again, and is not taken for a damaged one.
func TestAHalfWrittenIndexIsReadAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	whole := w.index()
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": whole[:len(whole)/2]})
	l := w.on(&onDisk{name: "index.json", act: func() {
		gittest.Write(t, w.root, map[string]string{"new.json": whole})
		if err := os.Rename(w.root+"/new.json", w.root+"/.worktrees/index.json"); err != nil {
			t.Error(err)
		}
	}})
	if all, err := l.List(w.ctx()); err != nil || len(all) != 1 || all[0].Base == "" {
		t.Errorf("the lanes are %+v, %v", all, err)
	}
	if kept, _ := filepath.Glob(w.root + "/.team/damaged/*"); len(kept) > 0 {
		t.Errorf("kept as damaged: %v", kept)
	}
}

// An index whose rows are no table is damaged: its bytes are kept, and the lanes are found again.
func TestAnIndexWithoutATableIsDamaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": `{"worktrees": 7}`})
	if all, err := w.List(w.ctx()); err != nil || len(all) != 1 || all[0].Name != "one" {
		t.Errorf("the lanes are %+v, %v", all, err)
	}
	if kept, _ := filepath.Glob(w.root + "/.team/damaged/*"); len(kept) != 1 {
		t.Errorf("kept as damaged: %v", kept)
	}
}

// What a maker was starting when it died has the maker's lease for another instant, and recovery waits for that.
func TestRecoveryWaitsForTheLeaseOfADeadMaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	head := w.git(w.root, "rev-parse", "HEAD")
	w.git(w.root, "branch", "wt/one")
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": fmt.Sprintf(
		`{"worktrees":{"one":{"name":"one","path":%q,"branch":"wt/one","status":"creating","base":%q,`+
			`"maker":"lane-maker-1"}}}`,
		w.root+"/.worktrees/one", head)})
	unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-1.lock")
	if err != nil {
		t.Fatal(err)
	}
	l := w.on(&onDisk{name: "lane-maker-1.lock", left: 2, act: func() {
		if err := unlock(); err != nil {
			t.Error(err)
		}
	}})
	if err := l.Recover(w.ctx()); err != nil {
		t.Fatal(err)
	}
	w.tidy()
}
