// Package tapped gives tests a store that says what is done with it, and fails, waits or lies where a test wants it to.
package tapped

import (
	"bytes"
	"context"
	"errors"
	"iter"

	"muster"
)

// Store is a store that says what is done with it. Before is called before an operation, which an error refuses; Around
// runs an operation, or not. Each may be nil.
type Store struct {
	muster.Store
	Before func(ctx context.Context, op, key string, data []byte) error
	Around func(o Operation, do func() error) error
}

// Operation is what is done with a store. Its name is one of get, put, delete and changes (key: the table, a slash, and
// the key of the document), append, read and tail (the stream), mail, peek and drop (the box), lease and held (its
// name), and watch (what is watched), which only Before sees.
type Operation struct {
	Name, Key string
	Data      []byte         // of a put or an append
	At        muster.Pos     // of an append
	Mail      muster.Message // of a mail
}

// run runs an operation.
func (s Store) run(ctx context.Context, o Operation, do func() error) error {
	if s.Before != nil {
		if err := s.Before(ctx, o.Name, o.Key, o.Data); err != nil {
			return err
		}
	}
	if s.Around != nil {
		return s.Around(o, do)
	}
	return do()
}

// watched tells of a watch.
func (s Store) watched(ctx context.Context, what string) {
	if s.Before != nil {
		_ = s.Before(ctx, "watch", what, nil)
	}
}

// Table implements muster.Store.
func (s Store) Table(name string) muster.Table { return table{s.Store.Table(name), s, name + "/"} }

// Log implements muster.Store.
func (s Store) Log() muster.Log { return log{s.Store.Log(), s} }

// Inbox implements muster.Store.
func (s Store) Inbox() muster.Inbox { return inbox{s.Store.Inbox(), s} }

// Leases implements muster.Store.
func (s Store) Leases() muster.Leases { return leases{s.Store.Leases(), s} }

type table struct {
	muster.Table
	s    Store
	name string
}

func (t table) Get(ctx context.Context, key string) (d muster.Doc, err error) {
	err = t.s.run(ctx, Operation{Name: "get", Key: t.name + key}, func() (err error) {
		d, err = t.Table.Get(ctx, key)
		return err
	})
	return d, err
}

func (t table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (rev muster.Rev, err error) {
	err = t.s.run(ctx, Operation{Name: "put", Key: t.name + key, Data: data}, func() (err error) {
		rev, err = t.Table.Put(ctx, key, data, at)
		return err
	})
	if err != nil {
		return muster.None, err
	}
	return rev, nil
}

func (t table) Delete(ctx context.Context, key string, at muster.Rev) error {
	return t.s.run(ctx, Operation{Name: "delete", Key: t.name + key}, func() error {
		return t.Table.Delete(ctx, key, at)
	})
}

func (t table) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		var all []muster.Change
		var errs []error // of each: what is said of one document does not end the sequence
		err := t.s.run(ctx, Operation{Name: "changes", Key: t.name}, func() error {
			for c, err := range t.Table.Changes(ctx, since) {
				if err != nil && !errors.Is(err, muster.ErrCorrupt) {
					return err
				}
				all, errs = append(all, c), append(errs, err)
			}
			return nil
		})
		for i, c := range all {
			if !yield(c, errs[i]) {
				return
			}
		}
		if err != nil {
			yield(muster.Change{}, err)
		}
	}
}

func (t table) Watch(ctx context.Context) <-chan struct{} {
	t.s.watched(ctx, t.name)
	return t.Table.Watch(ctx)
}

type log struct {
	muster.Log
	s Store
}

func (l log) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (end muster.Pos, err error) {
	o := Operation{Name: "append", Key: stream, Data: bytes.Join(recs, nil), At: at}
	err = l.s.run(ctx, o, func() (err error) { end, err = l.Log.Append(ctx, stream, at, recs...); return err })
	if err != nil {
		return 0, err
	}
	return end, nil
}

func (l log) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		if err := l.s.run(ctx, Operation{Name: "read", Key: stream}, func() error { return nil }); err != nil {
			yield(muster.Record{}, err)
			return
		}
		l.Log.Read(ctx, stream, after)(yield)
	}
}

func (l log) Tail(ctx context.Context, stream string, n int) (at muster.Pos, err error) {
	err = l.s.run(ctx, Operation{Name: "tail", Key: stream}, func() (err error) {
		at, err = l.Log.Tail(ctx, stream, n)
		return err
	})
	return at, err
}

func (l log) Watch(ctx context.Context, stream string) <-chan struct{} {
	l.s.watched(ctx, stream)
	return l.Log.Watch(ctx, stream)
}

type inbox struct {
	muster.Inbox
	s Store
}

func (i inbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	return i.s.run(ctx, Operation{Name: "mail", Key: string(box), Mail: m}, func() error {
		return i.Inbox.Put(ctx, box, m)
	})
}

func (i inbox) Peek(
	ctx context.Context, box muster.Name, after muster.Pos, most int,
) (ms []muster.Message, end muster.Pos, err error) {
	end = after
	err = i.s.run(ctx, Operation{Name: "peek", Key: string(box)}, func() (err error) {
		ms, end, err = i.Inbox.Peek(ctx, box, after, most)
		return err
	})
	return ms, end, err
}

func (i inbox) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	return i.s.run(ctx, Operation{Name: "drop", Key: string(box)}, func() error {
		return i.Inbox.Drop(ctx, box, before)
	})
}

func (i inbox) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	i.s.watched(ctx, "inbox/"+string(box))
	return i.Inbox.Watch(ctx, box)
}

type leases struct {
	muster.Leases
	s Store
}

func (l leases) Acquire(ctx context.Context, name string) (held muster.Lease, err error) {
	err = l.s.run(ctx, Operation{Name: "lease", Key: name}, func() (err error) {
		held, err = l.Leases.Acquire(ctx, name)
		return err
	})
	return held, err
}

func (l leases) Held(ctx context.Context, name string) (held bool, err error) {
	err = l.s.run(ctx, Operation{Name: "held", Key: name}, func() (err error) {
		held, err = l.Leases.Held(ctx, name)
		return err
	})
	return held, err
}
