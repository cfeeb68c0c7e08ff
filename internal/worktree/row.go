package worktree

import (
	"encoding/json"
	"maps"

	"muster"
)

// The fields of an index row that only this package writes. Other programs keep them as they are. They lie in
// Lane.Extra, so that the contract of a lane says nothing about how lanes are made and removed.
const (
	// fieldMaker is the lease of the process that makes the lane, while its status is "creating".
	fieldMaker = "maker"
	// fieldRemoving is a removal: the lane is archived, and whoever finds the row finishes its removal.
	fieldRemoving = "removing"
	// fieldKeep is true when somebody asked to keep the lane, even when its task is done.
	fieldKeep = "keep"
	// fieldCompleted is the fence of the claim whose completion has been written to the lanes' log.
	fieldCompleted = "completed"
	// fieldOccupant is the Occupant.
	fieldOccupant = "occupant"
	// fieldConflicts has, for each file that conflicted in the runtime's last merge, the hash of what the merge left.
	fieldConflicts = "conflicts"
)

// removal is the value of fieldRemoving.
type removal struct {
	Ref string `json:"ref"` // where the lane is archived; "" when it held nothing
}

// removalOf returns the removal that the row announces; ok is false when nobody is removing the lane.
func removalOf(lane muster.Lane) (r removal, ok bool) { return field[removal](lane, fieldRemoving) }

// setField sets one of the fields above. It copies the map, which other values of the lane may share.
func setField(lane *muster.Lane, name string, v any) error {
	raw, err := muster.MarshalLine(v)
	if err != nil {
		return err
	}
	extra := muster.Extra{}
	maps.Copy(extra, lane.Extra)
	extra[name] = raw
	lane.Extra = extra
	return nil
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
