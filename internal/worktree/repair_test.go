package worktree_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
)

// A check finds each state that a crash or a hand leaves, and changes nothing. A repair mends what it can, and says
// what became of it.
func TestRepairSaysWhatBecameOfEachFinding(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		left        func(w *world)
		finds, done string // a part of each; done is "" where the finding stays
		isBusy      bool
	}{
		"dead maker": {finds: "died before it was complete", done: "it is gone", left: func(w *world) {
			w.rows(w.row("one", muster.LaneCreating, `,"maker":"lane-maker-1"`))
		}},
		"no maker": {finds: "died before it was complete", done: "it is gone", left: func(w *world) {
			w.rows(w.row("one", muster.LaneCreating, ""))
		}},
		"removal": {finds: "its removal was interrupted", done: "it is gone", isBusy: true, left: func(w *world) {
			w.rows(w.row("one", muster.LaneActive, `,"removing":{"ref":""}`))
		}},
		"locked": {finds: "its worktree is locked", isBusy: true, left: func(w *world) {
			w.git(w.root, "worktree", "lock", w.create("one").Path)
			w.rows(w.row("one", muster.LaneActive, `,"removing":{"ref":""}`))
		}},
		"nothing left": {finds: "its directory and its branch are gone", done: "it is gone", left: func(w *world) {
			w.rows(w.row("one", muster.LaneActive, ""))
		}},
		"branch left": {finds: "the branch wt/one has its commits", done: "it is failed now", left: func(w *world) {
			w.git(w.root, "branch", "wt/one")
			w.rows(w.row("one", muster.LaneKept, ""))
		}},
		"no row": {finds: "git has it, and the index does not", done: "it is active now", left: func(w *world) {
			w.create("one")
			w.rows()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			c.left(w)
			was := w.index()
			found := w.findings()
			if len(found) != 1 || found[0].Lane != "one" || !strings.Contains(found[0].Text, c.finds) || found[0].Busy != c.isBusy {
				t.Fatalf("found %+v", found)
			}
			equal(t, "the check changed the index", w.index(), was)
			done, err := w.Repair(w.ctx())
			require.NoError(t, err)
			if c.done == "" {
				if len(done) != 0 || !slices.Equal(w.findings(), found) {
					t.Errorf("mended %+v", done)
				}
				return
			}
			if len(done) != 1 || done[0].Lane != "one" || done[0].Done != c.done || len(w.findings()) != 0 {
				t.Errorf("mended %+v, and there is still %+v", done, w.findings())
			}
		})
	}
}

// What a living process makes is no finding, and nobody enters or archives it. A failed lane is none either.
func TestALaneInTheMakingIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-1.lock")
	require.NoError(t, err)
	defer func() { _ = unlock() }()
	w.rows(w.row("one", muster.LaneCreating, `,"maker":"lane-maker-1"`), w.row("two", muster.LaneFailed, ""))
	equal(t, "findings", len(w.findings()), 0)
	for _, name := range []muster.Name{"one", "two"} {
		wants(t, fault(w.Workdir(w.ctx(), name)), muster.ErrHeld, "nobody can work in it")
	}
	ref, err := w.Archive(w.ctx(), "one")
	wants(t, err, muster.ErrHeld, "is being made right now")
	if ref != "" || w.notes("worktree.remove.before") != 0 {
		t.Errorf("archived as %s, events %v", ref, w.events())
	}
	// Recovery waits for a maker that may just be dying, but not when its own call has ended.
	ctx, cancel := context.WithCancel(w.ctx())
	l := w.on(&onDisk{name: "lane-maker-1.lock", act: cancel})
	if err := l.Recover(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Where nothing is wrong, nothing is written.
func TestNothingIsWrittenWhereNothingIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	equal(t, "lanes", len(w.must(w.List(w.ctx()))), 0)
	if done, err := w.Repair(w.ctx()); err != nil || len(done) != 0 {
		t.Errorf("mended %v, %v", done, err)
	}
	for _, dir := range []string{".team", ".worktrees"} {
		if _, err := os.Stat(filepath.Join(w.root, dir)); !os.IsNotExist(err) {
			t.Errorf("%s was made (%v)", dir, err)
		}
	}
	require.NoError(t, w.Recover(w.ctx()))
	equal(t, "the index is now", w.index(), "")
}

