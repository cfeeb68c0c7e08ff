package board

import (
	"context"
	"errors"
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

// Check compares the document of each task with the graph, and finds effects that still have to run. It changes
// nothing.
func (b *Board) Check(ctx context.Context) (all []Finding, err error) {
	tasks, err := b.List(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range tasks {
		stored, err := b.Get(ctx, t.ID)
		if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
			continue // deleted meanwhile, or reported as unreadable
		}
		if err != nil {
			return nil, err
		}
		if is, want := sortedIDs(stored.BlockedBy), sortedIDs(t.BlockedBy); !slices.Equal(is, want) {
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

func sortedIDs(list []muster.TaskID) []muster.TaskID {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
