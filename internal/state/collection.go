// Package state keeps the documents of one table in memory and changes them by compare-and-set.
//
// Its type is Collection[T]: the tasks, the members, the requests and the hosts of a team each are one. A Collection
// decodes the documents of a muster.Table, follows the table's changes so that a warm process reads only what is new,
// and reports the documents that cannot be read.
//
// Three rules hold:
//
//   - Get, Put, Update and Delete work on the stored document alone. The cache never decides what is written.
//   - No I/O happens under the mutex of the cache. A refresh has a lock of its own, which a context can give up on.
//   - Refresh observes everything that was durable before it was called.
//
// What the items mean, and what is derived from them (the graph of the tasks, the order of the members), belongs to the
// packages that own them. They follow the cache through Options.OnChange.
package state

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster"
)

// HalfWritten is how long a refresh waits before it reads a corrupt document again. A program that adds a document may
// write it in place, so a reader can meet one that is half written.
const HalfWritten = 50 * time.Millisecond

// ErrNoChange is returned by the function given to Update when the item already is as it should be.
var ErrNoChange = errors.New("nothing to change")

// Options describe a Collection. Table, Decode and Encode are required.
type Options[T any] struct {
	Table muster.Table
	Name  string // of the table, for the Reporter

	// Decode reads one document. Its error has the code Corrupt. It may be called by several goroutines at once.
	Decode func(key string, data []byte) (T, error)
	// Encode writes one document.
	Encode func(key string, item T) ([]byte, error)

	// IsKey reports whether a document of the table is an item of the collection. Nil means that every document is.
	IsKey func(key string) bool
	// NotFound is the error for an item that does not exist. Nil leaves the table's own.
	NotFound func(key string) error
	// OnChange is called for every change of the cache, under its lock and in the order of the changes. It must not
	// block and must not call the collection.
	OnChange func(Change[T])
	// Reporter is told of the documents that cannot be read. Nil means that nobody is.
	Reporter Reporter
}

// Change is one change of a cached item. Old is nil when the item was not in the cache. New is nil when it is not in
// the cache any more: Err is nil when it was deleted, and says what is wrong when it cannot be read. Both point to
// values that are never changed.
type Change[T any] struct {
	Key      string
	Old, New *T
	Err      error
}

// Unreadable is a document that cannot be read.
type Unreadable struct {
	Table, Key string
	Rev        muster.Rev
	Err        error
}

// Reporter reports corrupt documents. Report is called after every refresh with all documents that cannot be read now,
// and must report each revision of a document once only. Its error is returned by the refresh.
type Reporter interface {
	Report(ctx context.Context, all ...Unreadable) error
}

// Collection is the items of one table. It is safe for concurrent use.
type Collection[T any] struct {
	options Options[T]

	// turn is held by whoever brings the cache up to date, over its I/O. Every value enters the cache under it, and was
	// read from the table under it, so an older value never replaces a newer one.
	turn     chan struct{}
	mark     muster.Mark     // guarded by turn: the place in the table's changes up to which the cache has them
	doubtful map[string]bool // guarded by turn: keys of documents that must be read again before they count as corrupt
	finished uint64          // guarded by turn: the number of the last refresh that succeeded
	started  atomic.Uint64   // how many refreshes have started

	mu         sync.Mutex // guards the following, and what OnChange keeps
	items      map[string]*T
	unreadable map[string]Unreadable
}

// New returns the collection of the table. It reads nothing yet.
func New[T any](o Options[T]) *Collection[T] {
	return &Collection[T]{
		options: o, turn: make(chan struct{}, 1), doubtful: map[string]bool{},
		items: map[string]*T{}, unreadable: map[string]Unreadable{},
	}
}

// Get reads one item as it is stored now, and the revision that it was read at. With the error Corrupt the revision is
// that of the corrupt document.
func (c *Collection[T]) Get(ctx context.Context, key string) (item T, rev muster.Rev, err error) {
	doc, err := c.options.Table.Get(ctx, key)
	if errors.Is(err, muster.ErrNotFound) && c.options.NotFound != nil {
		return item, muster.None, c.options.NotFound(key)
	}
	if err == nil {
		item, err = c.options.Decode(key, doc.Data)
	}
	return item, doc.Rev, err
}

