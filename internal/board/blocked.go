package board

import (
	"context"
	"slices"

	"muster"
)

// updateBlockedBy brings the task's blockedBy to what the graph, as last refreshed, says. The field is
// derived from dependsOn and stored for other programs, which test it for emptiness. No step of the board
// relies on it.
func (r *records) updateBlockedBy(ctx context.Context, id muster.TaskID) error {
	right := false
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
	return slices.Equal(ids, sorted) || slices.Equal(set(ids...), sorted)
}
