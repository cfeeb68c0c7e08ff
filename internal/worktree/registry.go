package worktree

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/git"
	"muster/journal"
)

// missing returns the lanes that git has and the document lacks.
func (x *index) missing(ctx context.Context, doc *document) ([]muster.Lane, error) {
	worktrees, err := x.repo.Worktrees(ctx)
	if err != nil {
		return nil, err
	}
	var lanes []muster.Lane
	for _, w := range worktrees {
		if name, ok := x.laneName(w); ok && !doc.has(name) {
			// The base stays empty: it is not known, so nothing may remove the lane as "unchanged".
			lanes = append(lanes, muster.Lane{Name: name, Path: w.Path, Branch: "wt/" + string(name),
				Status: muster.LaneActive, CreatedAt: muster.UnixTime(time.Now())})
		}
	}
	return lanes, x.restore(ctx, lanes)
}

// laneName returns the name of the lane that a worktree is. A lane lies in the lanes' directory and is on the branch
// wt/NAME; every other worktree is the user's.
func (x *index) laneName(w git.Worktree) (name muster.Name, ok bool) {
	name = muster.Name(filepath.Base(w.Path))
	ok = !w.Prunable && filepath.Dir(w.Path) == x.home && muster.CheckName(name) == nil &&
		w.Branch == "refs/heads/wt/"+string(name)
	return name, ok
}

// restore gives the lanes their task, their time and their status from the journal.
func (x *index) restore(ctx context.Context, lanes []muster.Lane) error {
	if len(lanes) == 0 {
		return nil
	}
	// The last event of a name counts: several lanes may have had it, one after the other.
	byName := map[string]*muster.Lane{}
	for i := range lanes {
		byName[string(lanes[i].Name)] = &lanes[i]
	}
	for e, err := range x.journal.Read(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		lane := byName[e.Text("lane")]
		// A line of the journal that cannot be read is passed over: the lane is worth more than its history.
		if err != nil || lane == nil {
			continue
		}
		switch e.Kind {
		case journal.LaneCreated:
			lane.TaskID, lane.Status, lane.CreatedAt = e.Task, muster.LaneActive, e.At
		case journal.LaneKept:
			lane.Status = muster.LaneKept
		}
	}
	return nil
}
