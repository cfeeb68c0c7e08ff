package collision

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
)

// maxKnown is how large the file of what is known may be.
const maxKnown = 1 << 20

// document is the content of .team/cache/collisions.json. The file is derived data for people who look: it may be
// behind or missing, and is read as a hint only.
type document struct {
	Collisions []muster.Collision `json:"collisions"`
}

// write writes what collides now, if it is something else than before.
func (l *looker) write() error {
	now := []muster.Collision{}
	for _, p := range slices.SortedFunc(maps.Keys(l.found), pair.compare) {
		now = append(now, l.found[p])
	}
	if reflect.DeepEqual(now, l.written) || len(now)+len(l.written) == 0 && len(Read(l.o.Root)) == 0 {
		return nil
	}
	data, err := muster.Encode(document{now})
	if err == nil {
		err = durable.WriteBelow(l.o.Root, paths.Dir(l.o.Root).Collisions(), data)
	}
	if err == nil {
		l.written = now
	}
	return err
}

// Read returns the collisions that were known last, of tasks that may have ended since. It returns none where they
// cannot be read.
func Read(root string) []muster.Collision {
	data, err := durable.ReadBelow(root, paths.Dir(root).Collisions(), maxKnown)
	if err != nil {
		return nil
	}
	var d document
	if json.Unmarshal(data, &d) != nil {
		return nil
	}
	return d.Collisions
}
