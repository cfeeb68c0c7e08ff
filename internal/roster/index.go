package roster

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"muster"
	"muster/internal/state"
)

// index is what the roster derives from the members: their order, and how many there are. It follows the
// collection of the members change by change. The lock of that collection guards it.
type index struct {
	byName  map[muster.Name]muster.Member
	ordered []muster.Member // by joined; nil when it must be made anew
	isLent  bool            // callers have ordered, so it must not be changed any more
	living  int             // teammates that have not shut down
}

// inOrder returns the members in the order in which they joined. The order is made anew after a change, by
// whoever asks first. Callers get it clipped, so an append of theirs copies it.
func (x *index) inOrder() []muster.Member {
	if x.ordered == nil {
		x.ordered = slices.AppendSeq(make([]muster.Member, 0, len(x.byName)), maps.Values(x.byName))
		slices.SortFunc(x.ordered, joined)
	}
	x.isLent = true
	return slices.Clip(x.ordered)
}

// onChange follows one change of a member. A member that is gone or cannot be read is left out: what it was
// says nothing of what it is, so nobody waits for it.
func (x *index) onChange(c state.Change[muster.Member]) {
	x.reorder(c)
	if name := muster.Name(c.Key); c.New == nil {
		delete(x.byName, name)
	} else {
		x.byName[name] = *c.New
	}
	if isLivingTeammate(c.Old) {
		x.living--
	}
	if isLivingTeammate(c.New) {
		x.living++
	}
}

// reorder takes a change into the order. Most changes leave a member in its place, and thousands of members are not
// sorted anew for those.
func (x *index) reorder(c state.Change[muster.Member]) {
	if c.Old == nil || c.New == nil || joined(*c.Old, *c.New) != 0 {
		x.ordered = nil
	}
	if x.ordered == nil {
		return
	}
	if x.isLent {
		x.ordered, x.isLent = slices.Clone(x.ordered), false
	}
	if at, found := slices.BinarySearchFunc(x.ordered, *c.New, joined); found {
		x.ordered[at] = *c.New
	} else {
		x.ordered = nil
	}
}

// isLivingTeammate reports whether m is there, is not the lead, and has not shut down.
func isLivingTeammate(m *muster.Member) bool {
	return m != nil && m.Name != muster.Lead && m.Status != muster.Shutdown
}

// teamDoc is a document of the team's table: config.json, with its members' names, or the run's record. The
// collection of them exists for two things: it keeps those names in memory, and it reports a document that
// cannot be read.
type teamDoc struct {
	names []muster.Name // in config.json, our members' and those of other programs
}

// decodeTeamDoc reads config.json's names. Of the run's record it only says whether it can be read.
func decodeTeamDoc(key string, data []byte) (doc teamDoc, err error) {
	if key != configKey {
		if err := json.Unmarshal(data, &muster.Run{}); err != nil {
			return doc, muster.Errorf(muster.Corrupt, "the run's record (run.json) cannot be read: %w", err)
		}
		return doc, nil
	}
	f, err := parseConfig(data)
	for _, e := range f.members {
		if e.name != "" {
			doc.names = append(doc.names, e.name)
		}
	}
	return doc, err
}

// onTeamDoc follows a change of config.json. A file that cannot be read leaves the names that it had
// before, so that a name that another program uses does not become free while that program writes the file.
func (r *Roster) onTeamDoc(c state.Change[teamDoc]) {
	switch {
	case c.Key != configKey || c.Err != nil:
	case c.New == nil:
		r.listed = nil
	default:
		r.listed = c.New.names
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
		names = slices.DeleteFunc(names, func(n muster.Name) bool {
			_, is := r.index.byName[n]
			return is
		})
	})
	return names, err
}
