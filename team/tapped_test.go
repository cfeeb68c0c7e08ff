package team_test

import (
	"bytes"
	"context"
	"iter"
	"strings"

	"muster"
)

// tapped is a store that says what is done with it. before is called before an operation, which an error refuses; wrote
// is called after a put. An operation is one of get, put and changes (key: the table, a slash, and the key of the
// document), append (the stream), mail and peek (the box), lease (its name), and watch (what is watched).
type tapped struct {
	muster.Store
	before func(ctx context.Context, op, key string, data []byte) error
	wrote  func(ctx context.Context, key string, data []byte)
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

func (s tapped) tap(ctx context.Context, op, key string, data []byte) error {
	if s.before == nil {
		return nil
	}
	return s.before(ctx, op, key, data)
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

func (t tappedTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.s.tap(ctx, "get", t.name+key, nil); err != nil {
		return muster.Doc{}, err
	}
	return t.Table.Get(ctx, key)
}

func (t tappedTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := t.s.tap(ctx, "put", t.name+key, data); err != nil {
		return muster.None, err
	}
	rev, err := t.Table.Put(ctx, key, data, at)
	if err == nil && t.s.wrote != nil {
		t.s.wrote(ctx, t.name+key, data)
	}
	return rev, err
}

func (t tappedTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	if err := t.s.tap(ctx, "changes", t.name, nil); err != nil {
		return func(yield func(muster.Change, error) bool) { yield(muster.Change{}, err) }
	}
	return t.Table.Changes(ctx, since)
}

func (t tappedTable) Watch(ctx context.Context) <-chan struct{} {
	_ = t.s.tap(ctx, "watch", t.name, nil)
	return t.Table.Watch(ctx)
}

type tappedLog struct {
	muster.Log
	s tapped
}

func (l tappedLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if err := l.s.tap(ctx, "append", stream, bytes.Join(recs, nil)); err != nil {
		return 0, err
	}
	return l.Log.Append(ctx, stream, at, recs...)
}

func (l tappedLog) Watch(ctx context.Context, stream string) <-chan struct{} {
	_ = l.s.tap(ctx, "watch", stream, nil)
	return l.Log.Watch(ctx, stream)
}

type tappedInbox struct {
	muster.Inbox
	s tapped
}

func (i tappedInbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	if err := i.s.tap(ctx, "mail", string(box), nil); err != nil {
		return err
	}
	return i.Inbox.Put(ctx, box, m)
}

func (i tappedInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, limit int) ([]muster.Message, muster.Pos, error) {
	if err := i.s.tap(ctx, "peek", string(box), nil); err != nil {
		return nil, after, err
	}
	return i.Inbox.Peek(ctx, box, after, limit)
}

func (i tappedInbox) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	_ = i.s.tap(ctx, "watch", "inbox/"+string(box), nil)
	return i.Inbox.Watch(ctx, box)
}

type tappedLeases struct {
	muster.Leases
	s tapped
}

func (l tappedLeases) Acquire(ctx context.Context, name string) (muster.Lease, error) {
	if err := l.s.tap(ctx, "lease", name, nil); err != nil {
		return nil, err
	}
	return l.Leases.Acquire(ctx, name)
}
