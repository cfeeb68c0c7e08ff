package setup

import (
	"context"
	"errors"
	"os"
	"slices"

	"muster/internal/durable"
)

// State is how a lane stands after Ready.
type State struct {
	IsReady bool     // the kept result was put into it
	IsUsed  bool     // something is where the result would be: an earlier owner of the lane has worked there
	Left    []string // what the set-up makes and git does not ignore, and what is therefore not put
}

// Ready puts the kept result for a commit into a lane that nobody works in yet, as far as git ignores it there: what is
// not ignored would be committed. Where no result is kept it does nothing.
func (s *Store) Ready(ctx context.Context, j Job) (state State, err error) {
	// A lane does not wait for a set-up: that can take minutes, and the member may need nothing of it. The first check
	// of the run makes the result, and the lanes after that have it.
	if s == nil || j.Command == "" {
		return state, nil
	}
	key, err := s.key(ctx, j)
	if err != nil {
		return state, err
	}
	e, ok := s.find(key, j.Dir)
	if !ok || len(e.Roots) == 0 {
		return state, nil
	}
	ignored, err := j.ignored(ctx, e.Roots)
	if err != nil {
		return state, err
	}
	for _, r := range e.Roots {
		if !slices.Contains(ignored, r) {
			state.Left = append(state.Left, r)
		}
	}
	if len(ignored) == 0 {
		return state, nil
	}
	err = s.putOnce(ctx, j, e, ignored)
	if errors.Is(err, errOccupied) {
		state.IsUsed = true
		return state, nil
	}
	state.IsReady = err == nil
	return state, err
}

// marker returns the file that lies beside the entries while something is put into a lane.
func (s *Store) marker(lane string) string { return boundKey(s.dir, lane) }

// putOnce puts an entry into a lane. A process that dies meanwhile leaves the marker file, and the next call removes
// what that process has put in part: half a node_modules would look like a whole one.
func (s *Store) putOnce(ctx context.Context, j Job, e Entry, ignored []string) error {
	marker := s.marker(j.Dir)
	if !durable.IsMissing(marker) {
		if err := j.remove(ctx, e, ignored); err != nil {
			return err
		}
	}
	if err := os.WriteFile(marker, nil, 0o600); err != nil {
		return err
	}
	if err := j.put(ctx, e, ignored); err != nil && !errors.Is(err, errOccupied) {
		return err // what was put is removed, or the marker says that it is not
	} else if errRemove := os.Remove(marker); errRemove != nil || err != nil {
		return errors.Join(err, errRemove)
	}
	return nil
}
