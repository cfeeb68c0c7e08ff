package teammate

import "context"

// do makes the conversation shorter, so that the model's server takes it.
func (a RestartConversation) do(ctx context.Context, m *Member) error {
	m.stage = Retrying
	if err := m.compaction.afterError(ctx, m.err, a.Harder); err != nil {
		return err
	}
	m.phase.change(func(c *counters) { c.restarts, c.replies, c.prompts = a.Harder, 0, promptSizes{} })
	return nil
}

// minReplies is how many replies a conversation that was made shorter must have had before it counts as one that was
// not, and maxRestarts is how often it is made shorter in a row.
const (
	minReplies  = 3
	maxRestarts = 3
)

// recentRestarts returns how often the conversation was made shorter only a few replies ago.
func (c *counters) recentRestarts() int {
	if c.replies >= minReplies {
		return 0
	}
	return c.restarts
}
