package board

import (
	"context"
	"slices"

	"muster"
)

// Ready returns the tasks that a member of the role may claim now, in the order in which it would.
func (b *Board) Ready(ctx context.Context, role string, onlyOwn bool) ([]muster.Task, error) {
	return b.list(ctx, func() []muster.TaskID { return slices.Collect(b.graph.readyFor(role, onlyOwn)) })
}
