package worktree

import (
	"context"

	"muster"
)

// Occupant is who works in a lane: a member in the process that hosts it, whose commands may write there at any
// moment. The row names it from its first step into the lane until it has left with nothing running, or was found
// dead. The zero value is nobody.
type Occupant struct {
	Member muster.Name   `json:"member"`
	Host   muster.HostID `json:"host"`
}

// OccupantOf returns who works in the lane, by its row. An occupant whose host is dead is nobody any more; the roster
// knows whether it is.
func OccupantOf(lane muster.Lane) (who Occupant) {
	who, _ = field[Occupant](lane, fieldOccupant)
	return who
}

// SetOccupant returns the lane with new in it in the place of old; either may be nobody. The error is Held when
// somebody other than old works there.
func SetOccupant(lane muster.Lane, old, new Occupant) (muster.Lane, error) {
	if now := OccupantOf(lane); now != old {
		return lane, muster.Errorf(muster.Held, "the lane %s is no longer as it was: %q works in it",
			lane.Name, now.Member)
	}
	if new == (Occupant{}) {
		clearField(&lane, fieldOccupant)
		return lane, nil
	}
	return lane, setField(&lane, fieldOccupant, new)
}

// Occupy puts new into the lane in the place of old, as SetOccupant does. Of several that try at once one wins, because
// the comparison happens under the index's lock. The caller knows that old has left or is dead. Errors: Held, NotFound.
func (l *Lanes) Occupy(ctx context.Context, name muster.Name, old, new Occupant) error {
	_, err := l.index.update(ctx, name, func(lane *muster.Lane) (err error) {
		*lane, err = SetOccupant(*lane, old, new)
		return err
	})
	return err
}

// IsAskedToKeep reports whether somebody asked to keep the lane (see Lanes.Keep), even when nobody needs it.
func IsAskedToKeep(lane muster.Lane) bool {
	keep, _ := field[bool](lane, fieldKeep)
	return keep
}
