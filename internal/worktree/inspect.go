package worktree

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"

	"muster"
)

// Trouble is what a look at the index finds wrong.
type Trouble struct {
	Lane muster.Name // "": the index itself
	Text string
	Busy bool // it may also be the work of a process that lives
}

// Inspect finds what Recover would do something about, and changes nothing.
func (l *Lanes) Inspect(ctx context.Context) (all []Trouble, err error) {
	x, data, err := l.load(ctx)
	if errors.Is(err, muster.ErrCorrupt) {
		all, x, err = append(all, Trouble{Text: err.Error()}), salvage(data), nil
	}
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(x.rows)) {
		lane, _, err := x.lane(muster.Name(name))
		if err != nil {
			continue // another program's row, in a form that we do not know
		}
		text, busy, err := l.trouble(ctx, l.resolved(lane))
		if err != nil {
			return nil, err
		}
		if text != "" {
			all = append(all, Trouble{lane.Name, text, busy})
		}
	}
	found, err := l.listed(ctx)
	if err != nil {
		return nil, err
	}
	for _, lane := range found {
		if _, has := x.rows[string(lane.Name)]; !has {
			all = append(all, Trouble{Lane: lane.Name, Text: "git has it, and the index does not"})
		}
	}
	return all, nil
}

// Listed are the lanes of an index as it lies there: unlike List it mends nothing.
func (l *Lanes) Listed(ctx context.Context) ([]muster.Lane, error) {
	x, _, err := l.load(ctx)
	if err != nil {
		return nil, err
	}
	return l.rows(x), nil
}

func (l *Lanes) trouble(ctx context.Context, lane muster.Lane) (text string, busy bool, err error) {
	var maker string
	var r json.RawMessage
	switch {
	case lane.Status == muster.LaneCreating:
		if field(lane, fieldMaker, &maker) {
			held, err := l.files.Locked(filepath.Join(l.dir.Locks(), maker+".lock"))
			if err != nil || held {
				return "", false, err // it is just being made
			}
		}
		return "whoever made it died before it was whole", false, nil
	case field(lane, fieldRemoving, &r):
		return "its removal was cut off", true, nil
	case lane.Status == muster.LaneFailed || !gone(lane.Path):
		return "", false, nil
	}
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if tip == "" {
		return "the index has it, and its directory and its branch are gone", false, err
	}
	return "its directory is gone; the branch " + lane.Branch + " has its commits", false, err
}
