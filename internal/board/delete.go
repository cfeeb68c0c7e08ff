package board

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/journal"
)

// OnRevoke says how the right of a task's claim to land is ended (landing's Revoke): what Delete does first to a task
// that is landing, and Settle to one that another program marked as deleted. An error of f stops the deletion. The
// last f counts.
func (b *Board) OnRevoke(f func(context.Context, muster.Task) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.revoke = f
}

// revoker is what OnRevoke set; nil when nobody did.
func (b *Board) revoker() func(context.Context, muster.Task) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.revoke
}

// stopLanding ends a landing of t for good. One that begins after t was read changes t, so the deletion is stale.
func (b *Board) stopLanding(ctx context.Context, t muster.Task) error {
	if t.Status != muster.Landing {
		return nil
	}
	if f := b.revoker(); f != nil {
		return f(ctx, t)
	}
	return landingNow(t)
}

// Delete removes the task; its id is never given again. It is refused while unfinished tasks depend on it or somebody
// has it, unless forced: then the edges go, each with an event, and what its owner still does is refused. A task that
// is landing is revoked first (OnRevoke); Held where nobody can, or when it has just landed.
func (b *Board) Delete(ctx context.Context, id muster.TaskID, force bool) error {
	for {
		if err := b.refresh(ctx); err != nil {
			return err
		}
		t, rev, err := b.read(ctx, id)
		if err != nil {
			return err
		}
		if !force {
			if err := b.checkUnneeded(t); err != nil {
				return err
			}
		}
		if err := b.stopLanding(ctx, t); err != nil {
			return err
		}
		// Whoever is about to create a task and saw the board before this one came sees by this that its id was given.
		if err := b.raiseNextID(ctx, id); err != nil {
			return err
		}
		err = b.tasks.Delete(ctx, key(id), rev)
		if err == nil {
			t.UpdatedAt = now()
			down := b.emit(ctx, event(journal.TaskDeleted, t, t.Owner, map[string]any{"subject": t.Subject}))
			return firstError(down, b.dropEdgesTo(ctx, id))
		}
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// checkUnneeded refuses to delete a task that somebody has or that unfinished tasks wait for.
func (b *Board) checkUnneeded(t muster.Task) error {
	if t.Owner != "" && t.Open() {
		return heldBy(t)
	}
	var who []string
	b.tasks.View(func() {
		for _, d := range b.graph.dependants[t.ID] {
			if d != t.ID && !b.graph.isDone(d) {
				who = append(who, fmt.Sprint(int(d)))
			}
		}
	})
	if who == nil {
		return nil
	}
	verb := "tasks %s depend on task %d"
	if len(who) == 1 {
		verb = "task %s depends on task %d"
	}
	return muster.Errorf(muster.Invalid, verb, strings.Join(who, ", "), t.ID).
		WithHint("delete it and let the edge go with: muster task delete %d --force", t.ID)
}

// dropEdgesTo removes the edges to a task that has been deleted. Settle does what it leaves.
func (b *Board) dropEdgesTo(ctx context.Context, id muster.TaskID) error {
	var dependants []muster.TaskID
	if err := b.tasks.ViewFresh(ctx, func() { dependants = b.graph.blocks(id) }); err != nil {
		return onlyUnavailable(err)
	}
	for _, d := range dependants {
		if _, err := b.dropEdges(ctx, d, "", id); onlyUnavailable(err) != nil {
			return err
		}
	}
	return nil
}

// dropDeletedBlockers removes those of t's new edges whose blocker was deleted while they were made. Whoever deletes
// a task looks for its dependants afterwards, and whoever adds an edge looks for the blocker afterwards, so one of
// the two sees the other.
func (b *Board) dropDeletedBlockers(ctx context.Context, t muster.Task, on []muster.TaskID) muster.Task {
	for _, id := range on {
		if _, _, err := b.read(ctx, id); errors.Is(err, muster.ErrNotFound) {
			if now, err := b.dropEdges(ctx, t.ID, "", id); err == nil {
				t = now
			}
		}
	}
	return t
}
