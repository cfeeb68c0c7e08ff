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

// Check compares the document of each task with the graph, and finds effects that still have to run. It
// changes nothing. A task that is being changed by a running team may be found although the next moment
// mends it.
func (b *Board) Check(ctx context.Context) (all []Finding, err error) {
	tasks, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		stored, err := b.Get(ctx, t.ID)
		switch {
		case ignoreVanished(err) != nil:
			return nil, err
		case err != nil:
			continue // deleted meanwhile, or reported as unreadable
		}
		if is, want := set(stored.BlockedBy...), set(t.BlockedBy...); !slices.Equal(is, want) {
			text := fmt.Sprintf("blockedBy says %v, by dependsOn it is %v", is, want)
			all = append(all, Finding{Task: t.ID, Text: text})
		}
		if len(stored.Effects) > 0 {
			all = append(all, Finding{t.ID, fmt.Sprintf("what follows its completion was not done: %v", stored.Effects),
				stored.Worktree})
		}
	}
	return all, nil
}
