package roster

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"unicode"

	"muster"
	"muster/internal/corruption"
)

// index is the members in memory, kept warm by the table's changes.
type index struct {
	table  muster.Table
	damage corruption.Watch
	teller *corruption.Teller

	mu      sync.Mutex
	mark    muster.Mark
	byName  map[string]muster.Member
	ordered []muster.Member // in the order in which they joined; nil when it must be made anew
	lent    bool            // ordered was given away, and is copied before it changes
	living  int             // teammates that have not shut down
}

// all are the members in the order in which they joined. The list is never written to again.
func (x *index) all(ctx context.Context) ([]muster.Member, error) {
	var list []muster.Member
	err := x.visit(ctx, func(all []muster.Member) {
		x.lent = true
		list = all[:len(all):len(all)]
	})
	return list, err
}

// visit gives f the members in the order in which they joined. They are not copied for it: f is brief, keeps none of the
// list, and asks nothing of the index.
func (x *index) visit(ctx context.Context, f func([]muster.Member)) error {
	if err := x.refresh(ctx); err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.ordered == nil {
		x.ordered = make([]muster.Member, 0, len(x.byName))
		for _, m := range x.byName {
			x.ordered = append(x.ordered, m)
		}
		slices.SortFunc(x.ordered, joined)
	}
	f(x.ordered)
	return nil
}

// teammates is how many members other than the lead have not shut down.
func (x *index) teammates(ctx context.Context) (int, error) {
	if err := x.refresh(ctx); err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.living, nil
}

// others are those of the names that are no member's.
func (x *index) others(ctx context.Context, names iter.Seq[muster.Name]) (out []muster.Name, err error) {
	if err := x.refresh(ctx); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for n := range names {
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

// few is how many changes at once are put into the order one by one; for more it is made anew.
const few = 32

func (x *index) pull(ctx context.Context) error {
	if x.byName == nil {
		x.byName = map[string]muster.Member{}
	}
	n := 0
	for c, err := range x.table.Changes(ctx, x.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		if n++; n > few {
			x.ordered, x.lent = nil, false
		}
		x.mark = max(x.mark, c.Mark)
		if err == nil {
			err = x.take(c.Doc)
		}
		x.damage.Saw(c.Key, err == nil)
	}
	if err := x.damage.Again(ctx, x.take); err != nil {
		return err
	}
	for _, key := range x.damage.Bad() { // what it was says nothing of what it is: nobody waits for it
		x.drop(key)
	}
	return nil
}

// drop leaves a member out.
func (x *index) drop(key string) {
	if was, there := x.byName[key]; there {
		delete(x.byName, key)
		x.living -= teammate(&was)
		x.place(&was, nil)
	}
}

// take takes in one document: a member, or that it is gone. One that cannot be read is left out.
func (x *index) take(d muster.Doc) error {
	var was, is *muster.Member
	if m, there := x.byName[d.Key]; there {
		was = &m
		delete(x.byName, d.Key)
	}
	var err error
	if d.Rev != muster.None {
		var m muster.Member
		if m, err = decode(muster.Name(d.Key), d.Data); err == nil {
			is = &m
			x.byName[d.Key] = m
		}
	}
	x.living += teammate(is) - teammate(was)
	x.place(was, is)
	return err
}

// teammate is 1 for a member that counts as a teammate who is there.
func teammate(m *muster.Member) int {
	if m == nil || m.Name == muster.Lead || m.Status == muster.Shutdown {
		return 0
	}
	return 1
}

// place puts a member into the order as it is, instead of what it was; nil: it is not there.
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

// listed are the names in config.json, ours and others', kept warm by the table's changes. It says also whether the
// other document beside it can be read.
type listed struct {
	table  muster.Table
	damage corruption.Watch
	teller *corruption.Teller

	mu    sync.Mutex
	mark  muster.Mark
	names map[string][]muster.Name // by what they are without upper and lower case; a new one for each content
}

func (x *listed) all(ctx context.Context) (map[string][]muster.Name, error) {
	names, err := x.pull(ctx)
	if err == nil {
		err = x.damage.Say(ctx, x.teller)
	}
	return names, err
}

func (x *listed) pull(ctx context.Context) (map[string][]muster.Name, error) {
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
	x.names = make(map[string][]muster.Name, len(f.members))
	for _, e := range f.members {
		if e.name != "" {
			key := folded(e.name)
			x.names[key] = append(x.names[key], e.name)
		}
	}
	return nil
}

// folded is the same text for names that strings.EqualFold takes for equal.
func folded(name muster.Name) string {
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, string(name))
}
