package worktree

import (
	"context"
	"encoding/json"
	"maps"

	"muster"
	"muster/internal/durable"
)

// The fields of an index row that only this package writes. They lie in Lane.Extra, so that the contract of a lane says
// nothing about how lanes are made and removed.
const (
	fieldMaker     = "maker"     // the lease of the process that makes the lane, while its status is "creating"
	fieldRemoving  = "removing"  // a removal: the lane is archived, and whoever finds the row finishes its removal
	fieldKeep      = "keep"      // true when somebody asked to keep the lane, even when its task is done
	fieldCompleted = "completed" // the fence of the claim whose completion has been written to the lanes' log
	fieldOccupant  = "occupant"  // the Occupant
	fieldConflicts = "conflicts" // by file that conflicted in the runtime's last merge: as the merge left it
	fieldPorts     = "ports"     // the numbers of the lane's ports
	fieldLocal     = "local"     // the files of the user's that were copied into the lane
)

type removal struct {
	Ref string `json:"ref"` // where the lane is archived; "" when it held nothing
}

// removalOf returns the removal that the row announces; ok is false when nobody is removing the lane.
func removalOf(lane muster.Lane) (r removal, ok bool) { return field[removal](lane, fieldRemoving) }

// setField sets one of the fields above. It copies the map, which other values of the lane may share.
func setField(lane *muster.Lane, name string, v any) {
	raw, _ := muster.MarshalLine(v) // the fields are texts, numbers and structs of them: each can be written
	extra := muster.Extra{}
	maps.Copy(extra, lane.Extra)
	extra[name] = raw
	lane.Extra = extra
}

// clearField removes one of the fields above. It copies the map too.
func clearField(lane *muster.Lane, name string) {
	lane.Extra = maps.Clone(lane.Extra)
	delete(lane.Extra, name)
}

// field reads one of the fields. ok is false when the field is missing or cannot be read.
func field[T any](lane muster.Lane, name string) (v T, ok bool) {
	raw, ok := lane.Extra[name]
	ok = ok && json.Unmarshal(raw, &v) == nil
	return v, ok
}

// Occupant is who works in a lane: a member in the process that hosts it, whose commands may write there. The row names
// it from its first step into the lane until it has left with nothing running, or was found dead. The zero value is
// nobody.
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
	} else {
		setField(&lane, fieldOccupant, new)
	}
	return lane, nil
}

// Occupy puts new into the lane in the place of old, as SetOccupant does. Of several that try at once one wins, because
// the comparison happens under the index's lock. The caller knows that old has left or is dead. Errors: Held, NotFound.
func (l *Lanes) Occupy(ctx context.Context, name muster.Name, old, new Occupant) error {
	lane, err := l.index.update(ctx, name, func(lane *muster.Lane) (err error) {
		*lane, err = SetOccupant(*lane, old, new)
		return err
	})
	if err != nil {
		return err
	}
	nobody := Occupant{}
	if new == nobody {
		l.index.occupied.Delete(name)
		return nil
	}
	l.index.occupied.Store(name, new)
	if dir, err := l.temporaryDir(lane); err == nil && old != nobody {
		_ = durable.RemoveContents(dir, "") // old is dead: no command writes there
	}
	return nil
}

// SetLocal notes, before they are copied, the files of the user's that come into a lane and do not land.
func (l *Lanes) SetLocal(ctx context.Context, name muster.Name, files []string) error {
	_, err := l.index.update(ctx, name, func(row *muster.Lane) error { setField(row, fieldLocal, files); return nil })
	return err
}

// LocalOf returns what SetLocal has noted.
func LocalOf(lane muster.Lane) []string {
	files, _ := field[[]string](lane, fieldLocal)
	return files
}

// IsAskedToKeep reports whether somebody asked to keep the lane (see Lanes.Keep), even when nobody needs it.
func IsAskedToKeep(lane muster.Lane) bool {
	keep, _ := field[bool](lane, fieldKeep)
	return keep
}
