package team

import (
	"context"

	"muster"
	"muster/internal/check"
)

// operations returns the operations of people on the services that the team uses now.
func (t *Team) operations() operations {
	return operations{t.services(), &t.site.config, t.site.secrets, t.site.log, t.site.launch, t.openSite}
}

// TargetOf returns the target of a team's last run.
func TargetOf(t *Team) Target { return Target{t.operations()} }

// SetupOf returns the set-up of a team's repository.
func SetupOf(t *Team) Setup { return Setup{t.operations()} }

// ReceiptsOf compares what the board says of the landed tasks with the target's commits and with what checks have said
// of their trees. They are in the order in which they landed, and those that are not on the target come last. It
// changes nothing.
//
// The record of a task says which commit it landed with, and what the check has said. Both may have been written by
// somebody else, so nothing is believed that the other two do not bear out:
//
//   - The commit is one of the target's first parents, and its trailer names the task and says the same.
//   - A check of the very tree of that commit is on record, by the same command, and says the same. Where there are
//     several, that holds of each that is required; one that depends on some files only may have run on another tree
//     with the same ones.
//   - For a commit that a later check covers, that holds of the next landing above it.
func ReceiptsOf(ctx context.Context, t *Team) ([]Receipt, error) { return t.operations().receipts(ctx) }

// Clean lists what nobody needs any more, and removes it if c says so. While a process of the team lives, its branches
// and lanes stay. Work that is nowhere else stays unless c.Unmerged.
func Clean(ctx context.Context, t *Team, c Cleaning) ([]Cleanable, error) {
	return t.operations().clean(ctx, c)
}

// ForgetChecks removes what checks have kept of the team's repository in the user's cache. It is for a repository that
// is not kept itself.
func ForgetChecks(t *Team) error {
	dir := t.site.config.checksDir()
	if dir == "" {
		return nil
	}
	return check.EntryOf(dir, t.Root()).Remove()
}

// Undo takes landed tasks back: it reverts their commits in a lane of a new task, which lands as any other, after the
// check. The check runs in this process, which needs no model, beside a living team or without one. isDryRun only says
// what would be done.
//
// Nothing has changed after an error: Invalid for a task that has not landed, for a conflict with what landed later and
// for a red check, each with what to do. A process that is killed on the way leaves a task that Undo, called again,
// goes on with; a team at work, or one that is resumed, gives it to a teammate.
func (s Tasks) Undo(ctx context.Context, ids []muster.TaskID, isDryRun bool) (Undone, error) {
	return s.t.operations().undo(ctx, ids, isDryRun)
}
