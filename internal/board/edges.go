package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/journal"
)

// addEdges makes the task wait for on too. The write of meta decides: it fails for whoever saw an older graph. From
// then on the edges count, and any process that finds them there writes them into the task. It returns the number of
// the addition.
func (b *Board) addEdges(ctx context.Context, id muster.TaskID, on []muster.TaskID) (int, error) {
	n := 0
	err := b.changeMeta(ctx, func(m *meta) error {
		if len(m.Adding) > 0 { // of others: the graph is whole only with them
			if err := b.finishEdges(ctx, m.Adding); err != nil {
				return err
			}
			fresh, err := b.readMeta(ctx)
			if err != nil {
				return err
			}
			*m = fresh
			if len(m.Adding) > 0 {
				return muster.Errorf(muster.Stale, "others are adding edges at the same time")
			}
		}
		if _, _, err := b.read(ctx, id); err != nil {
			return err
		}
		for _, d := range on {
			if _, _, err := b.read(ctx, d); errors.Is(err, muster.ErrNotFound) {
				return errUnknownBlocker(id, d)
			} else if err != nil {
				return err
			}
			if way, err := b.storedPath(ctx, d, id); err != nil {
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

// pendingEdges says whether the addition n still waits to be written into its task.
func (b *Board) pendingEdges(ctx context.Context, n int) (bool, error) {
	m, err := b.readMeta(ctx)
	return slices.ContainsFunc(m.Adding, func(a adding) bool { return a.N == n }), err
}

// finishEdges writes additions into their tasks and strikes them off.
func (b *Board) finishEdges(ctx context.Context, list []adding) error {
	for _, a := range list {
		t, err := b.change(ctx, a.ID, func(t *muster.Task) error {
			// Asked after the task was read: while it is pending nobody has removed these edges again, and who does
			// later changes the task, so that this put is stale.
			if is, err := b.pendingEdges(ctx, a.N); err != nil {
				return err
			} else if !is {
				return errNoChange
			}
			if checkWaitable(*t) != nil {
				return errNoChange
			}
			return b.writeEdges(ctx, t, a.On)
		})
		if err == nil {
			b.dropDeletedBlockers(ctx, t, a.On)
		}
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
	}
	return b.strikeEdges(ctx, list...)
}

// strikeEdges takes additions off the list.
func (b *Board) strikeEdges(ctx context.Context, list ...adding) error {
	return b.changeMeta(ctx, func(m *meta) error {
		left := slices.DeleteFunc(slices.Clone(m.Adding), func(a adding) bool {
			return slices.ContainsFunc(list, func(b adding) bool { return a.N == b.N })
		})
		if len(left) == len(m.Adding) {
			return errNoChange
		}
		m.Adding = left
		return nil
	})
}

// writeEdges adds blockers to t. One that has been deleted adds nothing; one that is complete is no obstacle.
func (b *Board) writeEdges(ctx context.Context, t *muster.Task, on []muster.TaskID) error {
	before := len(t.DependsOn)
	for _, d := range on {
		if slices.Contains(t.DependsOn, d) {
			continue
		}
		blocker, _, err := b.read(ctx, d)
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

// checkWaitable refuses new blockers for a task that somebody works on, or that is over.
func checkWaitable(t muster.Task) error {
	switch t.Status {
	case muster.Pending, muster.NeedsAttention:
		if t.Owner == "" {
			return nil
		}
		return heldBy(t)
	}
	return notPending(t)
}

// dropEdges removes the blockers from the task, each with an event.
func (b *Board) dropEdges(ctx context.Context, id muster.TaskID, by muster.Name, on ...muster.TaskID) (muster.Task, error) {
	var was []muster.TaskID
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		was = nil
		for _, d := range on {
			if slices.Contains(t.DependsOn, d) {
				was = append(was, d)
			}
			t.DependsOn, t.BlockedBy = without(t.DependsOn, d), without(t.BlockedBy, d)
		}
		if was == nil {
			return errNoChange
		}
		t.UpdatedAt = now()
		return nil
	})
	if err != nil || was == nil {
		return t, err
	}
	var events []muster.Event
	for _, d := range was {
		events = append(events, event(journal.TaskEdgeRemoved, t, by, map[string]any{"blocker": int(d)}))
	}
	return t, b.emit(ctx, events...)
}

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

func arrows(ids []muster.TaskID) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = fmt.Sprint(int(id))
	}
	return strings.Join(s, " -> ")
}

// storedPath is path over the tasks as they are stored now. The graph in memory may be behind what another process has
// just written.
func (b *Board) storedPath(ctx context.Context, from, to muster.TaskID) ([]muster.TaskID, error) {
	var failed error
	way := path(from, to, func(id muster.TaskID) []muster.TaskID {
		t, _, err := b.read(ctx, id)
		if err != nil && !errors.Is(err, muster.ErrNotFound) && !errors.Is(err, muster.ErrCorrupt) {
			failed = firstError(failed, err)
		}
		return t.DependsOn
	})
	return way, failed
}
