package roster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"muster"
)

// index is the members in memory, kept warm by the table's changes.
type index struct {
	table muster.Table

	mu      sync.Mutex
	mark    muster.Mark
	byName  map[string]muster.Member
	ordered []muster.Member // nil when it must be made anew
}

func (x *index) all(ctx context.Context) ([]muster.Member, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	if x.ordered == nil {
		x.ordered = make([]muster.Member, 0, len(x.byName))
		for _, m := range x.byName {
			x.ordered = append(x.ordered, m)
		}
		sorted(x.ordered)
	}
	return slices.Clone(x.ordered), nil
}

// others are the names that are no member's.
func (x *index) others(ctx context.Context, names []muster.Name) (out []muster.Name, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	for _, n := range names {
		if _, is := x.byName[string(n)]; !is {
			out = append(out, n)
		}
	}
	return out, nil
}

func (x *index) refresh(ctx context.Context) error {
	if x.byName == nil {
		x.byName = map[string]muster.Member{}
	}
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		x.mark = max(x.mark, c.Mark)
		x.ordered = nil
		var m muster.Member
		if err != nil || c.Rev == muster.None || json.Unmarshal(c.Data, &m) != nil {
			delete(x.byName, c.Key)
			continue
		}
		m.Name = muster.Name(c.Key)
		x.byName[c.Key] = m
	}
	return nil
}

// listed are the names in config.json, ours and others', kept warm by the table's changes.
type listed struct {
	table muster.Table

	mu    sync.Mutex
	mark  muster.Mark
	names []muster.Name
}

func (x *listed) all(ctx context.Context) ([]muster.Name, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		x.mark = max(x.mark, c.Mark)
		if err != nil || c.Key != configKey {
			continue
		}
		if c.Rev == muster.None {
			x.names = nil
			continue
		}
		f, err := parse(c.Data)
		if err != nil {
			continue
		}
		x.names = nil
		for _, e := range f.members {
			if e.name != "" {
				x.names = append(x.names, e.name)
			}
		}
	}
	return x.names, nil
}
