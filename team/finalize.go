package team

import (
	"context"
	"errors"

	"muster"
	"muster/internal/workspace"
)

// finalizer ends members that can do nothing any more, and gives back what they had claimed.
type finalizer struct{ site *site }

// stopOrphans shuts down who is left of processes that died: a run ends with nobody, and a new one begins with nobody
// but those whom the user spawned for it. Their claims go back with them.
func (f *finalizer) stopOrphans(ctx context.Context) error {
	return f.members(ctx, "its process died", func(m muster.Member) (bool, error) {
		if m.Name == muster.Lead || m.Host == "" {
			return false, nil
		}
		alive, err := f.site.roster.Alive(ctx, m.Host)
		return !alive, err
	})
}

// members ends the members for which is returns true. It stops at the first error.
func (f *finalizer) members(ctx context.Context, why string, is func(muster.Member) (bool, error)) error {
	all, err := f.site.roster.List(ctx)
	if err != nil {
		return err
	}
	// Who has shut down was finalized by whoever wrote so.
	for _, m := range all {
		if m.Status == muster.Shutdown {
			continue
		}
		isOver, err := is(m)
		if isOver && err == nil {
			err = f.member(ctx, m.Name, m.Host, why, muster.Message{})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// member ends a member that can do nothing any more: what it had claimed goes back on the board, then the lead
// is sent the news if there is any, then the member's record says so. One that is another process's by now is left
// alone. It may be called again after an error.
func (f *finalizer) member(
	ctx context.Context, name muster.Name, host muster.HostID, why string, news muster.Message,
) error {
	m, err := f.site.roster.Get(ctx, name)
	isUnreadable := errors.Is(err, muster.ErrCorrupt) // nobody can say so in its record; the rest is done
	if !isUnreadable && (err != nil || m.Host != host) {
		return err
	}
	// The claims go before the record. After a crash in between, the member still counts as lost and is finalized
	// again; the other way round its tasks would wait for a member that nobody looks at.
	err = f.releaseClaims(ctx, why, func(task muster.Task) bool { return task.Owner == name })
	// The news has an id of its own, so a repeated call sends no second mail that is read.
	if err == nil && news.Content != "" {
		_, err = f.site.post.Send(ctx, news)
	}
	if err == nil {
		err = f.site.requests.Leave(ctx, name, why)
	}
	if err != nil || isUnreadable {
		return err
	}
	// Last, because nobody looks at the claims of a member again that has shut down in order.
	_, err = f.site.roster.Update(ctx, name, func(m *muster.Member) {
		if m.Host == host {
			m.Status, m.IdleReason, m.Host, m.Doing, m.Task = muster.Shutdown, "", "", "", 0
		}
	})
	return err
}

// releaseOrphans puts back what members had claimed who have shut down since: they could not be seen to have it, or it
// could not be read, when they went. What was claimed in such a name after that is somebody else's doing.
//
// A task that takes back others goes on the board when the process that was at it has died: its lane may have all that
// is to land.
func (f *finalizer) releaseOrphans(ctx context.Context) error {
	isUndoing, err := f.site.config.Store.Leases().Held(ctx, workspace.UndoLease)
	if err != nil {
		return err
	}
	return f.releaseClaims(ctx, "its owner has shut down", func(task muster.Task) bool {
		if task.ClaimSource == muster.SourceUndo {
			return !isUndoing
		}
		m, err := f.site.roster.Find(ctx, task.Owner)
		// An error: nobody of the team, or nobody who can be read now.
		return err == nil && m.Status == muster.Shutdown && m.Since >= task.ClaimedAt
	})
}

// releaseClaims puts the claimed tasks for which is returns true back on the board. What has landed stays landed.
func (f *finalizer) releaseClaims(ctx context.Context, why string, is func(muster.Task) bool) error {
	tasks, err := f.site.board.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if !is(task) {
			continue
		}
		// The claim's right to land ends first: otherwise it could land after another member has the task.
		err := f.site.lander.Revoke(ctx, task.ID, task.Fence)
		if err == nil {
			_, err = f.site.board.Revoke(ctx, task.ID, task.Fence, muster.System, why)
		}
		// Held: it has landed. Invalid: nobody has it any more. Fenced: somebody else has it.
		if err != nil && !errors.Is(err, muster.ErrHeld) && !errors.Is(err, muster.ErrInvalid) &&
			!errors.Is(err, muster.ErrFenced) {
			return err
		}
	}
	return nil
}
