package worktree_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// A commit has one archive ref, a snapshot of the same content as another one shares its ref, and every other commit
// gets the next number.
func TestOneArchiveRefForOneContent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	tree, head := w.git(w.root, "rev-parse", "HEAD^{tree}"), w.git(w.root, "rev-parse", "HEAD")
	commit := func(message string, parents ...string) string {
		args := []string{"commit-tree", tree, "-m", message}
		for _, p := range parents {
			args = append(args, "-p", p)
		}
		return w.git(w.root, args...)
	}
	const subject = "lane x as it was when it was archived"
	one, same, other := commit(subject, head), commit(subject+"\n\nlater", head), commit(subject)
	owners, again := commit("one", head), commit("one\n\nlater", head) // a commit of the owner's counts as it is
	ended, cancel := context.WithCancel(w.ctx())
	cancel()
	for range 2 { // before there is any ref, and after
		if ref, err := worktree.ArchiveRef(ended, w.repo, "x", one); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled: %q, %v", ref, err)
		}
		for _, c := range []struct{ commit, ref string }{
			{one, "x-1"}, {same, "x-1"}, {owners, "x-2"}, {other, "x-3"}, {again, "x-4"}, {owners, "x-2"}, {one, "x-1"},
		} {
			ref, err := worktree.ArchiveRef(w.ctx(), w.repo, "x", c.commit)
			if err != nil || ref != "refs/muster/archive/"+c.ref {
				t.Errorf("archived as %s, %v; want %s", ref, err, c.ref)
			}
		}
	}
}

// Several who archive at once under one name get a ref each.
func TestArchiveRefsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	var all sync.WaitGroup
	for n := range 6 {
		commit := w.git(w.root, "commit-tree", "-m", fmt.Sprint(n), "HEAD^{tree}")
		all.Go(func() {
			ref, err := worktree.ArchiveRef(w.ctx(), w.repo, "x", commit)
			if err != nil || w.git(w.root, "rev-parse", ref) != commit {
				t.Errorf("archived as %s, %v", ref, err)
			}
		})
	}
	all.Wait()
}

// An archive has the commits of the branch, those at a HEAD that has left it, and those that a merge brings in.
func TestAnArchiveHasAllCommitsOfALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.conflict()
	tip := w.git(lane.Path, "rev-parse", "HEAD")
	w.git(lane.Path, "checkout", "-q", "--detach", lane.Base)
	w.git(lane.Path, "commit", "-q", "--allow-empty", "-m", "beside")
	beside := w.git(lane.Path, "rev-parse", "HEAD")
	if out, err := gittest.Try(lane.Path, "merge", "--no-commit", "--no-ff", "main"); err != nil {
		t.Fatal(out)
	}
	ref, err := w.Archive(w.ctx(), "one")
	require.NoError(t, err)
	equal(t, "the parents", w.git(w.root, "log", "-1", "--format=%P", ref),
		beside+" "+tip+" "+w.git(w.root, "rev-parse", "main"))
	w.tidy()
}

// What cannot be read is not archived as if it were nothing, and the error says what it is.
func TestWhatCannotBeArchivedIsNamed(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one", map[string]string{"b": "b\n"})
	tmp := os.TempDir()
	t.Setenv("TMPDIR", w.root+"/missing")
	wants(t, fault(w.Preserve(w.ctx(), "one")), muster.ErrInvalid, "no temporary directory")
	t.Setenv("TMPDIR", tmp)
	index := w.git(lane.Path, "rev-parse", "--absolute-git-dir") + "/index"
	require.NoError(t, errors.Join(os.Remove(index), os.Mkdir(index, 0o700)))
	wants(t, fault(w.Preserve(w.ctx(), "one")), muster.ErrInvalid, "the lane's index cannot be read")
}

// A lane of which nothing is left, or whose removal had come to its last step, goes without an archive.
func TestALaneWithNothingLeftGoes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	for _, more := range []string{"", `,"removing":{"ref":""}`} {
		w.rows(w.row("one", muster.LaneActive, more))
		returns(t, false)(w.Changed(w.ctx(), "one"))
		returns(t, "")(w.Archive(w.ctx(), "one"))
	}
	lane := w.create("two")
	returns(t, "")(w.Archive(w.ctx(), "two"))
	w.tidy()
	equal(t, "refs", w.git(w.root, "for-each-ref", "refs/muster"), "")
	// One that is being removed is removed without another question, whatever became of its files.
	w.create("two")
	require.NoError(t, os.Remove(lane.Path+"/.git"))
	w.rows(w.row("two", muster.LaneActive, `,"removing":{"ref":""}`))
	wants(t, fault(w.Enter(w.ctx(), "two")), muster.ErrHeld, "being removed")
	require.NoError(t, w.Remove(w.ctx(), "two", false))
	w.tidy()
}

