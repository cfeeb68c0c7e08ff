package state

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"muster"
	"muster/internal/clock"
)

// Refresh brings the cache up to date: it then has everything that was durable before the call, as far as the table
// tells of it. Documents that cannot be read are reported.
//
// Concurrent calls share their work: a caller that waited while others refreshed returns at once if one of those
// refreshes started after its own call, for that one has observed all that the caller may rely on.
func (c *Collection[T]) Refresh(ctx context.Context) error {
	err := c.refresh(ctx)
	// No lock is held meanwhile.
	if all := c.Unreadable(); len(all) > 0 && c.options.Reporter != nil {
		err = cmp.Or(err, c.options.Reporter.Report(ctx, all...))
	}
	return err
}

// refresh is Refresh without the report. The turn is a channel and not a mutex, because whoever has it does I/O, and
// others must be able to give up.
func (c *Collection[T]) refresh(ctx context.Context) error {
	called := c.started.Load()
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.finished > called {
		return nil
	}
	number := c.started.Add(1)
	if err := c.pull(ctx); err != nil {
		return err
	}
	c.finished = number
	return nil
}

// document is one document on its way into the cache. A nil item without an error means that it was deleted.
type document[T any] struct {
	key  string
	rev  muster.Rev
	data []byte
	mark muster.Mark
	item *T
	err  error
}

// pull takes in what has changed. The caller holds the turn.
func (c *Collection[T]) pull(ctx context.Context) error {
	var changed []document[T]
	var end error
	for change, err := range c.options.Table.Changes(ctx, c.mark) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			end = err
			break
		}
		if c.options.IsKey != nil && !c.options.IsKey(change.Key) {
			c.mark = max(c.mark, change.Mark) // what came before it is stored whatever comes
			continue
		}
		d := document[T]{key: change.Key, rev: change.Rev, data: change.Data, mark: change.Mark, err: err}
		changed = append(changed, d)
	}
	c.take(changed)
	if end != nil {
		return end
	}
	return c.readDoubtful(ctx)
}

// take decodes documents and stores what can be read. The rest is doubtful.
func (c *Collection[T]) take(list []document[T]) {
	c.decodeAll(list)
	readable := list[:0]
	for _, d := range list {
		c.mark = max(c.mark, d.mark)
		if d.err != nil {
			c.doubtful[d.key] = true
			continue
		}
		delete(c.doubtful, d.key)
		readable = append(readable, d)
	}
	c.store(readable)
}

// readDoubtful reads the doubtful documents again. Those that still cannot be read are corrupt. Whoever waits here
// keeps others from refreshing for HalfWritten at most, and nobody from reading the cache.
func (c *Collection[T]) readDoubtful(ctx context.Context) error {
	if len(c.doubtful) == 0 {
		return nil
	}
	if err := clock.Sleep(ctx, HalfWritten); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(c.doubtful)) {
		doc, err := c.options.Table.Get(ctx, key)
		if errors.Is(err, muster.ErrNotFound) {
			err = nil // it was deleted, which its empty revision says
		}
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return err
		}
		d := document[T]{key: key, rev: doc.Rev, data: doc.Data, err: err}
		c.decode(&d)
		c.store([]document[T]{d})
		delete(c.doubtful, key)
	}
	return nil
}

// store puts documents into the cache. The caller holds the turn and has read them under it.
func (c *Collection[T]) store(list []document[T]) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range list {
		change := Change[T]{Key: d.key, Old: c.items[d.key], New: d.item, Err: d.err}
		if d.item != nil {
			c.items[d.key] = d.item
		} else {
			delete(c.items, d.key)
		}
		if d.err != nil {
			c.unreadable[d.key] = Unreadable{Table: c.options.Name, Key: d.key, Rev: d.rev, Err: d.err}
		} else {
			delete(c.unreadable, d.key)
		}
		if c.options.OnChange != nil {
			c.options.OnChange(change)
		}
	}
}

// decodeAll decodes documents, many of them on all processors: to open a large table is mostly to decode it.
func (c *Collection[T]) decodeAll(list []document[T]) {
	const worthIt = 64
	var all sync.WaitGroup
	for part := range slices.Chunk(list, max(worthIt, 1+len(list)/runtime.GOMAXPROCS(0))) {
		all.Go(func() {
			for i := range part {
				c.decode(&part[i])
			}
		})
	}
	all.Wait()
}

// decode decodes a document, unless it was deleted or the table could not read it.
func (c *Collection[T]) decode(d *document[T]) {
	if d.err != nil || d.rev == muster.None {
		return
	}
	item, err := c.options.Decode(d.key, d.data)
	if d.data = nil; err != nil {
		d.err = err
		return
	}
	d.item = &item
}
