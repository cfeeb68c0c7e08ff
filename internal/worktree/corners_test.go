package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
)

// Whatever is asked of a lane that is not there, the answer is that it is not there.
func TestALaneThatIsNotThere(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for name, err := range map[string]error{
		"changed": fault(w.Changed(w.ctx(), "none")), "ignored": fault(w.Ignored(w.ctx(), "none")),
		"status": fault(w.Status(w.ctx(), "none")), "merge": fault(w.Merge(w.ctx(), "none", "HEAD")),
		"unresolved": fault(w.Unresolved(w.ctx(), "none")), "archive": fault(w.Archive(w.ctx(), "none")),
		"preserve": fault(w.Preserve(w.ctx(), "none")), "enter": fault(w.Enter(w.ctx(), "none")),
		"remove": w.Remove(w.ctx(), "none", true), "keep": w.Keep(w.ctx(), "none"), "release": w.Release(w.ctx(), "none"),
	} {
		if !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
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

// pass acts if it is time to.
func (f *onDisk) pass(name string) {
	if f.act == nil || !strings.HasSuffix(name, "/"+f.name) {
		return
	}
	if f.left--; f.left < 0 {
		f.act()
		f.act = nil
	}
}

func (f *onDisk) OpenFile(name string, flag int, perm os.FileMode) (durable.File, error) {
	file, err := f.OS.OpenFile(name, flag, perm)
	f.pass(name)
	return file, err
}

func (f *onDisk) TryLock(name string, how durable.LockMode) (durable.Locked, error) {
	f.pass(name)
	return f.OS.TryLock(name, how)
}

// on opens the lanes of w on another file system.
func (w *world) on(fs durable.FS) *worktree.Lanes {
	w.t.Helper()
	l, err := worktree.Open(w.repo, durable.New(fs), paths.Dir(w.root), journal.New(w.log), w.log, worktree.Options{})
	require.NoError(w.t, err)
	return l
}

// What a maker was starting when it died has the maker's lease for another instant, and recovery waits for that.
func TestRecoveryWaitsForTheLeaseOfADeadMaker(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.git(w.root, "branch", "wt/one")
	w.rows(w.row("one", muster.LaneCreating, `,"maker":"lane-maker-1"`))
	unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-1.lock")
	require.NoError(t, err)
	l := w.on(&onDisk{name: "lane-maker-1.lock", left: 2, act: func() { require.NoError(t, unlock()) }})
	require.NoError(t, l.Recover(w.ctx()))
	w.tidy()
}

// Recovery undoes a half-made lane only if it is still the one that it looked at. Between the look and the maker's
// lease, somebody else can have undone it and begun to make a lane of the same name, under another lease. That maker is
// alive, and its branch must stay.
func TestRecoveryLeavesALaneThatAnotherMakerHasBegun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	madeBy := func(maker string) { w.rows(w.row("one", muster.LaneCreating, `,"maker":"`+maker+`"`)) }
	w.git(w.root, "branch", "wt/one")
	madeBy("lane-maker-1") // which has died
	isAsked := false
	lanes := w.on(&onDisk{name: "lane-maker-1.lock", act: func() {
		isAsked = true
		unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-2.lock")
		require.NoError(t, err)
		t.Cleanup(func() { _ = unlock() })
		madeBy("lane-maker-2")
	}})
	require.NoError(t, lanes.Recover(t.Context()))
	if !isAsked {
		t.Fatal("recovery never asked whether the maker lives")
	}
	if got := w.git(w.root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/wt/"); got != "one" {
		t.Errorf("branches %q: the lane of a living maker was undone", got)
	}
	if lane, err := lanes.Get(t.Context(), "one"); err != nil || string(lane.Extra["maker"]) != `"lane-maker-2"` {
		t.Errorf("%+v, %v", lane, err)
	}
}

// A call that ends when the worktree is made already has made a lane: whoever calls is told so.
func TestACreationThatEndsTooLateIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ctx, cancel := context.WithCancel(w.ctx())
	l := w.on(&onDisk{name: "lanes.lock", left: 1, act: func() { // the row is written for the second time
		unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lanes.lock")
		require.NoError(t, err)
		time.AfterFunc(50*time.Millisecond, func() { _ = unlock() })
		cancel()
	}})
	lane, err := l.Create(ctx, "one", 0, "")
	if err != nil || lane.Status != muster.LaneActive || ctx.Err() == nil {
		t.Errorf("the lane is %+v, %v", lane, err)
	}
}

