package teammate

import (
	"context"
	"fmt"
	"os"
	"time"

	"muster"
	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/internal/tool/teamtools"
)

// caller is the member as the team's tools see it: teamtools.Caller. Each part of the member
// answers for itself: presence for Me and Asked, claims for the task, phase for Idle, plans,
// shutdown and leadWait for what their names say, and conversation for Inbox.
type caller struct {
	*presence
	*conversation
	*claims
	*phase
	*plans
	*shutdown
	*leadWait
	*self
}

var _ teamtools.Caller = caller{}

// Spawn records a new teammate; the supervisor that sees the record starts it.
func (c caller) Spawn(ctx context.Context, s teamtools.Spawn) (muster.Member, error) {
	run, err := c.self.Run(ctx)
	if err != nil {
		return muster.Member{}, err
	}
	// Two spawns at the same time could both see room for one. Only the lead spawns, and its
	// calls that write are run one after the other.
	n, err := c.self.Roster.Teammates(ctx)
	if err != nil {
		return muster.Member{}, err
	}
	if n >= run.Cap {
		return muster.Member{}, muster.Errorf(muster.Invalid, "%d teammates live and %d is the most this run may have "+
			"(--teammates): wait for them, or shut one down first", n, run.Cap)
	}
	r, err := c.self.Roster.Add(ctx, muster.Member{Name: s.Name, Role: s.Role, Prompt: s.Prompt, Model: s.Model,
		RequirePlan: s.RequirePlan, StartedBy: c.self.name(), Status: muster.Working})
	if err == nil && c.self.Spawned != nil {
		c.self.Spawned()
	}
	return r, err
}

// execInLane runs a command in a lane for worktree_run.
func (b *toolbox) execInLane(ctx context.Context, dir, command string, timeout time.Duration) (string, int, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	out := code.NewOutput(b.outputs(), "worktree_run")
	p, err := b.Launcher.Start(ctx, proc.Spec{Argv: proc.Shell(command), Dir: dir,
		Env: code.Environ(ctx, os.Environ(), dir), Out: out})
	if err != nil {
		return "", 0, err
	}
	exit, err := p.Wait()
	out.Done()
	text := out.Text()
	if ctx.Err() == context.DeadlineExceeded { // the caller is told what the command had printed by then
		return text + fmt.Sprintf("\n[killed after %s]", timeout), exit, nil
	}
	return text, exit, err
}
