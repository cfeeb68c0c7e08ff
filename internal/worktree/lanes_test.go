package worktree_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// world is a repository with its lanes.
type world struct {
	*worktree.Lanes
	t    *testing.T
	root string
	repo *git.Repo
	log  muster.Log
}

func newWorld(t *testing.T, files map[string]string) *world {
	t.Helper()
	return openWorld(t, gittest.Repo(t, files), worktree.Options{})
}

func openWorld(t *testing.T, root string, o worktree.Options) *world {
	t.Helper()
	repo, err := git.Open(t.Context(), root)
	require.NoError(t, err)
	require.NoError(t, repo.Exclude(t.Context(), paths.Excluded))
	log := mem.New().Log()
	l, err := worktree.Open(repo, durable.New(durable.OS{}), paths.Dir(root), journal.New(log), log, o)
	require.NoError(t, err)
	return &world{Lanes: l, t: t, root: root, repo: repo, log: log}
}

func (w *world) ctx() context.Context { return w.t.Context() }

// create makes a lane, and writes files into it.
func (w *world) create(name muster.Name, files ...map[string]string) muster.Lane {
	w.t.Helper()
	lane, err := w.Create(w.ctx(), name, 0, "HEAD")
	require.NoError(w.t, err)
	for _, f := range files {
		gittest.Write(w.t, lane.Path, f)
	}
	return lane
}

// git runs git. In a lane or a scratch checkout it does so as the commands of its member do.
func (w *world) git(dir string, args ...string) string {
	w.t.Helper()
	if p, _, err := worktree.PlaceAt(w.ctx(), w.Lanes, dir); err == nil && p != nil {
		require.NoError(w.t, p.Refresh())
	}
	return gittest.Git(w.t, dir, args...)
}

// lines are the lines of a stream.
func (w *world) lines(stream string) (all []string) {
	w.t.Helper()
	for r, err := range w.log.Read(w.ctx(), stream, 0) {
		require.NoError(w.t, err)
		all = append(all, string(r.Data))
	}
	return all
}

// events are the lane events so far: "worktree.keep NAME".
func (w *world) events() (all []string) {
	w.t.Helper()
	for _, line := range w.lines(muster.StreamLanes) {
		var e struct {
			Event    string
			Worktree struct{ Name string }
		}
		require.NoError(w.t, json.Unmarshal([]byte(line), &e))
		all = append(all, e.Event+" "+e.Worktree.Name)
	}
	return all
}

func (w *world) writeIndex(text string) {
	w.t.Helper()
	gittest.Write(w.t, w.root, map[string]string{".worktrees/index.json": text})
}

// removing says in the index that all active lanes are being removed, and that their work is at a ref.
func (w *world) removing(ref string) {
	w.t.Helper()
	w.writeIndex(strings.ReplaceAll(w.index(), `"status": "active"`, `"status": "active", "removing": {"ref": "`+ref+`"}`))
}

func (w *world) index() string { return gittest.Read(w.t, w.root, ".worktrees/index.json") }

// tidy fails the test if anything of a lane is left anywhere but for the named ones.
func (w *world) tidy(names ...string) {
	w.t.Helper()
	refs, err := w.repo.Refs(w.ctx(), "refs/heads/wt/")
	require.NoError(w.t, err)
	var branches, rows, dirs, entries []string
	for ref := range refs {
		branches = append(branches, strings.TrimPrefix(ref, "refs/heads/wt/"))
	}
	all, err := w.List(w.ctx())
	require.NoError(w.t, err)
	for _, l := range all {
		rows = append(rows, string(l.Name))
	}
	found, _ := filepath.Glob(w.root + "/.worktrees/*")
	for _, d := range found {
		if b := filepath.Base(d); b != "index.json" {
			dirs = append(dirs, b)
		}
	}
	found, _ = filepath.Glob(w.root + "/.git/worktrees/*")
	for _, d := range found {
		entries = append(entries, filepath.Base(d))
	}
	slices.Sort(names)
	for what, have := range map[string][]string{"branches": branches, "rows": rows, "directories": dirs, "registrations": entries} {
		slices.Sort(have)
		if !slices.Equal(have, names) {
			w.t.Errorf("%s: %v, want %v", what, have, names)
		}
	}
}

