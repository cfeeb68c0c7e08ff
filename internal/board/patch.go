package board

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"muster"
	"muster/journal"
)

// Patch is what to change of a task. Fields that are nil or empty leave the task as it is. What an owner or
// a step decides, such as the status and the lane, is not in it.
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

// Update changes a task that is not completed. Blockers that would close a cycle are refused with the cycle
// in the sentence. Errors: NotFound, Invalid, Held.
//
// Each of its steps is a write of its own: blockers are removed, then new ones are announced in the meta
// document, then the task is written. A crash between them leaves a task that is whole: announced blockers
// count from the start, and whoever comes next writes them into the task.
func (b *Board) Update(ctx context.Context, id muster.TaskID, p Patch) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	if err == nil {
		err = p.check(t)
	}
	if err != nil {
		return muster.Task{}, err
	}
	var down error
	if len(p.RemoveBlockers) > 0 {
		// An edge that is removed while it is only announced would come back.
		if _, err := b.edges.finishAll(ctx); err != nil {
			return muster.Task{}, err
		}
		if t, down = b.edges.drop(ctx, id, p.By, p.RemoveBlockers...); t.ID == 0 {
			return t, down // nothing was removed
		}
	}
	hasEdge := func(d muster.TaskID) bool { return slices.Contains(t.DependsOn, d) }
	a := adding{ID: id, On: slices.DeleteFunc(set(p.AddBlockers...), hasEdge)}
	if len(a.On) > 0 {
		if a.N, err = b.edges.announce(ctx, id, a.On); err != nil {
			return muster.Task{}, err
		}
	}
	var changed []string
	t, err = b.change(ctx, id, func(t *muster.Task) (err error) {
		if changed, err = p.apply(t, now()); err != nil {
			return err
		}
		if a.N > 0 { // the fields and the edges are one write
			if err := b.edges.write(ctx, t, a); !errors.Is(err, errNoChange) {
				return err
			}
		}
		if changed == nil {
			return errNoChange
		}
		return nil
	})
	if a.N > 0 { // also after a refusal: an addition that stays announced would be written by the next process
		down = cmp.Or(down, b.edges.strike(ctx, a))
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

// check returns why the patch cannot be applied to t, so that a patch that is refused has changed nothing.
// It does not look for cycles.
func (p Patch) check(t muster.Task) error {
	if _, err := p.apply(&t, now()); err != nil || len(p.AddBlockers) == 0 {
		return err
	}
	return checkWaitable(t)
}

// apply changes the fields of the task that the patch names, but no blockers. It returns the names of the
// fields that are different now; when there are none, the task is as it was.
func (p Patch) apply(t *muster.Task, at float64) (changed []string, err error) {
	if t.Status == muster.Completed {
		return nil, errNotPending(*t)
	}
	if was := *t; p.Retry {
		if err := retry(t, at); err != nil {
			return nil, err
		}
		if was.Status != t.Status || was.Attempts != t.Attempts || was.Returns != t.Returns ||
			was.Rounds != t.Rounds {
			changed = append(changed, "retry")
		} else {
			*t = was
		}
	}
	setField(&changed, "subject", &t.Subject, p.Subject)
	setField(&changed, "description", &t.Description, p.Description)
	setField(&changed, "claim_role", &t.ClaimRole, p.Role)
	setField(&changed, "priority", &t.Priority, p.Priority)
	setField(&changed, "require_plan", &t.RequirePlan, p.RequirePlan)
	if p.Subject != nil || p.Description != nil || p.Role != nil {
		err = checkText(t.Subject, t.Description, t.ClaimRole)
	}
	if changed != nil {
		t.UpdatedAt = at
	}
	return changed, err
}

// setField sets a field if the patch names it, that is if to is not nil, and adds its name to changed if it
// was different.
func setField[T comparable](changed *[]string, name string, field, to *T) {
	if to != nil && *field != *to {
		*field = *to
		*changed = append(*changed, name)
	}
}
