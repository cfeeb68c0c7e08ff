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

// Known reports whether mail can go to the name: a member, lead, user, or one that another program wrote into
// config.json. If not, near are at most three names like it, the likest first.
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
	names := append(foreign, muster.Lead, muster.User)
	for _, m := range all {
		names = append(names, m.Name)
	}
	return false, like(name, names), nil
}

// like are at most three of the names that differ from name by what a typo makes.
func like(name muster.Name, names []muster.Name) []muster.Name {
	typed := strings.ToLower(string(name))
	most := 2
	if len(typed) <= 4 {
		most = 1
	}
	type scored struct {
		name muster.Name
		d    int
	}
	var near []scored
	for _, n := range names {
		if d := editdist.Distance(typed, strings.ToLower(string(n))); d <= most {
			near = append(near, scored{n, d})
		}
	}
	slices.SortFunc(near, func(a, b scored) int { return cmp.Or(cmp.Compare(a.d, b.d), cmp.Compare(a.name, b.name)) })
	near = slices.Compact(near)
	var out []muster.Name
	for _, s := range near[:min(3, len(near))] {
		out = append(out, s.name)
	}
	return out
}
