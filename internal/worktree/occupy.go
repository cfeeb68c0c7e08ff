package worktree

import (
	"context"

	"muster"
)

// Occupant is who stands in a lane: a member in the process that hosts it, whose commands may write there at any moment.
// It is named from its first step into the lane until it has left it with nothing running, or was found dead. The zero
// value is nobody.
type Occupant struct {
	Member muster.Name   `json:"member"`
	Host   muster.HostID `json:"host"`
}

// OccupantOf is who stands in the lane, by its row.
func OccupantOf(lane muster.Lane) (who Occupant) {
	field(lane, fieldOccupant, &who)
	return who
}

// Occupied is the lane with who in it in the place of was; either may be nobody. Held when it is not was that stands there.
func Occupied(lane muster.Lane, was, who Occupant) (muster.Lane, error) {
	if now := OccupantOf(lane); now != was {
		return lane, muster.Errorf(muster.Held, "the lane %s is no longer as it was: %q stands in it", lane.Name, now.Member)
	}
	if who == (Occupant{}) {
		clearField(&lane, fieldOccupant)
		return lane, nil
	}
	return lane, setField(&lane, fieldOccupant, who)
}

// Occupy puts who into the lane in the place of was, as Occupied does: of several that try at once one wins. That was has
// left, or is dead, is the caller's to know. Errors: Held, NotFound.
func (l *Lanes) Occupy(ctx context.Context, name muster.Name, was, who Occupant) error {
	_, err := l.change(ctx, name, func(lane *muster.Lane) (err error) {
		*lane, err = Occupied(*lane, was, who)
		return err
	})
	return err
}

// AskedToKeep reports whether somebody asked to keep the lane (Keep), also when nobody needs it.
func AskedToKeep(lane muster.Lane) bool {
	var keep bool
	return field(lane, fieldKeep, &keep) && keep
}
