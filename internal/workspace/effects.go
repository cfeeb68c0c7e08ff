package workspace

import (
	"context"

	"muster"
	"muster/internal/board"
	"muster/internal/outbox"
)

// registerEffects makes the board's process one that carries out what follows from the end of a task: mail, archived
// lanes, and the end of a claim's right to land. The services are opened when an effect first needs them.
func registerEffects(w *Workspace, b *board.Board) {
	// Each service is opened by the effect that needs it: a command that completes a task without a lane asks git
	// nothing.
	send := func(ctx context.Context, m muster.Message) (muster.Message, error) { return w.Mail(ctx).Send(ctx, m) }
	outbox.Register(b, send, func(ctx context.Context, t muster.Task) (ref string, err error) {
		lanes, err := w.Lanes(ctx)
		if err != nil {
			return "", err
		}
		return lanes.ArchiveCompleted(ctx, t)
	})
	b.OnRevoke(func(ctx context.Context, t muster.Task) error { return revokeLanding(ctx, w, t) })
}

// revokeLanding ends the right of a task's claim to land.
func revokeLanding(ctx context.Context, w *Workspace, t muster.Task) error {
	lander, err := w.Lander(ctx)
	if err != nil {
		return err
	}
	return lander.Revoke(ctx, t.ID, t.Fence)
}

// RevokeTask ends the claim of t and puts the task back on the board. The claim's right to land ends first, so what
// has landed stays landed: the error is Held then. It is Fenced when the task was claimed again since t was read.
func (w *Workspace) RevokeTask(ctx context.Context, t muster.Task, by muster.Name, reason string) (muster.Task, error) {
	// First the right to land and then the claim. The other way round the work could land in between, for a task that
	// is on the board again.
	if t.Worktree != "" && t.Claimed() {
		if err := revokeLanding(ctx, w, t); err != nil {
			return t, err
		}
	}
	return w.Board().Revoke(ctx, t.ID, t.Fence, by, reason)
}