// Put writes the item if its document is still at the revision at, and returns the new revision. At None it creates the
// document. Errors: Stale, Invalid when the item cannot be encoded.
func (c *Collection[T]) Put(ctx context.Context, key string, item T, at muster.Rev) (muster.Rev, error) {
	data, err := c.options.Encode(key, item)
	if err != nil {
		return muster.None, err
	}
	return c.options.Table.Put(ctx, key, data, at)
}

// Create writes an item that must not exist yet. Errors: Stale when it does.
func (c *Collection[T]) Create(ctx context.Context, key string, item T) (muster.Rev, error) {
	return c.Put(ctx, key, item, muster.None)
}

// Delete removes the document if it is still at the revision at. Errors: Stale.
func (c *Collection[T]) Delete(ctx context.Context, key string, at muster.Rev) error {
	return c.options.Table.Delete(ctx, key, at)
}

// Update reads the item, lets f change it, and writes it at the revision that it was read at. When somebody else was
// faster it starts again, so f may be called several times. An error of f ends the update without a write; ErrNoChange
// ends it with the item and without an error.
func (c *Collection[T]) Update(ctx context.Context, key string, f func(*T) error) (T, error) {
	var none T
	for {
		item, rev, err := c.Get(ctx, key)
		if err != nil {
			return none, err
		}
		switch err := f(&item); {
		case errors.Is(err, ErrNoChange):
			return item, nil
		case err != nil:
			return none, err
		}
		_, err = c.Put(ctx, key, item, rev)
		switch {
		case err == nil:
			return item, nil
		case !errors.Is(err, muster.ErrStale):
			return none, err
		case ctx.Err() != nil:
			return none, ctx.Err()
		}
	}
}

// Watch receives after the table may have changed, until ctx ends.
func (c *Collection[T]) Watch(ctx context.Context) <-chan struct{} { return c.options.Table.Watch(ctx) }

// List returns all items in the order of their keys, after a refresh. A document that cannot be read is left out.
func (c *Collection[T]) List(ctx context.Context) ([]T, error) {
	if err := c.Refresh(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]T, 0, len(c.items))
	for _, key := range slices.Sorted(maps.Keys(c.items)) {
		out = append(out, *c.items[key])
	}
	return out, nil
}

// Unreadable returns the documents that could not be read when the cache was last brought up to date, by key.
func (c *Collection[T]) Unreadable() []Unreadable {
	c.mu.Lock()
	defer c.mu.Unlock()
	byKey := func(a, b Unreadable) int { return strings.Compare(a.Key, b.Key) }
	return slices.SortedFunc(maps.Values(c.unreadable), byKey)
}

// View calls f under the lock of the cache, without a refresh: f sees what OnChange keeps in a consistent state. It
// must be brief and must not call the collection.
func (c *Collection[T]) View(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// ViewFresh is View after a refresh. f is not called when the refresh fails.
func (c *Collection[T]) ViewFresh(ctx context.Context, f func()) error {
	if err := c.Refresh(ctx); err != nil {
		return err
	}
	c.View(f)
	return nil
}

// JSON returns Decode and Encode for items whose JSON is their document. name is what errors call an item, with %s for
// its key, such as "the request %s". setKey sets the item's own copy of the key: the key of the document counts,
// whatever the document says.
func JSON[T any](name string, setKey func(item *T, key string)) (
	decode func(key string, data []byte) (T, error), encode func(key string, item T) ([]byte, error),
) {
	decode = func(key string, data []byte) (item T, err error) {
		if err := json.Unmarshal(data, &item); err != nil {
			return item, muster.Errorf(muster.Corrupt, "%s cannot be read: %w", fmt.Sprintf(name, key), err)
		}
		setKey(&item, key)
		return item, nil
	}
	encode = func(key string, item T) ([]byte, error) {
		data, err := muster.Encode(item)
		if err != nil {
			return nil, muster.Errorf(muster.Invalid, "%s cannot be written: %w", fmt.Sprintf(name, key), err)
		}
		return data, nil
	}
	return decode, encode
}