// The completion of a later claim on a kept lane is written too, and the other lanes' logs tell no failure.
func TestEachCompletionIsWrittenOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	require.NoError(t, w.Keep(w.ctx(), "one"))
	for _, fence := range []int{1, 1, 2, 2} {
		task := muster.Task{ID: 1, Fence: fence, Worktree: "one", Status: muster.Completed}
		returns(t, "")(w.ArchiveCompleted(w.ctx(), task))
	}
	equal(t, "how often it was completed", w.notes("task.completed"), 2)
	equal(t, "how often it was kept", w.notes("worktree.keep"), 1)
	w.rows(w.row("two", muster.LaneActive, `,"removing":{"ref":""}`))
	if err := w.Recover(w.ctx()); err != nil || w.notes("worktree.remove.failed") != 0 || w.notes("worktree.remove.after") != 1 {
		t.Errorf("%v, events %v", err, w.events())
	}
}

// What a release kept aside and what its owner committed afterwards have one content and two ids: the lane goes anyway,
// also when an earlier version has noted the first ref in a removal that recovery ends.
func TestArchivedAfterTheSameContentWasKeptAside(t *testing.T) {
	t.Parallel()
	for _, isInterrupted := range []bool{false, true} {
		w := newWorld(t, map[string]string{"a": "a\n"})
		lane := w.create("one", map[string]string{"b": "b\n"})
		aside, err := w.Preserve(w.ctx(), "one")
		require.NoError(t, err)
		head, _, err := w.Commit(w.ctx(), "one", "work")
		require.NoError(t, err)
		if isInterrupted {
			w.git(lane.Path, "checkout", "-q", "--detach")
			w.git(lane.Path, "commit", "-q", "--allow-empty", "-m", "beside the branch")
			head = w.git(lane.Path, "rev-parse", "HEAD")
			require.NoError(t, os.Remove(lane.Path+"/a"))
			w.removing(aside)
			require.NoError(t, w.Recover(w.ctx()))
		} else if ref, err := w.Archive(w.ctx(), "one"); err != nil || ref == aside {
			t.Errorf("archived as %s, %v", ref, err)
		}
		w.tidy()
		if w.git(w.root, "for-each-ref", "--contains", head, "refs/muster/archive/") == "" {
			t.Error("the branch's commit is nowhere")
		}
	}
}

func (w *world) notes(event string) int {
	return strings.Count("\n"+strings.Join(w.events(), "\n"), "\n"+event+" ")
}

// A lane that its owner gave back goes when its task is done; one that somebody asked to keep stays.
func TestArchiveCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	for i, name := range []muster.Name{"released", "kept", "both"} {
		lane, err := w.Create(ctx, name, muster.TaskID(i+1), "HEAD")
		require.NoError(t, err)
		gittest.Write(t, lane.Path, map[string]string{"b": string(name) + "\n"})
	}
	require.NoError(t, w.Release(ctx, "released"))
	require.NoError(t, w.Keep(ctx, "kept"))
	require.NoError(t, w.Keep(ctx, "both"))
	require.NoError(t, w.Release(ctx, "both")) // giving back does not take the wish to keep away
	for _, lane := range w.must(w.List(ctx)) {
		equal(t, string(lane.Name), lane.Status, muster.LaneKept)
	}
	wants(t, w.Remove(ctx, "released", false), muster.ErrHeld, "is kept")
	for range 2 { // the effect may run again
		for i, name := range []muster.Name{"released", "kept", "both"} {
			w.ok(w.ArchiveCompleted(ctx, muster.Task{ID: muster.TaskID(i + 1), Fence: 1, Worktree: name, Status: muster.Completed}))
		}
	}
	w.tidy("both", "kept")
	equal(t, "the content", w.git(w.root, "show", "refs/muster/archive/released-1:b"), "released")
	equal(t, "completed", w.notes("task.completed"), 3)
	is := regexp.MustCompile(`"task.completed".*"task":\{"id":[123],"status":"completed"\}`)
	equal(t, "with their tasks", len(is.FindAllString(strings.Join(w.lines(muster.StreamLanes), "\n"), -1)), 3)
	// Asked for by name and by force, it goes as well.
	require.NoError(t, w.Remove(ctx, "kept", true))
	require.NoError(t, w.Remove(ctx, "both", true))
	w.tidy()
}

// age makes a file look as if it had been there for a minute.
func (w *world) age(name string) {
	w.t.Helper()
	at := time.Now().Add(-time.Minute)
	require.NoError(w.t, os.Chtimes(w.root+"/"+name, at, at))
}

// The branch of a lane on which the user works in a worktree of his own stays.
func TestABranchThatTheUserIsOnStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one", map[string]string{"a": "a\n"})
	w.ok2(w.Commit(w.ctx(), "one", "work"))
	head := w.git(w.root, "rev-parse", "wt/one")
	theirs := t.TempDir() + "/theirs"
	w.git(w.root, "worktree", "add", "-q", "--force", theirs, "wt/one")
	w.ok(w.Archive(w.ctx(), "one"))
	equal(t, "the user's HEAD", w.git(theirs, "rev-parse", "HEAD"), head)
}
