package team_test

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"muster"
)

// tapped is a store that says what is done with it. before is called before an operation, which an error refuses; wrote
// is called after a put; around runs an operation, or not. An operation is one of get, put, delete and changes (key: the
// table, a slash, and the key of the document), append, read and tail (the stream), mail, peek and drop (the box), lease
// and held (its name), and watch (what is watched), which only before sees.
type tapped struct {
	muster.Store
	before func(ctx context.Context, op, key string, data []byte) error
	wrote  func(ctx context.Context, key string, data []byte)
	around func(o operation, do func() error) error
}

// operation is what is done with a tapped store.
type operation struct {
	name, key string
	data      []byte         // of a put or an append
	at        muster.Pos     // of an append
	mail      muster.Message // of a mail
}

// refusing is a store that calls refuse before each write of a table's document.
func refusing(s muster.Store, table string, refuse func(data []byte) error) tapped {
	return tapped{Store: s, before: func(_ context.Context, op, key string, data []byte) error {
		if op == "put" && strings.HasPrefix(key, table+"/") {
			return refuse(data)
		}
		return nil
	}}
}

// deaf is a store whose journal takes nothing while it is full.
func deaf(s muster.Store, full func() bool) tapped {
	return tapped{Store: s, before: func(_ context.Context, op, key string, _ []byte) error {
		if op == "append" && key == muster.StreamEvents && full() {
			return noRoom()
		}
		return nil
	}}
}

// run runs an operation.
func (s tapped) run(ctx context.Context, o operation, do func() error) error {
	if s.before != nil {
		if err := s.before(ctx, o.name, o.key, o.data); err != nil {
			return err
		}
	}
	if s.around != nil {
		return s.around(o, do)
	}
	return do()
}

// watched tells of a watch.
func (s tapped) watched(ctx context.Context, what string) {
	if s.before != nil {
		_ = s.before(ctx, "watch", what, nil)
	}
}

func (s tapped) Table(name string) muster.Table {
	return tappedTable{s.Store.Table(name), s, name + "/"}
}
func (s tapped) Log() muster.Log       { return tappedLog{s.Store.Log(), s} }
func (s tapped) Inbox() muster.Inbox   { return tappedInbox{s.Store.Inbox(), s} }
func (s tapped) Leases() muster.Leases { return tappedLeases{s.Store.Leases(), s} }

type tappedTable struct {
	muster.Table
	s    tapped
	name string
}

func (t tappedTable) Get(ctx context.Context, key string) (d muster.Doc, err error) {
	err = t.s.run(ctx, operation{name: "get", key: t.name + key}, func() (err error) {
		d, err = t.Table.Get(ctx, key)
		return err
	})
	return d, err
}

func (t tappedTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (rev muster.Rev, err error) {
	err = t.s.run(ctx, operation{name: "put", key: t.name + key, data: data}, func() (err error) {
		rev, err = t.Table.Put(ctx, key, data, at)
		return err
	})
	if err != nil {
		return muster.None, err
	}
	if t.s.wrote != nil {
		t.s.wrote(ctx, t.name+key, data)
	}
	return rev, nil
}

func (t tappedTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	return t.s.run(ctx, operation{name: "delete", key: t.name + key}, func() error { return t.Table.Delete(ctx, key, at) })
}

func (t tappedTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		var all []muster.Change
		err := t.s.run(ctx, operation{name: "changes", key: t.name}, func() error {
			for c, err := range t.Table.Changes(ctx, since) {
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			return nil
		})
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(muster.Change{}, err)
		}
	}
}

func (t tappedTable) Watch(ctx context.Context) <-chan struct{} {
	t.s.watched(ctx, t.name)
	return t.Table.Watch(ctx)
}

type tappedLog struct {
	muster.Log
	s tapped
}

func (l tappedLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (end muster.Pos, err error) {
	o := operation{name: "append", key: stream, data: bytes.Join(recs, nil), at: at}
	err = l.s.run(ctx, o, func() (err error) { end, err = l.Log.Append(ctx, stream, at, recs...); return err })
	if err != nil {
		return 0, err
	}
	return end, nil
}

func (l tappedLog) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		if err := l.s.run(ctx, operation{name: "read", key: stream}, func() error { return nil }); err != nil {
			yield(muster.Record{}, err)
			return
		}
		l.Log.Read(ctx, stream, after)(yield)
	}
}

func (l tappedLog) Tail(ctx context.Context, stream string, n int) (at muster.Pos, err error) {
	err = l.s.run(ctx, operation{name: "tail", key: stream}, func() (err error) { at, err = l.Log.Tail(ctx, stream, n); return err })
	return at, err
}

func (l tappedLog) Watch(ctx context.Context, stream string) <-chan struct{} {
	l.s.watched(ctx, stream)
	return l.Log.Watch(ctx, stream)
}

type tappedInbox struct {
	muster.Inbox
	s tapped
}

func (i tappedInbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	return i.s.run(ctx, operation{name: "mail", key: string(box), mail: m}, func() error { return i.Inbox.Put(ctx, box, m) })
}

func (i tappedInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) (ms []muster.Message, end muster.Pos, err error) {
	end = after
	err = i.s.run(ctx, operation{name: "peek", key: string(box)}, func() (err error) {
		ms, end, err = i.Inbox.Peek(ctx, box, after, most)
		return err
	})
	return ms, end, err
}

func (i tappedInbox) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	return i.s.run(ctx, operation{name: "drop", key: string(box)}, func() error { return i.Inbox.Drop(ctx, box, before) })
}

func (i tappedInbox) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	i.s.watched(ctx, "inbox/"+string(box))
	return i.Inbox.Watch(ctx, box)
}

type tappedLeases struct {
	muster.Leases
	s tapped
}

func (l tappedLeases) Acquire(ctx context.Context, name string) (held muster.Lease, err error) {
	err = l.s.run(ctx, operation{name: "lease", key: name}, func() (err error) { held, err = l.Leases.Acquire(ctx, name); return err })
	return held, err
}

func (l tappedLeases) Held(ctx context.Context, name string) (held bool, err error) {
	err = l.s.run(ctx, operation{name: "held", key: name}, func() (err error) { held, err = l.Leases.Held(ctx, name); return err })
	return held, err
}