// ok fails the test at an error of what returns something else, too.
func (w *world) ok(_ any, err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

func (w *world) ok2(_, _ any, err error) {
	w.t.Helper()
	require.NoError(w.t, err)
}

func exists(path string) bool { return !durable.IsMissing(path) }

// returns fails the test unless a call returns what is wanted, and no error.
func returns[T comparable](t testing.TB, want T) func(got T, err error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if got != want || err != nil {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	}
}

// equal fails the test unless both are the same.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// fault is the error of what returns something else, too.
func fault(_ any, err error) error { return err }

func wants(t *testing.T, err error, code *muster.Error, says string) {
	t.Helper()
	if !errors.Is(err, code) || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v, want %s saying %q", err, code.Code, says)
	}
}

func TestCreate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a.txt": "a\n"})
	before := gittest.Checkout(t, w.root)
	lane, err := w.Create(w.ctx(), "task-1-a", 1, "")
	require.NoError(t, err)
	head, _ := w.repo.Head(w.ctx())
	if lane.Path != w.root+"/.worktrees/task-1-a" || lane.Branch != "wt/task-1-a" || lane.Base != head || lane.TaskID != 1 ||
		lane.Status != muster.LaneActive || lane.CreatedAt == 0 || len(lane.Extra) != 0 {
		t.Errorf("lane %+v", lane)
	}
	if got, err := w.Get(w.ctx(), "task-1-a"); err != nil || got.Path != lane.Path || got.CreatedAt != lane.CreatedAt {
		t.Errorf("got %+v, %v", got, err)
	}
	if dir, err := w.Enter(w.ctx(), "task-1-a"); err != nil || dir != lane.Path || gittest.Read(t, dir, "a.txt") != "a\n" {
		t.Errorf("entered %s, %v", dir, err)
	}
	returns(t, false)(w.Changed(w.ctx(), "task-1-a"))
	wants(t, fault(w.Create(w.ctx(), "task-1-a", 1, "")), muster.ErrHeld, "task-1-a")
	wants(t, fault(w.Create(w.ctx(), "Bad Name", 1, "")), muster.ErrInvalid, "cannot be a name")
	wants(t, fault(w.Create(w.ctx(), "other", 1, "nowhere")), muster.ErrNotFound, "nowhere")
	w.git(w.root, "branch", "wt/branched")
	wants(t, fault(w.Create(w.ctx(), "branched", 1, "")), muster.ErrHeld, "branch wt/branched")
	gittest.Write(t, w.root, map[string]string{".worktrees/there/mine.txt": "mine\n"})
	wants(t, fault(w.Create(w.ctx(), "there", 1, "")), muster.ErrHeld, "exists already")
	if gittest.Read(t, w.root, ".worktrees/there/mine.txt") != "mine\n" || w.git(w.root, "rev-parse", "wt/branched") != head {
		t.Error("what was there before is gone")
	}
	wants(t, fault(w.Get(w.ctx(), "there")), muster.ErrNotFound, "there")
	equal(t, "events", fmt.Sprint(w.events()), "[worktree.create.before task-1-a worktree.create.after task-1-a]")
	makers, _ := filepath.Glob(w.root + "/.team/locks/lane-maker-*")
	equal(t, "leases of makers that are left", len(makers), 0)
	equal(t, "the user's checkout has changed", gittest.Checkout(t, w.root), before)
	equal(t, "the state shows in the user's status", w.git(w.root, "status", "--porcelain"), "")
}

// Another name of the lane would not help: it is not Held.
func TestABranchNamedAsTheLanesDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	require.NoError(t, worktree.CheckBranchNames(w.ctx(), w.repo))
	w.git(w.root, "branch", "wt")
	wants(t, worktree.CheckBranchNames(w.ctx(), w.repo), muster.ErrInvalid, "your branch wt")
	wants(t, fault(w.Create(w.ctx(), "one", 0, "")), muster.ErrInvalid, "your branch wt")
	w.git(w.root, "branch", "-m", "wt", "mine")
	w.create("one")
	require.NoError(t, worktree.CheckBranchNames(w.ctx(), w.repo))
}

func TestAFailedCreateLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b": "b\n"})
	// A blob that is not there: the branch and the registration come to be, the files cannot.
	blob := w.git(w.root, "rev-parse", "HEAD:a")
	require.NoError(t, os.Remove(w.root+"/.git/objects/"+blob[:2]+"/"+blob[2:]))
	wants(t, fault(w.Create(w.ctx(), "one", 0, "")), muster.ErrUnavailable, "git cannot make the lane one")
	w.tidy()
	equal(t, "events", fmt.Sprint(w.events()), "[worktree.create.before one worktree.create.failed one]")
}