// muster reads none of the files in conflict itself, whatever the owner has put in their places, and has limited numbers
// of them looked at. It is not parallel: it measures all memory.
func TestFilesInConflictAreNotReadByMuster(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one")
	place, _, err := worktree.PlaceAt(w.ctx(), w.Lanes, lane.Path)
	require.NoError(t, err)
	id := w.git(lane.Path, "rev-parse", "HEAD:a")
	unmerged := func(names ...string) {
		t.Helper()
		in := ""
		for _, name := range names {
			in += "100644 " + id + " 2\t" + name + "\x00100644 " + id + " 3\t" + name + "\x00"
		}
		w.ok(place.Do(w.ctx(), git.Call{Args: []string{"update-index", "-z", "--index-info"}, Stdin: in}))
	}
	require.NoError(t, os.WriteFile(lane.Path+"/large", []byte("x\n<<<<<<< ours\n"), 0o600))
	require.NoError(t, os.Truncate(lane.Path+"/large", 100<<20))
	gittest.Write(t, lane.Path, map[string]string{"a=1\n2": "1\n2\r\n||||||| base\n", "-n": "<<<<<<< \n", "dir/b": "b"})
	unmerged("large", "a=1\n2", "-n", "dir", "gone")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	open, err := w.Unresolved(w.ctx(), "one")
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	equal(t, "open", fmt.Sprint(open), "[-n line 1 a=1\n2 line 3 large line 2]")
	if n := after.TotalAlloc - before.TotalAlloc; n > 50<<20 {
		t.Errorf("muster had %d MB", n>>20)
	}
	var many []string
	for i := range 2001 {
		many = append(many, fmt.Sprint("many/", i))
	}
	unmerged(many...)
	wants(t, fault(w.Unresolved(w.ctx(), "one")), muster.ErrInvalid, "at most 2000")
	_, _, err = w.Commit(w.ctx(), "one", "too many")
	wants(t, err, muster.ErrInvalid, "at most 2000")
}

// What git cannot look into is not left out without a word: here the names are too long together.
func TestDirectoriesThatAreTooDeep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	lane := w.create("one", map[string]string{"b": "b", ".gitignore": "ignored"})
	root, err := os.OpenRoot(lane.Path)
	require.NoError(t, err)
	defer root.Close()
	deep := strings.Repeat("/"+strings.Repeat("n", 64), 100)
	require.NoError(t, root.MkdirAll("ignored"+deep, 0o700))
	require.NoError(t, root.MkdirAll("deep"+deep, 0o700))
	_, _, err = w.Commit(w.ctx(), "one", "deep")
	wants(t, err, muster.ErrInvalid, "what is in deep/nnn")
	if err != nil && (strings.Contains(err.Error(), "ignored") || len(err.Error()) > 5000) {
		t.Error(err)
	}
}

// Nothing is archived while commands run in the lane. Looks go on.
func TestALaneWithCommandsIsNotPreserved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	lane := w.create("one", map[string]string{"b": "b"})
	end, err := w.BeginCommand(w.ctx(), lane.Path, "sleep")
	require.NoError(t, err)
	w.ok2(worktree.Content(w.ctx(), w.Lanes, "one", lane.Base))
	wants(t, fault(w.Preserve(w.ctx(), "one")), muster.ErrHeld, "commands run in one: sleep")
	end()
	w.ok(w.Preserve(w.ctx(), "one"))
}
