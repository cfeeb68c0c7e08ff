package board

import (
	"context"
	"fmt"
	"slices"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/journal"
)

// The limits on the checks that tasks publish. Each later landing runs them all.
const (
	maxChecks  = 3   // of one task
	maxCommand = 500 // bytes of a command
)

// checkName matches the name of a published check.
var checkName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$`)

// Publish gives a task a check of its own, for the holder of the fence. It is a part of the task's document, and counts
// from the task's landing on: the landing itself has to pass it, and each later one. The same name replaces the task's
// own check, and without a command takes it back. Errors: Fenced, and Invalid for a name that another task's check has.
//
// Two tasks that take one name at the same time may both have it. That is no harm: a check is known by its task too.
func Publish(ctx context.Context, b *Board, id muster.TaskID, fence int, c muster.PublishedCheck) (muster.Task, error) {
	c.Command = text.OneLine(c.Command)
	if !checkName().MatchString(c.Name) {
		return muster.Task{}, muster.Errorf(muster.Invalid,
			"%q cannot be the name of a check: up to 40 letters, digits, dots, hyphens", text.CutBytes(c.Name, 60))
	}
	if len(c.Command) > maxCommand {
		return muster.Task{}, muster.Errorf(muster.Invalid,
			"the command has %d bytes, and a check may have %d: put it into a script", len(c.Command), maxCommand)
	}
	all, err := b.List(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	// A retired check gives its name back. One of a task that needs attention keeps it: the task may be tried again,
	// and goes on with the checks that it has.
	for _, t := range all {
		if i := indexOfCheck(t, c.Name); t.ID != id && i >= 0 && !t.Checks[i].Retired {
			return muster.Task{}, muster.Errorf(muster.Invalid,
				"task %d (%s) has a check %s: choose another name", t.ID, t.Subject, c.Name)
		}
	}
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		if err := owned(*t, fence); err != nil {
			return err
		}
		// The list may be shared with readers of the task as it was, so it is never changed in place.
		checks := slices.Clone(t.Checks)
		if i := indexOfCheck(*t, c.Name); i >= 0 {
			checks = slices.Delete(checks, i, i+1)
		}
		if c.Command != "" {
			checks = append(checks, c)
		}
		if len(checks) > maxChecks {
			return muster.Errorf(muster.Invalid, "task %d has %d checks, which is the most", id, maxChecks)
		}
		t.Checks, t.UpdatedAt = checks, now()
		return nil
	})
	if err != nil {
		return t, err
	}
	return t, b.emitChecks(ctx, t, t.Owner)
}

// Retire ends the check of a task: nothing has to pass it any more. by is the lead or the user. The error is NotFound
// when the task has no such check.
func Retire(ctx context.Context, b *Board, id muster.TaskID, name string, by muster.Name) (muster.Task, error) {
	t, _, changed, err := b.step(ctx, id, func(t *muster.Task) error {
		i := indexOfCheck(*t, name)
		if i < 0 {
			return muster.Errorf(muster.NotFound, "task %d has published no check %q", id, text.CutBytes(name, 60))
		}
		if t.Checks[i].Retired {
			return errNoChange
		}
		t.Checks = slices.Clone(t.Checks)
		t.Checks[i].Retired, t.UpdatedAt = true, now()
		return nil
	})
	if err != nil || !changed {
		return t, err
	}
	return t, b.emitChecks(ctx, t, by)
}

// emitChecks tells that the checks of a task have changed.
func (r *records) emitChecks(ctx context.Context, t muster.Task, by muster.Name) error {
	return r.emit(ctx, event(journal.TaskUpdated, t, by, map[string]any{"changed": []string{"checks"}}))
}

// indexOfCheck returns the place of a check in the task's list, -1 when it is not there.
func indexOfCheck(t muster.Task, name string) int {
	return slices.IndexFunc(t.Checks, func(c muster.PublishedCheck) bool { return c.Name == name })
}

// Who may do what with a check: the owner of a task publishes and replaces those of its own task, while it holds the
// claim. Nobody changes one of a task that has landed. The lead and the user can retire it, which leaves it in the
// document: what a later landing was held to can be read afterwards.

// Contract is a published check with the task that has published it.
type Contract struct {
	muster.PublishedCheck
	Task muster.Task
}

// String names the check, whose it is, and what it runs.
func (c Contract) String() string {
	who := string(c.Task.Owner)
	if c.Task.Status == muster.Completed {
		who = string(c.Task.CompletedBy)
	}
	return fmt.Sprintf("check %s of task %d (%s, %s): %s", c.Name, c.Task.ID, c.Task.Subject, who, c.Command)
}

// Contracts returns the published checks that count now, and those of tasks that are landing: each counts once its
// task is on the target.
func Contracts(ctx context.Context, b *Board) (all []Contract, err error) {
	tasks, err := b.List(ctx)
	for _, t := range tasks {
		for _, c := range t.Checks {
			if !c.Retired && (t.Landed != nil || t.Status == muster.Landing) {
				all = append(all, Contract{c, t})
			}
		}
	}
	return all, err
}