func TestParallelLanes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a/b/c.txt": "c\n", "d.txt": "d\n"})
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 5 {
				name := muster.Name(fmt.Sprintf("lane-%d-%d", g, i))
				lane, err := w.Create(w.ctx(), name, muster.TaskID(i+1), "HEAD")
				if err != nil {
					t.Error(err)
					return
				}
				equal(t, string(name), gittest.Read(t, lane.Path, "a/b/c.txt"), "c\n")
				if i%2 == 1 {
					if err := w.Remove(w.ctx(), name, false); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	var left []string
	for g := range 8 {
		for _, i := range []int{0, 2, 4} {
			left = append(left, fmt.Sprintf("lane-%d-%d", g, i))
		}
	}
	w.tidy(left...)
	w.git(w.root, "fsck")
}

// One name, many who want it: one gets it.
func TestOneLaneAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var wg sync.WaitGroup
	var made atomic.Int32
	for range 6 {
		wg.Go(func() {
			if _, err := w.Create(w.ctx(), "wanted", 0, ""); err == nil {
				made.Add(1)
			} else if !errors.Is(err, muster.ErrHeld) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, "made", made.Load(), 1)
	w.tidy("wanted")
}

func TestTheIndexKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.writeIndex("\ufeff" + `{"version":7,"worktrees":{"theirs":{"name":"theirs","path":".worktrees/theirs","branch":"wt/theirs","task_id":null,"status":"active","mood":"good"},"odd":["what"]}}`)
	w.create("ours")
	require.NoError(t, w.Keep(w.ctx(), "theirs"))
	var x struct {
		Version   int
		Worktrees map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal([]byte(w.index()), &x))
	if x.Version != 7 || !strings.Contains(string(x.Worktrees["theirs"]), `"mood": "good"`) || !strings.Contains(string(x.Worktrees["theirs"]), "kept") || x.Worktrees["odd"] == nil || x.Worktrees["ours"] == nil {
		t.Errorf("the index is now %s", w.index())
	}
	if lane, err := w.Get(w.ctx(), "theirs"); err != nil || lane.Path != w.root+"/.worktrees/theirs" {
		t.Errorf("%+v, %v", lane, err)
	}
	equal(t, "lanes", len(w.must(w.List(w.ctx()))), 2)
}

// An index that cannot be read is kept and made anew: the rows before the damage stay, git has the others, and the
// events know their tasks.
func TestADamagedIndexIsMadeAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	for i, name := range []muster.Name{"a-one", "b-two", "c-three"} {
		require.NoError(t, fault(w.Create(w.ctx(), name, muster.TaskID(i+1), "HEAD")))
	}
	require.NoError(t, w.Keep(w.ctx(), "b-two"))
	was := w.index()
	at := strings.Index(was, `"b-two": {`) + 20
	torn := was[:at] + "\x00" + was[at+1:]
	w.writeIndex(torn)
	var g sync.WaitGroup
	for range 4 {
		g.Go(func() {
			equal(t, "lanes", len(w.must(w.List(w.ctx()))), 3)
		})
	}
	g.Wait()
	one, err := w.Get(w.ctx(), "a-one")
	if err != nil || one.Base == "" {
		t.Errorf("the row before the damage: %+v, %v", one, err)
	}
	two, err := w.Get(w.ctx(), "b-two")
	if err != nil || two.TaskID != 2 || two.Status != muster.LaneKept || two.Base != "" {
		t.Errorf("the damaged row: %+v, %v", two, err)
	}
	for _, name := range []muster.Name{"a-one", "b-two", "c-three"} {
		w.ok(w.Enter(w.ctx(), name))
	}
	aside, _ := filepath.Glob(w.root + "/.team/damaged/index.json.*")
	if len(aside) != 1 {
		t.Fatalf("kept: %v", aside)
	}
	if data, err := os.ReadFile(aside[0]); err != nil || string(data) != torn {
		t.Errorf("kept was %q, %v", data, err)
	}
	equal(t, "said", strings.Count(fmt.Sprint(w.lines(muster.StreamEvents)), `"event":"`+journal.StateCorrupt+`"`), 1)
	// And in the middle of a change.
	w.writeIndex(was[:at])
	w.ok(w.Create(w.ctx(), "d-four", 4, "HEAD"))
	equal(t, "lanes", len(w.must(w.List(w.ctx()))), 4)
}

