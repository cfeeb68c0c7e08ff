package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/journal"
)

// edges adds dependencies to tasks that exist, and removes them. Whoever adds one must not close a cycle
// together with another process. So each addition is first announced in the meta document, and counts from
// then on. Of several processes that have read one revision of that document, only one can replace it.
type edges struct {
	*records
	meta *metaFile
}

// announce announces that the task waits for on too, and returns the number of the addition. The write of
// the meta document decides: it fails for a process that checked an older graph for cycles. From then on
// the edges count. If this process dies before it writes them into the task, any process that finds them
// announced does so.
func (e *edges) announce(ctx context.Context, id muster.TaskID, on []muster.TaskID) (int, error) {
	n := 0
	err := e.meta.change(ctx, func(m *meta) error {
		if len(m.Adding) > 0 { // of other processes: storedPath below finds every cycle only with them in their tasks
			errAgain := muster.Errorf(muster.Stale, "others are adding edges at the same time") // so meta is read again
			return cmp.Or[error](e.finish(ctx, m.Adding), errAgain)
		}
		if _, _, err := e.read(ctx, id); err != nil {
			return err
		}
		// The cycles are looked for in the stored tasks, after meta was read. An edge that another process
		// adds meanwhile is announced in meta first, so the write of meta is then stale and all of this is
		// repeated.
		for _, d := range on {
			if _, _, err := e.read(ctx, d); errors.Is(err, muster.ErrNotFound) {
				return errUnknownBlocker(id, d)
			} else if err != nil {
				return err
			}
			if way, err := e.storedPath(ctx, d, id); err != nil {
				return err
			} else if way != nil {
				return errCycle(id, way)
			}
		}
		m.Edges++
		n = m.Edges
		m.Adding = append(m.Adding, adding{N: n, ID: id, On: on})
		return nil
	})
	return n, err
}

// finish writes announced edges into their tasks, then strikes them off. It may be repeated after a crash:
// edges that the task already has change nothing. A task that cannot wait any more, or is gone, gets none.
func (e *edges) finish(ctx context.Context, list []adding) error {
	for _, a := range list {
		t, err := e.change(ctx, a.ID, func(t *muster.Task) error { return e.write(ctx, t, a) })
		if err == nil {
			e.dropDeleted(ctx, t, a.On)
		} else if ignoreVanished(err) != nil && !errors.Is(err, muster.ErrHeld) && !errors.Is(err, muster.ErrInvalid) {
			return err
		}
	}
	return e.strike(ctx, list...)
}

// finishAll finishes all announced edges. It returns the meta document as it was before.
func (e *edges) finishAll(ctx context.Context) (meta, error) {
	m, err := e.meta.read(ctx)
	if err == nil && len(m.Adding) > 0 {
		err = e.finish(ctx, m.Adding)
	}
	return m, err
}

// strike removes additions from the list of announced ones, after their tasks have the edges.
func (e *edges) strike(ctx context.Context, list ...adding) error {
	return e.meta.change(ctx, func(m *meta) error {
		m.Adding = slices.DeleteFunc(m.Adding, func(a adding) bool {
			return slices.ContainsFunc(list, func(b adding) bool { return a.N == b.N })
		})
		return nil
	})
}

// write adds the edges of an addition to t, which the caller has read and writes. It returns errNoChange
// when there is nothing to add, or when another process has added them since they were announced. A blocker
// that has been deleted adds no edge. One that is complete adds an edge to the graph but does not block.
//
// This look at meta comes after the read of the task. While the addition is announced nobody has removed
// its edges again. Whoever removes them later changes the task, which makes the caller's write stale.
func (e *edges) write(ctx context.Context, t *muster.Task, a adding) error {
	m, err := e.meta.read(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Adding, func(b adding) bool { return b.N == a.N }) {
		return errNoChange
	}
	if err := checkWaitable(*t); err != nil {
		return err
	}
	before := len(t.DependsOn)
	for _, d := range a.On {
		if slices.Contains(t.DependsOn, d) {
			continue
		}
		blocker, _, err := e.read(ctx, d)
		if errors.Is(err, muster.ErrNotFound) {
			continue
		}
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		t.DependsOn = set(slices.Concat(t.DependsOn, []muster.TaskID{d})...)
		if err != nil || blocker.Status != muster.Completed {
			t.BlockedBy = set(slices.Concat(t.BlockedBy, []muster.TaskID{d})...)
		}
	}
	if len(t.DependsOn) == before {
		return errNoChange
	}
	t.UpdatedAt = now()
	return nil
}

// checkWaitable refuses new blockers for a task that somebody works on, or that is over: its owner could
// not stop for them.
func checkWaitable(t muster.Task) error {
	switch t.Status {
	case muster.Pending, muster.NeedsAttention:
		if t.Owner == "" {
			return nil
		}
		return errHeld(t)
	}
	return errNotPending(t)
}

