package roster

import (
	"context"
	"encoding/json"
	"slices"

	"muster"
	"muster/internal/state"
)

// index is the members in the order in which they joined. It follows the collection of the members change by
// change, so thousands of them are not sorted anew for each. The lock of that collection guards it.
type index struct {
	ordered []*muster.Member
	listed  []muster.Member // what callers get; nil when it must be made anew. It is never changed
}

// list returns the members. Callers get the list clipped, so an append of theirs copies it.
func (x *index) list() []muster.Member {
	if x.listed == nil {
		x.listed = make([]muster.Member, 0, len(x.ordered))
		for _, m := range x.ordered {
			x.listed = append(x.listed, *m)
		}
	}
	return slices.Clip(x.listed)
}

// onChange follows one change of a member. A member that is gone or cannot be read is left out: what it was
// says nothing of what it is, so nobody waits for it.
func (x *index) onChange(c state.Change[muster.Member]) {
	x.listed = nil
	if c.Old != nil {
		at, _ := slices.BinarySearchFunc(x.ordered, c.Old, joined)
		x.ordered = slices.Delete(x.ordered, at, at+1)
	}
	if c.New != nil {
		at, _ := slices.BinarySearchFunc(x.ordered, c.New, joined)
		x.ordered = slices.Insert(x.ordered, at, c.New)
	}
}

// decodeTeamDoc reads a document of the team's table. The collection of them exists for two things: it keeps
// the names in config.json, our members' and those of other programs, and it reports a document that cannot
// be read. Of the run's record decodeTeamDoc only says whether it can be read.
func decodeTeamDoc(key string, data []byte) (names []muster.Name, err error) {
	if key != configKey {
		if err := json.Unmarshal(data, &muster.Run{}); err != nil {
			return nil, muster.Errorf(muster.Corrupt, "the run's record (run.json) cannot be read: %w", err)
		}
		return nil, nil
	}
	f, err := parseConfig(data)
	for _, e := range f.members {
		if e.name != "" {
			names = append(names, e.name)
		}
	}
	return names, err
}

// onTeamDoc follows a change of config.json. A file that cannot be read leaves the names that it had
// before, so that a name that another program uses does not become free while that program writes the file.
func (r *Roster) onTeamDoc(c state.Change[[]muster.Name]) {
	switch {
	case c.Key != configKey || c.Err != nil:
	case c.New == nil:
		r.listed = nil
	default:
		r.listed = *c.New
	}
}

// foreign returns those members that other programs wrote into config.json whose names are wanted. The
// refresh also reports documents of the team that cannot be read.
func (r *Roster) foreign(ctx context.Context, wanted func(muster.Name) bool) (names []muster.Name, err error) {
	err = r.docs.ViewFresh(ctx, func() {
		for _, n := range r.listed {
			if wanted(n) {
				names = append(names, n)
			}
		}
	})
	if err != nil || names == nil { // as nearly always: the members need not be looked at
		return nil, err
	}
	err = r.members.ViewFresh(ctx, func() {
		ours := make(map[muster.Name]bool, len(r.index.ordered))
		for _, m := range r.index.ordered {
			ours[m.Name] = true
		}
		names = slices.DeleteFunc(names, func(n muster.Name) bool { return ours[n] })
	})
	return names, err
}
