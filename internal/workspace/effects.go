package workspace

import (
	"context"
	"sync/atomic"

	"muster"
	"muster/internal/board"
	"muster/internal/outbox"
	"muster/internal/proc"
)

// registerEffects makes the board's process one that carries out what follows from the end of a task: mail, archived
// lanes, and the end of a claim's right to land. The services are opened when an effect first needs them.
func (w *Workspace) registerEffects(b *board.Board) {
	lanes, revoke := w.options.Lanes, w.options.Revoke
	if lanes == nil {
		lanes = openedLanes{w}
	}
	if revoke == nil {
		revoke = w.revokeLanding
	}
	outbox.Register(b, openedMail{w}, lanes)
	b.OnRevoke(revoke)
}

// revokeLanding ends the right of a task's claim to land.
func (w *Workspace) revokeLanding(ctx context.Context, t muster.Task) error {
	lander, err := w.Lander(ctx)
	if err != nil {
		return err
	}
	return lander.Revoke(ctx, t.ID, t.Fence)
}

// openedLanes are the workspace's lanes, opened when a task's end needs them.
type openedLanes struct{ w *Workspace }

// Finish archives the lane of a completed task.
func (l openedLanes) Finish(ctx context.Context, t muster.Task) (ref string, err error) {
	lanes, err := l.w.Lanes(ctx)
	if err != nil {
		return "", err
	}
	return lanes.Finish(ctx, t)
}

// openedMail is the workspace's mail, opened when a task's end needs it.
type openedMail struct{ w *Workspace }

// Send sends a mail.
func (m openedMail) Send(ctx context.Context, mail muster.Message) (muster.Message, error) {
	return m.w.Mail(ctx).Send(ctx, mail)
}

// launcher is the process's way to start programs, which is known only while a run is under way. The lander is made
// before and lives longer, because revoking a landing runs no check.
type launcher struct{ current atomic.Pointer[proc.Launcher] }

// set makes l the current launcher.
func (c *launcher) set(l proc.Launcher) { c.current.Store(&l) }

// get returns the current launcher. The error is Unavailable while this process runs no checks.
func (c *launcher) get() (proc.Launcher, error) {
	if l := c.current.Load(); l != nil {
		return *l, nil
	}
	return nil, muster.Errorf(muster.Unavailable, "this process runs no checks").WithHint("muster resume")
}

// RevokeTask takes a task from its owner and puts it back on the board. The claim's right to land ends first, so what
// has landed stays landed: the error is Held then.
func (w *Workspace) RevokeTask(
	ctx context.Context, id muster.TaskID, by muster.Name, reason string,
) (muster.Task, error) {
	t, err := w.Board().Get(ctx, id)
	if err != nil {
		return t, err
	}
	if t.Worktree != "" && t.Claimed() {
		if err := w.revokeLanding(ctx, t); err != nil {
			return t, err
		}
	}
	return w.Board().Revoke(ctx, id, by, reason)
}