// A row that names something else than the directory and the branch of its lane is told once. Nothing is done with what
// it names.
func TestARowThatNamesNoLane(t *testing.T) {
	t.Parallel()
	users := t.TempDir()
	gittest.Write(t, users, map[string]string{"one/mine": "mine\n"})
	for says, row := range map[string]string{
		"where no lane of that name can be": `"path": "` + users + `/one", "branch": "wt/one"`,
		"which is no branch of that lane":   `"path": ".worktrees/one", "branch": "main"`,
	} {
		w := newWorld(t, map[string]string{"a": "a\n"})
		gittest.Write(t, w.root, map[string]string{".worktrees/index.json": `{"worktrees": {"one": {"status": "active", ` + row + `}}}`})
		for range 2 {
			require.NoError(t, w.Recover(w.ctx()))
		}
		wants(t, w.Remove(w.ctx(), "one", true), muster.ErrInvalid, says)
		if all, err := w.List(w.ctx()); err != nil || len(all) != 1 || all[0].Status != muster.LaneFailed {
			t.Errorf("%s: %+v, %v", says, all, err)
		}
		equal(t, "told", strings.Count(fmt.Sprint(w.lines(muster.StreamEvents)), `"event":"`+journal.LaneFailed+`"`), 1)
		if gittest.Read(t, users, "one/mine") != "mine\n" {
			t.Error("the user's file is gone")
		}
	}
}

func TestEnterFailsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	before := gittest.Checkout(t, w.root)
	lane := w.create("one")
	w.git(lane.Path, "checkout", "-q", "-b", "feature")
	wants(t, fault(w.Enter(w.ctx(), "one")), muster.ErrInvalid, "on branch feature")
	_, _, err := w.Commit(w.ctx(), "one", "x")
	wants(t, err, muster.ErrInvalid, "on branch feature")
	returns(t, lane.Path)(w.Workdir(w.ctx(), "one"))
	w.git(lane.Path, "checkout", "-q", "--detach")
	wants(t, fault(w.Enter(w.ctx(), "one")), muster.ErrInvalid, "on no branch")
	w.git(lane.Path, "checkout", "-q", "wt/one")
	w.ok(w.Enter(w.ctx(), "one"))
	// Without its .git file the directory is just a part of the user's checkout.
	require.NoError(t, os.Remove(lane.Path+"/.git"))
	gittest.Write(t, lane.Path, map[string]string{"mine": "mine\n"})
	_, _, err = w.Commit(w.ctx(), "one", "x")
	for what, err := range map[string]error{"commit": err,
		"enter": fault(w.Enter(w.ctx(), "one")), "stand": fault(w.Workdir(w.ctx(), "one")),
		"merge":  fault(w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "main"))),
		"remove": w.Remove(w.ctx(), "one", false), "force": w.Remove(w.ctx(), "one", true),
		"archive": fault(w.Archive(w.ctx(), "one")),
	} {
		if !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	// Another repository in its place.
	w.git(lane.Path, "init", "-q")
	w.git(lane.Path, "commit", "-q", "--allow-empty", "-m", "x")
	wants(t, fault(w.Workdir(w.ctx(), "one")), muster.ErrInvalid, "not the lane one any more")
	if gittest.Read(t, lane.Path, "mine") != "mine\n" || gittest.Checkout(t, w.root) != before {
		t.Error("something was touched")
	}
}

func TestScratch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a1\n", "b": "b1\n"})
	first, _ := w.repo.Head(w.ctx())
	w.land(map[string]string{"a": "a2\n", "new": "new\n"})
	second, _ := w.repo.Head(w.ctx())
	before := gittest.Checkout(t, w.root)
	scratch := func(commit string) string {
		t.Helper()
		dir, err := w.Scratch(w.ctx(), "alice", commit)
		require.NoError(t, err)
		if got := w.git(dir, "rev-parse", "HEAD"); got != commit {
			t.Fatalf("at %s", got)
		}
		return dir
	}
	dir := scratch(first)
	if dir != w.root+"/.team/scratch/alice" || gittest.Read(t, dir, "a") != "a1\n" {
		t.Error(dir)
	}
	gittest.Write(t, dir, map[string]string{"b": "scribbled\n", "notes": "mine\n", "new": "in the way\n"})
	w.git(dir, "checkout", "-q", "-b", "wander")
	scratch(first)
	equal(t, "the same commit, and a file has moved", gittest.Read(t, dir, "b"), "scribbled\n")
	scratch(second)
	if gittest.Read(t, dir, "a") != "a2\n" || gittest.Read(t, dir, "b") != "b1\n" || gittest.Read(t, dir, "notes") != "mine\n" || gittest.Read(t, dir, "new") != "new\n" {
		t.Error("tracked files have not moved, or others have")
	}
	w.ok(w.Scratch(w.ctx(), "lead", second))
	wants(t, fault(w.Scratch(w.ctx(), "../x", second)), muster.ErrInvalid, "cannot be a name")
	equal(t, "the user's checkout has changed", gittest.Checkout(t, w.root), before)
}