// drop removes those of on that are blockers of the task, each with an event. Removing an edge closes no
// cycle, so it is not announced.
func (e *edges) drop(ctx context.Context, id muster.TaskID, by muster.Name, on ...muster.TaskID) (muster.Task, error) {
	var dropped []muster.TaskID
	t, err := e.change(ctx, id, func(t *muster.Task) error {
		dropped = nil
		for _, d := range on {
			if slices.Contains(t.DependsOn, d) {
				dropped = append(dropped, d)
			}
			isIt := func(x muster.TaskID) bool { return x == d }
			t.DependsOn, t.BlockedBy = slices.DeleteFunc(t.DependsOn, isIt), slices.DeleteFunc(t.BlockedBy, isIt)
		}
		if dropped == nil {
			return errNoChange
		}
		t.UpdatedAt = now()
		return nil
	})
	if err != nil {
		return t, err
	}
	var events []muster.Event
	for _, d := range dropped {
		events = append(events, event(journal.TaskEdgeRemoved, t, by, map[string]any{"blocker": int(d)}))
	}
	return t, e.emit(ctx, events...)
}

// dropTo removes the edges to a task that has been deleted. Settle does what it leaves.
func (e *edges) dropTo(ctx context.Context, id muster.TaskID) error {
	dependants, err := e.dependants(ctx, id)
	for _, d := range dependants {
		if _, e := e.drop(ctx, d, "", id); onlyUnavailable(e) != nil {
			return e
		}
	}
	return onlyUnavailable(err)
}

// dropDeleted removes those of t's new edges whose blocker was deleted while they were made. Whoever
// deletes a task looks for its dependants afterwards, and whoever adds an edge looks for the blocker
// afterwards, so one of the two sees the other.
func (e *edges) dropDeleted(ctx context.Context, t muster.Task, on []muster.TaskID) muster.Task {
	for _, id := range on {
		if _, _, err := e.read(ctx, id); errors.Is(err, muster.ErrNotFound) {
			if now, err := e.drop(ctx, t.ID, "", id); err == nil {
				t = now
			}
		}
	}
	return t
}

// errUnknownBlocker refuses to let the task id wait for a task that does not exist; id 0 is a task yet to
// be created.
func errUnknownBlocker(id, on muster.TaskID) error {
	if id == 0 {
		return muster.Errorf(muster.Invalid, "there is no task %d to wait for", on)
	}
	return muster.Errorf(muster.Invalid, "task %d cannot wait for task %d: there is no task %d", id, on, on)
}

// errCycle refuses an edge from id to way[0], because way leads from there back to id.
func errCycle(id muster.TaskID, way []muster.TaskID) error {
	if way[0] == id {
		return muster.Errorf(muster.Invalid, "task %d cannot wait for itself", id)
	}
	return muster.Errorf(muster.Invalid, "task %d cannot wait for task %d: %s would wait for each other", id, way[0],
		arrows(append([]muster.TaskID{id}, way...)))
}

// arrows writes a path of the graph for people: 1 -> 2 -> 3.
func arrows(ids []muster.TaskID) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = fmt.Sprint(int(id))
	}
	return strings.Join(s, " -> ")
}

// storedPath is path over the tasks as they are stored now. The graph in memory may be behind what another
// process has just written.
func (e *edges) storedPath(ctx context.Context, from, to muster.TaskID) (way []muster.TaskID, failed error) {
	way = path(to, func(id muster.TaskID) []muster.TaskID {
		t, _, err := e.read(ctx, id)
		failed = cmp.Or(failed, ignoreVanished(err))
		return t.DependsOn
	}, from)
	return way, failed
}

// updateBlockedBy brings the task's blockedBy to what the graph, as last refreshed, says. The field is
// derived from dependsOn and stored for other programs, which test it for emptiness. No step of the board
// relies on it.
func (r *records) updateBlockedBy(ctx context.Context, id muster.TaskID) error {
	var right bool
	r.tasks.View(func() {
		n, known := r.graph.tasks[id]
		right = !known || same(n.task.BlockedBy, r.graph.unfinished(n.on))
	})
	if right {
		return nil
	}
	_, err := r.change(ctx, id, func(t *muster.Task) error {
		var waits []muster.TaskID
		r.tasks.View(func() { waits = r.graph.unfinished(t.DependsOn) })
		// The graph may be behind: a blocker that somebody has already taken out of blockedBy may have been
		// completed since. Putting it back would block the task although nothing unblocks it any more.
		waits = slices.DeleteFunc(waits, func(d muster.TaskID) bool {
			if slices.Contains(t.BlockedBy, d) {
				return false
			}
			on, _, err := r.read(ctx, d)
			return err == nil && on.Status == muster.Completed
		})
		if same(t.BlockedBy, waits) {
			return errNoChange
		}
		t.BlockedBy = waits
		return nil
	})
	return err
}

// same reports whether a list that another program may have written, in whatever order, has what the sorted
// one has.
func same(ids, sorted []muster.TaskID) bool {
	return slices.Equal(set(ids...), sorted)
}
