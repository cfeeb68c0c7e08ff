package roster

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"muster"
	"muster/internal/editdist"
)

// Known reports whether mail can go to the name: a member, lead, user, or one that another program wrote
// into config.json. If not, near are at most three names like it, the likest first.
func (r *Roster) Known(ctx context.Context, name muster.Name) (known bool, near []muster.Name, err error) {
	if name == muster.Lead || name == muster.User {
		return true, nil, nil
	}
	switch _, _, err := r.read(ctx, name); {
	case err == nil, errors.Is(err, muster.ErrCorrupt): // it is there, though nobody can read it now
		return true, nil, nil
	case !errors.Is(err, muster.ErrNotFound):
		return false, nil, err
	}
	foreign, err := r.foreign(ctx, func(muster.Name) bool { return true })
	if err != nil {
		return false, nil, err
	}
	if slices.Contains(foreign, name) {
		return true, nil, nil
	}
	all, err := r.List(ctx)
	if err != nil {
		return false, nil, err
	}
	names := append(foreign, muster.Lead, muster.User) // the names that it may have been meant to be
	for _, m := range all {
		names = append(names, m.Name)
	}
	return false, like(name, names), nil
}

// like returns at most three of the names, the likest first: those that differ from name by what a typo
// makes. It changes the list.
func like(name muster.Name, names []muster.Name) []muster.Name {
	typed := strings.ToLower(string(name))
	most := 2 // mistakes; in a short name a second one makes another name
	if len(typed) <= 4 {
		most = 1
	}
	distance := func(n muster.Name) int { return editdist.Distance(typed, strings.ToLower(string(n))) }
	names = slices.DeleteFunc(names, func(n muster.Name) bool { return distance(n) > most })
	slices.SortFunc(names, func(a, b muster.Name) int {
		return cmp.Or(cmp.Compare(distance(a), distance(b)), cmp.Compare(a, b))
	})
	names = slices.Compact(names)
	return names[:min(3, len(names))]
}
