package cli

import (
	"context"
	"os"

	"muster"
)

// refuseUnder refuses a command that changes this team when one of the team's own tools runs it: an agent that could
// approve its own plan by calling muster would need no approval. Who called is taken from the process tree.
func (p *place) refuseUnder(ctx context.Context) error {
	if _, err := os.Stat(p.home.Hosts()); err != nil {
		return nil // no process of this team ever lived
	}
	hosts, err := p.theRoster(ctx).Hosts(ctx)
	if err != nil {
		return err
	}
	above := map[int]bool{}
	for _, h := range hosts {
		above[h.PID] = true // a tool may have killed its guard, and a new one that nobody has written down started this one
		if h.GuardPID != 0 {
			above[h.GuardPID] = true
		}
	}
	for pid := parent(os.Getpid()); pid > 1; pid = parent(pid) {
		if above[pid] {
			return muster.Errorf(muster.Invalid, "this command changes the team, and a tool of this very team runs it").
				WithHint("members act with their own tools: task_create, complete_task, send_message, ...")
		}
	}
	return nil
}