// A lane that another process removes while it is looked at is no finding.
func TestALaneThatGoesDuringACheckIsNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	lane := w.create("one")
	removing := w.row("one", muster.LaneActive, `,"removing":{"ref":""}`)
	for _, now := range []string{removing, ""} {
		l := w.on(&onDisk{name: "index.json", act: func() {
			require.NoError(t, os.RemoveAll(lane.Path+"/.git"))
			gittest.Write(t, w.root, map[string]string{"new.json": `{"worktrees":{` + now + `}}`})
			require.NoError(t, os.Rename(w.root+"/new.json", w.root+"/.worktrees/index.json"))
		}})
		// What was read first is the row as it was.
		if found, err := l.Check(w.ctx()); err != nil || slices.ContainsFunc(found, func(f worktree.Finding) bool {
			return strings.Contains(f.Text, "any more")
		}) {
			t.Errorf("found %+v, %v", found, err)
		}
		w.rows(w.row("one", muster.LaneActive, ""))
		w.git(w.root, "worktree", "repair")
	}
}

// All lanes are archived, each is told with its ref, and the first one that cannot be archived, or told, ends it.
func TestArchiveAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	for _, name := range []muster.Name{"aaa", "bbb", "ccc", "ddd"} {
		w.create(name)
	}
	gittest.Write(t, w.root, map[string]string{".worktrees/bbb/b": "b\n"})
	w.git(w.root+"/.worktrees/ccc", "init", "-q", "inner")
	row := func(name string) string { return w.row(name, muster.LaneActive, "") }
	w.rows(row("bbb"), row("ccc"), row("ddd")) // aaa is found again, and its base is not known
	saved := map[muster.Name]string{}
	save := func(name muster.Name, ref string) error {
		saved[name] = ref
		return nil
	}
	wants(t, w.ArchiveAll(w.ctx(), save), muster.ErrInvalid, "lane ccc cannot be archived")
	if want := map[muster.Name]string{"aaa": "refs/muster/archive/aaa-1",
		"bbb": "refs/muster/archive/bbb-1"}; !maps.Equal(saved, want) {
		t.Errorf("saved %v", saved)
	}
	w.tidy("ccc", "ddd")
	require.NoError(t, os.RemoveAll(w.root+"/.worktrees/ccc/inner"))
	full := errors.New("full")
	if err := w.ArchiveAll(w.ctx(), func(muster.Name, string) error { return full }); !errors.Is(err, full) {
		t.Error(err)
	}
	w.tidy("ddd")
	require.NoError(t, w.ArchiveAll(w.ctx(), save))
	w.tidy()
}

// What is told of a lane names its branch, its archive and why it failed.
func TestTheEventsOfALaneSayWhatHappened(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	w.create("one")
	gittest.Write(t, w.root, map[string]string{".worktrees/one/b": "b\n", ".worktrees/two/mine": "mine\n"})
	w.ok(w.Archive(w.ctx(), "one"))
	w.git(w.root, "branch", "wt/two")
	w.rows(w.row("two", muster.LaneCreating, `,"maker":"lane-maker-1"`)) // with files that nobody knows of
	require.NoError(t, w.Recover(w.ctx()))
	two, err := w.Get(w.ctx(), "two")
	if err != nil || two.Status != muster.LaneFailed || len(two.Extra) != 0 {
		t.Errorf("%+v, %v", two, err)
	}
	if w.git(w.root, "rev-parse", "wt/two") == "" || gittest.Read(t, two.Path, "mine") != "mine\n" {
		t.Error("what nobody knows of is gone")
	}
	var told []string
	for e, err := range journal.New(w.log).Read(w.ctx(), 0) {
		require.NoError(t, err)
		told = append(told, strings.Join([]string{e.Kind, e.Text("lane"), e.Text("branch"), e.Text("ref"), e.Text("text")}, "|"))
	}
	why := "cannot verify that the half-made lane two has nothing to lose, so it is kept: " + two.Path +
		" holds files that git knows nothing of"
	want := []string{journal.LaneCreated + "|one|wt/one||", journal.LaneArchived + "|one||refs/muster/archive/one-1|",
		journal.LaneRemoved + "|one|||", journal.LaneFailed + "|two|||" + why}
	if !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	lines := w.lines(muster.StreamLanes)
	last := lines[len(lines)-1]
	if !strings.Contains(last, why) || !strings.Contains(last, `"status":"failed"`) {
		t.Errorf("the last line is %s", last)
	}
}
