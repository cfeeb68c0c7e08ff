package board

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"muster"
	"muster/journal"
)

// Patch is what to change of a task. Fields that are nil or empty leave the task as it is.
type Patch struct {
	Subject, Description, Role *string
	Priority                   *int
	RequirePlan                *bool
	AddBlockers                []muster.TaskID // only while nobody works on it
	RemoveBlockers             []muster.TaskID
	// Retry makes a task that needs attention pending again, with its attempts and returns at zero.
	Retry bool
	By    muster.Name // who wants the change, for the event
}

// Update changes a task that is not completed. Blockers that would close a cycle are refused with the cycle in the
// sentence. Errors: NotFound, Invalid, Held.
//
// Each of its steps is a write of its own: blockers are removed, then new ones are announced in the meta document, then
// the task is written. A crash between them leaves a task that is whole: announced blockers count from the start, and
// whoever comes next writes them into the task.
func (b *Board) Update(ctx context.Context, id muster.TaskID, p Patch) (muster.Task, error) {
	t, err := b.checkPatch(ctx, id, p)
	if err != nil {
		return t, err
	}
	var down error
	if len(p.RemoveBlockers) > 0 {
		if t, err = b.removeBlockers(ctx, id, p); t.ID == 0 {
			return t, err
		}
		down = err
	}
	hasEdge := func(d muster.TaskID) bool { return slices.Contains(t.DependsOn, d) }
	a := adding{ID: id, On: slices.DeleteFunc(set(p.AddBlockers...), hasEdge)}
	if len(a.On) > 0 {
		if a.N, err = b.edges.announce(ctx, id, a.On); err != nil {
			return muster.Task{}, err
		}
	}
	t, changed, err := b.writePatch(ctx, p, a)
	if a.N > 0 {
		if e := b.edges.strike(ctx, a); err == nil {
			down = cmp.Or(down, e)
		}
		changed = append(changed, "blockedBy")
	}
	if err != nil {
		return muster.Task{}, err
	}
	t = b.edges.dropDeleted(ctx, t, a.On)
	if len(changed) > 0 {
		down = cmp.Or(down, b.emit(ctx, event(journal.TaskUpdated, t, p.By, map[string]any{"changed": changed})))
	}
	return t, down
}

// checkPatch returns the task as it is stored, or why the patch cannot be applied to it. It writes nothing, so a patch
// that is refused here has changed nothing.
func (b *Board) checkPatch(ctx context.Context, id muster.TaskID, p Patch) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	if err != nil {
		return t, err
	}
	patched := t
	if _, err := p.apply(&patched, now()); err != nil && !errors.Is(err, errNoChange) {
		return muster.Task{}, err
	}
	if len(p.AddBlockers) > 0 {
		if err := checkWaitable(patched); err != nil {
			return muster.Task{}, err
		}
	}
	return patched, nil
}

// removeBlockers removes the blockers that the patch names. It first writes announced edges into their tasks: one that
// is removed while it is only announced would come back. A task without an ID means that nothing was removed.
func (b *Board) removeBlockers(ctx context.Context, id muster.TaskID, p Patch) (muster.Task, error) {
	m, err := b.meta.read(ctx)
	if err == nil && len(m.Adding) > 0 {
		err = b.edges.finish(ctx, m.Adding)
	}
	if err != nil {
		return muster.Task{}, err
	}
	return b.edges.drop(ctx, id, p.By, p.RemoveBlockers...)
}

// writePatch writes the fields of the patch and the announced edges into the task in one step. It returns the names of
// the fields that are different now.
func (b *Board) writePatch(ctx context.Context, p Patch, a adding) (t muster.Task, changed []string, err error) {
	t, err = b.change(ctx, a.ID, func(t *muster.Task) error {
		names, err := p.apply(t, now())
		if err != nil && !errors.Is(err, errNoChange) {
			return err
		}
		changed = names
		if a.N == 0 {
			return err
		}
		if e := b.edges.write(ctx, t, a); !errors.Is(e, errNoChange) {
			return e
		}
		return err
	})
	return t, changed, err
}

// apply changes the fields of the task that the patch names, but no blockers. It returns the names of the fields that
// are different now, or errNoChange when none is.
func (p Patch) apply(t *muster.Task, at float64) ([]string, error) {
	if t.Status == muster.Completed {
		return nil, notPending(*t)
	}
	was := *t
	if p.Retry {
		if err := retry(t, at); err != nil {
			return nil, err
		}
	}
	setIfNamed(&t.Subject, p.Subject)
	setIfNamed(&t.Description, p.Description)
	setIfNamed(&t.ClaimRole, p.Role)
	setIfNamed(&t.Priority, p.Priority)
	setIfNamed(&t.RequirePlan, p.RequirePlan)
	if p.Subject != nil || p.Description != nil || p.Role != nil {
		if err := checkText(t.Subject, t.Description, t.ClaimRole); err != nil {
			return nil, err
		}
	}
	var names []string
	for _, c := range []struct {
		name      string
		different bool
	}{
		{"retry", p.Retry && (was.Status != t.Status || was.Attempts != t.Attempts || was.Returns != t.Returns)},
		{"subject", was.Subject != t.Subject},
		{"description", was.Description != t.Description},
		{"claim_role", was.ClaimRole != t.ClaimRole},
		{"priority", was.Priority != t.Priority},
		{"require_plan", was.RequirePlan != t.RequirePlan},
	} {
		if c.different {
			names = append(names, c.name)
		}
	}
	if names == nil {
		*t = was
		return nil, errNoChange
	}
	t.UpdatedAt = at
	return names, nil
}

// setIfNamed sets a field if the patch names it, that is if to is not nil.
func setIfNamed[T any](field *T, to *T) {
	if to != nil {
		*field = *to
	}
}
