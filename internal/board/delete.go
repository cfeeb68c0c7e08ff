package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/journal"
)

// OnRevoke says how the right of a task's claim to land is ended (landing's Revoke): what Delete does first
// to a task that is landing. An error of f stops the deletion. The last f counts.
func (b *Board) OnRevoke(f func(context.Context, muster.Task) error) {
	b.revoke.Store(&f)
}

// revokeLanding ends the right of t's claim to land, with what OnRevoke set. It returns false when nobody
// here can.
func (b *Board) revokeLanding(ctx context.Context, t muster.Task) (bool, error) {
	f := b.revoke.Load()
	if f == nil {
		return false, nil
	}
	return true, (*f)(ctx, t)
}

// Delete removes the task; its id is never given again. It is refused while unfinished tasks depend on it
// or somebody has it, unless forced: then the edges go, each with an event, and what its owner still does
// is refused. A task that is landing is revoked first (OnRevoke); Held where nobody can, or when it has
// just landed.
func (b *Board) Delete(ctx context.Context, id muster.TaskID, force bool) error {
	for { // until nobody changes the task between the checks and the deletion
		if err := b.tasks.Refresh(ctx); err != nil {
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
		if t.Status == muster.Landing { // a landing that begins after t was read changes t, so remove is Stale
			if can, err := b.revokeLanding(ctx, t); err != nil {
				return err
			} else if !can {
				return errLanding(t)
			}
		}
		if err := b.remove(ctx, t, rev, t.Owner); !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// remove deletes t at the revision rev, then the edges to it. The id is retired before: whoever is about to
// create a task and saw the board before this one came sees by that that its id was given. Errors: Stale
// when t has changed.
func (b *Board) remove(ctx context.Context, t muster.Task, rev muster.Rev, owner muster.Name) error {
	if err := b.meta.raiseNextID(ctx, t.ID); err != nil {
		return err
	}
	if err := b.tasks.Delete(ctx, key(t.ID), rev); err != nil {
		return err
	}
	t.UpdatedAt = now()
	// From here on the task is gone for everybody. The edges follow one by one; after a crash Settle drops
	// the rest.
	down := b.emit(ctx, event(journal.TaskDeleted, t, owner, map[string]any{"subject": t.Subject}))
	return cmp.Or(down, b.edges.dropTo(ctx, t.ID))
}

// checkUnneeded refuses to delete a task that somebody has or that unfinished tasks wait for. It asks the
// graph, which may be behind: an edge that is added at the same time is dropped with the task.
func (b *Board) checkUnneeded(t muster.Task) error {
	if t.Owner != "" && t.Open() {
		return errHeld(t)
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
