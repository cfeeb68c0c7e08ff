package roster

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"

	"muster"
	"muster/internal/damage"
)

// index is the members in memory, kept warm by the table's changes.
type index struct {
	table  muster.Table
	damage damage.Watch
	teller *damage.Teller

	mu      sync.Mutex
	mark    muster.Mark
	byName  map[string]muster.Member
	ordered []muster.Member // nil when it must be made anew
}

func (x *index) all(ctx context.Context) ([]muster.Member, error) {
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
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
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, n := range names {
		if _, is := x.byName[string(n)]; !is {
			out = append(out, n)
		}
	}
	return out, nil
}

// refresh brings the members up to date, and says which cannot be read.
func (x *index) refresh(ctx context.Context) error {
	x.mu.Lock()
	err := x.pull(ctx)
	x.mu.Unlock()
	if err != nil {
		return err
	}
	return x.damage.Say(ctx, x.teller)
}

func (x *index) pull(ctx context.Context) error {
	if x.byName == nil {
		x.byName = map[string]muster.Member{}
	}
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		x.mark = max(x.mark, c.Mark)
		if err == nil {
			err = x.take(c.Doc)
		}
		x.damage.Saw(c.Key, err == nil)
	}
	return x.damage.Again(ctx, x.take)
}

// take takes in one document: a member, or that it is gone. One that cannot be read is left out.
func (x *index) take(d muster.Doc) error {
	x.ordered = nil
	delete(x.byName, d.Key)
	if d.Rev == muster.None {
		return nil
	}
	m, err := decode(muster.Name(d.Key), d.Data)
	if err == nil {
		x.byName[d.Key] = m
	}
	return err
}

// listed are the names in config.json, ours and others', kept warm by the table's changes. It says also whether the
// other document beside it can be read.
type listed struct {
	table  muster.Table
	damage damage.Watch
	teller *damage.Teller

	mu    sync.Mutex
	mark  muster.Mark
	names []muster.Name
}

func (x *listed) all(ctx context.Context) ([]muster.Name, error) {
	names, err := x.pull(ctx)
	if err == nil {
		err = x.damage.Say(ctx, x.teller)
	}
	return names, err
}

func (x *listed) pull(ctx context.Context) ([]muster.Name, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		x.mark = max(x.mark, c.Mark)
		if err == nil {
			err = x.take(c.Doc)
		}
		x.damage.Saw(c.Key, err == nil)
	}
	err := x.damage.Again(ctx, x.take)
	return x.names, err
}

// take takes in the names; a file that cannot be read leaves those of before.
func (x *listed) take(d muster.Doc) error {
	switch {
	case d.Key != configKey:
		if err := json.Unmarshal(d.Data, &muster.Run{}); d.Rev != muster.None && err != nil {
			return muster.Errorf(muster.Corrupt, "the run's record (run.json) cannot be read: %w", err)
		}
		return nil
	case d.Rev == muster.None:
		x.names = nil
		return nil
	}
	f, err := parse(d.Data)
	if err != nil {
		return err
	}
	x.names = nil
	for _, e := range f.members {
		if e.name != "" {
			x.names = append(x.names, e.name)
		}
	}
	return nil
}
