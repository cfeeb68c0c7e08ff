package board

import (
	"context"
	"slices"

	"muster"
	"muster/journal"
)

// Patch is what to change of a task; what is nil or empty stays.
type Patch struct {
	Subject, Description, Role *string
	Priority                   *int
	RequirePlan                *bool
	AddBlockers                []muster.TaskID // only while nobody works on it
	RemoveBlockers             []muster.TaskID
	Retry                      bool        // a task that needs attention is pending again, its attempts and returns forgotten
	By                         muster.Name // who wants it, for the event
}

// Update changes a task that is not completed. Blockers that would close a cycle are refused with the cycle in the
// sentence. Errors: NotFound, Invalid, Held.
func (b *Board) Update(ctx context.Context, id muster.TaskID, p Patch) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	if err != nil {
		return t, err
	}
	if _, err := p.apply(&t, now()); err != nil && err != errNoChange {
		return muster.Task{}, err
	}
	if len(p.AddBlockers) > 0 {
		if err := checkWaitable(t); err != nil {
			return muster.Task{}, err
		}
	}
	var down error
	if len(p.RemoveBlockers) > 0 {
		m, err := b.readMeta(ctx)
		if err == nil && len(m.Adding) > 0 {
			err = b.finishEdges(ctx, m.Adding) // or what is removed now could come back
		}
		if err != nil {
			return muster.Task{}, err
		}
		if t, err = b.dropEdges(ctx, id, p.By, p.RemoveBlockers...); t.ID == 0 {
			return t, err
		}
		down = err
	}
	n := 0
	on := slices.DeleteFunc(set(p.AddBlockers...), func(d muster.TaskID) bool { return slices.Contains(t.DependsOn, d) })
	if len(on) > 0 {
		if n, err = b.addEdges(ctx, id, on); err != nil {
			return muster.Task{}, err
		}
	}
	var changed []string
	t, err = b.change(ctx, id, func(t *muster.Task) error {
		names, err := p.apply(t, now())
		if err != nil && err != errNoChange {
			return err
		}
		changed = names
		same := err == errNoChange
		if n == 0 {
			return err
		}
		// Asked after the task was read: see finishEdges.
		if is, err := b.pendingEdges(ctx, n); err != nil {
			return err
		} else if is {
			if err := checkWaitable(*t); err != nil {
				return err
			}
			if err := b.writeEdges(ctx, t, on); err != nil && err != errNoChange {
				return err
			} else if err == nil {
				same = false
			}
		}
		if same {
			return errNoChange
		}
		return nil
	})
	if n > 0 {
		if e := b.strikeEdges(ctx, adding{N: n}); err == nil {
			down = firstError(down, e)
		}
		changed = append(changed, "blockedBy")
	}
	if err != nil {
		return muster.Task{}, err
	}
	t = b.dropDeletedBlockers(ctx, t, on)
	if len(changed) > 0 {
		down = firstError(down, b.emit(ctx, event(journal.TaskUpdated, t, p.By, map[string]any{"changed": changed})))
	}
	return t, down
}

// apply changes what the patch says of the task alone and returns the names of what is different now.
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
	set1(&t.Subject, p.Subject)
	set1(&t.Description, p.Description)
	set1(&t.ClaimRole, p.Role)
	set1(&t.Priority, p.Priority)
	set1(&t.RequirePlan, p.RequirePlan)
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

// set1 sets a field that the patch names.
func set1[T any](field *T, to *T) {
	if to != nil {
		*field = *to
	}
}
