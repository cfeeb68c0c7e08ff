package worktree_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
)

// What a release kept aside and what its owner committed afterwards have one content and two ids: the lane goes anyway,
// also when an earlier version has noted the first ref in a removal that recovery ends.
func TestArchivedAfterTheSameContentWasKeptAside(t *testing.T) {
	t.Parallel()
	for _, isInterrupted := range []bool{false, true} {
		w := newWorld(t, map[string]string{"a": "a\n"})
		w.create("one", map[string]string{"b": "b\n"})
		aside, err := w.Preserve(w.ctx(), "one")
		check(t, err)
		head, _, err := w.Commit(w.ctx(), "one", "work")
		check(t, err)
		if isInterrupted {
			w.removing(aside)
			check(t, w.Recover(w.ctx()))
		} else if ref, err := w.Archive(w.ctx(), "one"); err != nil || ref == aside {
			t.Errorf("archived as %s, %v", ref, err)
		}
		w.tidy()
		if w.git(w.root, "for-each-ref", "--points-at", head, "refs/muster/archive/") == "" {
			t.Error("the branch's commit is nowhere")
		}
	}
}

// One lane that cannot be removed stops neither recovery nor the other lanes.
func TestRecoveryGoesOnPastALaneThatStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ctx := w.ctx()
	stuck, _ := w.create("aaa"), w.create("bbb")
	w.git(w.root, "worktree", "lock", stuck.Path)
	w.removing("")
	check(t, w.Recover(ctx))
	w.tidy("aaa")
	if got := strings.Join(w.events(), ", "); !strings.Contains(got, "worktree.remove.failed aaa") {
		t.Errorf("events %s", got)
	}
}

func (w *world) notes(event string) (n int) {
	for _, e := range w.events() {
		if strings.HasPrefix(e, event+" ") {
			n++
		}
	}
	return n
}

// A lane that its owner gave back goes when its task is done; one that somebody asked to keep stays.
func TestArchiveCompleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	for i, name := range []muster.Name{"released", "kept", "both"} {
		lane, err := w.Create(ctx, name, muster.TaskID(i+1), "HEAD")
		check(t, err)
		gittest.Write(t, lane.Path, map[string]string{"b": string(name) + "\n"})
	}
	check(t, w.Release(ctx, "released"))
	check(t, w.Keep(ctx, "kept"))
	check(t, w.Keep(ctx, "both"))
	check(t, w.Release(ctx, "both")) // giving back does not take the wish to keep away
	for _, lane := range w.must(w.List(ctx)) {
		if lane.Status != muster.LaneKept {
			t.Errorf("%s is %s", lane.Name, lane.Status)
		}
	}
	wants(t, w.Remove(ctx, "released", false), muster.ErrHeld, "is kept")
	for range 2 { // the effect may run again
		for i, name := range []muster.Name{"released", "kept", "both"} {
			w.ok(w.ArchiveCompleted(ctx, muster.Task{ID: muster.TaskID(i + 1), Fence: 1, Worktree: name, Status: muster.Completed}))
		}
	}
	w.tidy("both", "kept")
	equal(t, "the content", w.git(w.root, "show", "refs/muster/archive/released-1:b"), "released")
	if n := w.notes("task.completed"); n != 3 {
		t.Errorf("completed %d times: %v", n, w.events())
	}
	for r, err := range w.log.Read(ctx, muster.StreamLanes, 0) {
		var e struct {
			Event string
			Task  struct {
				ID     muster.TaskID
				Status muster.TaskStatus
			}
		}
		check(t, errors.Join(err, json.Unmarshal(r.Data, &e)))
		if e.Event == "task.completed" && (e.Task.ID == 0 || e.Task.Status != muster.Completed) {
			t.Errorf("%s", r.Data)
		}
	}
	// Asked for by name and by force, it goes as well.
	check(t, w.Remove(ctx, "kept", true))
	check(t, w.Remove(ctx, "both", true))
	w.tidy()
}

// age makes a file look as if it had been there for a minute.
func (w *world) age(name string) {
	w.t.Helper()
	at := time.Now().Add(-time.Minute)
	check(w.t, os.Chtimes(w.root+"/"+name, at, at))
}
