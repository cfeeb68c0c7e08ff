package board

import (
	"context"
	"fmt"
	"slices"

	"muster"
)

// Finding is something that does not fit in the document of a task. Settle mends it.
type Finding struct {
	Task muster.TaskID
	Text string
	Lane muster.Name // the lane that stands in the way, if one does
}

// Check compares what is stored of each task with the graph, and finds effects that still have to run. It
// changes nothing. A task that is being changed by a running team may be found although the next moment
// mends it.
func (b *Board) Check(ctx context.Context) (all []Finding, err error) {
	err = b.tasks.ViewFresh(ctx, func() {
		for _, id := range b.graph.ids() {
			n := b.graph.tasks[id]
			if is, want := set(n.task.BlockedBy...), b.graph.unfinished(n.on); !slices.Equal(is, want) {
				text := fmt.Sprintf("blockedBy says %v, by dependsOn it is %v", is, want)
				all = append(all, Finding{Task: id, Text: text})
			}
			if len(n.task.Effects) > 0 {
				text := fmt.Sprintf("what follows its completion was not done: %v", n.task.Effects)
				all = append(all, Finding{id, text, n.task.Worktree})
			}
		}
	})
	return all, err
}
