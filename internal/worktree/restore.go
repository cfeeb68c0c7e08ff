package worktree

import (
	"cmp"
	"context"
	"strings"

	"muster"
)

// CheckFree returns an error where no lane of that name can be made: the name, its branch or its directory is taken.
func (l *Lanes) CheckFree(ctx context.Context, name muster.Name) error {
	if err := l.refuseRow(ctx, name); err != nil {
		return err
	}
	return l.refuseTaken(ctx, l.newLane(name))
}

// Restore makes a lane again from the commit that Archive has kept of it, or where commit is "" from the default base.
// Its task comes from the journal. What was left out of landings stays in the archive only. Interrupted, Restore goes
// on when it is called again.
func (l *Lanes) Restore(ctx context.Context, name muster.Name, commit string) error {
	base := l.options.Base
	if commit != "" {
		var err error
		if commit, err = l.withoutLeftovers(ctx, name, commit); err != nil {
			return err
		}
		base, err = l.repo.Run(ctx, l.repo.CommonDir(), "merge-base", commit, cmp.Or(base, "HEAD"))
		if base = strings.TrimSpace(base); err != nil {
			base = commit // the target has nothing in common with the lane
		}
	}
	lanes := []muster.Lane{{Name: name}}
	doc, err := l.index.read(ctx)
	if err == nil {
		err = l.index.restore(ctx, lanes)
	}
	if err != nil {
		return err
	}
	// A row that is whole is of an interrupted call.
	if row, err := doc.lane(name); err != nil || row.Status == muster.LaneCreating {
		if _, err := l.Create(ctx, name, lanes[0].TaskID, base); err != nil {
			return err
		}
	}
	if commit == "" || commit == base {
		return nil
	}
	return l.Reset(ctx, name, commit)
}

// withoutLeftovers returns the commit below that of checkout.withLeftovers, where commit is one.
func (l *Lanes) withoutLeftovers(ctx context.Context, name muster.Name, commit string) (string, error) {
	commit, err := l.repo.Resolve(ctx, commit)
	if err != nil {
		return "", err
	}
	if _, subject := contentOf(ctx, l.repo, commit); subject == leftoversSubject(name) {
		return l.repo.Resolve(ctx, commit+"^1")
	}
	return commit, nil
}
