package roster

import (
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strings"
	"unicode"

	"muster"
	"muster/internal/state"
)

// index is what the roster derives from the members: their order, and how many there are. It follows the collection
// of the members change by change. The lock of that collection guards it.
type index struct {
	members *state.Collection[muster.Member]

	byName  map[muster.Name]muster.Member
	ordered []muster.Member // in the order in which they joined; nil when it must be made anew
	lent    bool            // ordered was given away, and is copied before it changes
	changes int             // of ordered since it was last looked at
	living  int             // teammates that have not shut down
}

// all returns the members in the order in which they joined. The list is never written to again.
func (x *index) all(ctx context.Context) ([]muster.Member, error) {
	var list []muster.Member
	err := x.visit(ctx, func(all []muster.Member) {
		x.lent = true
		list = all[:len(all):len(all)]
	})
	return list, err
}

// visit gives f the members in the order in which they joined, after a refresh. They are not copied for it: f is brief,
// keeps none of the list, and asks nothing of the index.
func (x *index) visit(ctx context.Context, f func([]muster.Member)) error {
	return x.members.ViewFresh(ctx, func() {
		if x.changes = 0; x.ordered == nil {
			x.ordered = slices.AppendSeq(make([]muster.Member, 0, len(x.byName)), maps.Values(x.byName))
			slices.SortFunc(x.ordered, joined)
		}
		f(x.ordered)
	})
}

// teammates returns how many members other than the lead have not shut down.
func (x *index) teammates(ctx context.Context) (n int, err error) {
	err = x.members.ViewFresh(ctx, func() { n = x.living })
	return n, err
}

// others returns those of the names that are no member's.
func (x *index) others(ctx context.Context, names iter.Seq[muster.Name]) (out []muster.Name, err error) {
	err = x.members.ViewFresh(ctx, func() {
		for n := range names {
			if _, is := x.byName[n]; !is {
				out = append(out, n)
			}
		}
	})
	return out, err
}

// few is up to how many changes are put into the order one by one before it is looked at; for more it is made anew.
const few = 32

// onChange follows one change of a member. A member that is gone or cannot be read is left out: what it was says
// nothing of what it is, so nobody waits for it.
func (x *index) onChange(c state.Change[muster.Member]) {
	name := muster.Name(c.Key)
	if c.New == nil {
		delete(x.byName, name)
	} else {
		x.byName[name] = *c.New
	}
	x.living += countTeammate(c.New) - countTeammate(c.Old)
	if x.changes++; x.changes > few {
		x.ordered, x.lent = nil, false
	}
	x.place(c.Old, c.New)
}

// countTeammate returns 1 for a member that counts as a teammate who is there, and 0 for others.
func countTeammate(m *muster.Member) int {
	if m == nil || m.Name == muster.Lead || m.Status == muster.Shutdown {
		return 0
	}
	return 1
}

// place puts a member into the order as it is, in place of what it was. Nil means that it is not there.
func (x *index) place(was, is *muster.Member) {
	if x.ordered == nil {
		return
	}
	if x.lent {
		x.ordered, x.lent = slices.Clone(x.ordered), false
	}
	if was != nil {
		i, _ := slices.BinarySearchFunc(x.ordered, *was, joined)
		if is != nil && joined(*was, *is) == 0 {
			x.ordered[i] = *is
			return
		}
		x.ordered = slices.Delete(x.ordered, i, i+1)
	}
	if is != nil {
		i, _ := slices.BinarySearchFunc(x.ordered, *is, joined)
		x.ordered = slices.Insert(x.ordered, i, *is)
	}
}

// teamDoc is a document of the team's table: config.json, with its members' names, or the run's record.
type teamDoc struct {
	names map[string][]muster.Name // in config.json, by foldCase
}

// decodeTeamDoc reads config.json's names. Of the run's record it only says whether it can be read.
func decodeTeamDoc(key string, data []byte) (teamDoc, error) {
	if key != configKey {
		if err := json.Unmarshal(data, &muster.Run{}); err != nil {
			return teamDoc{}, muster.Errorf(muster.Corrupt, "the run's record (run.json) cannot be read: %w", err)
		}
		return teamDoc{}, nil
	}
	f, err := parse(data)
	if err != nil {
		return teamDoc{}, err
	}
	names := make(map[string][]muster.Name, len(f.members))
	for _, e := range f.members {
		if e.name != "" {
			key := foldCase(e.name)
			names[key] = append(names[key], e.name)
		}
	}
	return teamDoc{names}, nil
}

// listed is the names in config.json, ours and those of other programs. It follows the collection of the team's
// documents, whose lock guards names.
type listed struct {
	docs  *state.Collection[teamDoc]
	names map[string][]muster.Name // by foldCase; a new map for each content
}

// onChange follows a change of config.json. A file that cannot be read leaves the names that it had before.
func (x *listed) onChange(c state.Change[teamDoc]) {
	switch {
	case c.Key != configKey || c.Err != nil:
	case c.New == nil:
		x.names = nil
	default:
		x.names = c.New.names
	}
}

// all returns the names after a refresh, which also reports documents of the team that cannot be read.
func (x *listed) all(ctx context.Context) (names map[string][]muster.Name, err error) {
	err = x.docs.ViewFresh(ctx, func() { names = x.names })
	return names, err
}

// foldCase returns the same text for names that strings.EqualFold takes for equal.
func foldCase(name muster.Name) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, string(name))
}
