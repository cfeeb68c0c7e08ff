package storetest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"testing"

	"muster"
)

// FailEach calls act again and again. In the first call the first operation on the store fails, in the second one the
// second, and so on until act comes to its end without a failure. act makes a state, wraps its store, works on that and
// returns the error of its work. FailEach fails the test when that is not the error of the store, which has the code
// Unavailable: then the failure was hidden. Only operations for which counts returns true fail. Their names are such as
// "put tasks/1", "get tasks/1", "delete tasks/1", "list tasks", "append events", "read events", "put mail", "peek mail"
// and "drop mail".
func FailEach(
	t *testing.T, counts func(op string) bool, act func(t *testing.T, wrap func(muster.Store) muster.Store) error,
) {
	t.Helper()
	for n := 1; ; n++ {
		f := &failure{counts: counts, left: n}
		err := act(t, func(s muster.Store) muster.Store { return faulty{s, f} })
		switch {
		case f.failed != "" && !errors.Is(err, muster.ErrUnavailable):
			t.Errorf("operation %d, %s, has failed, and the error is: %v", n, f.failed, err)
		case f.failed == "" && (err != nil || n == 1):
			t.Errorf("without a failure there is %v after %d operations", err, n-1)
		}
		if f.failed == "" {
			return
		}
	}
}

// failure says which operation fails.
type failure struct {
	counts func(op string) bool

	mu     sync.Mutex
	left   int    // how many operations there are up to the one that fails
	failed string // that one, once it has come
}

// of returns the error of an operation.
func (f *failure) of(op string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.counts(op) {
		return nil
	}
	if f.left--; f.left != 0 {
		return nil
	}
	f.failed = op
	return muster.Errorf(muster.Unavailable, "the disk is gone")
}

// faulty is a store of which one operation fails.
type faulty struct {
	muster.Store
	f *failure
}

func (s faulty) Table(name string) muster.Table { return faultyTable{s.Store.Table(name), s.f, name} }
func (s faulty) Log() muster.Log                { return faultyLog{s.Store.Log(), s.f} }
func (s faulty) Inbox() muster.Inbox            { return faultyInbox{s.Store.Inbox(), s.f} }

type faultyTable struct {
	muster.Table
	f    *failure
	name string
}

func (x faultyTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := x.f.of("get " + x.name + "/" + key); err != nil {
		return muster.Doc{}, err
	}
	return x.Table.Get(ctx, key)
}

func (x faultyTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := x.f.of("put " + x.name + "/" + key); err != nil {
		return muster.None, err
	}
	return x.Table.Put(ctx, key, data, at)
}

func (x faultyTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	if err := x.f.of("delete " + x.name + "/" + key); err != nil {
		return err
	}
	return x.Table.Delete(ctx, key, at)
}

func (x faultyTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	if err := x.f.of("list " + x.name); err != nil {
		return func(yield func(muster.Change, error) bool) { yield(muster.Change{}, err) }
	}
	return x.Table.Changes(ctx, since)
}

type faultyLog struct {
	muster.Log
	f *failure
}

func (x faultyLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if err := x.f.of("append " + stream); err != nil {
		return 0, err
	}
	return x.Log.Append(ctx, stream, at, recs...)
}

func (x faultyLog) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	if err := x.f.of("read " + stream); err != nil {
		return func(yield func(muster.Record, error) bool) { yield(muster.Record{}, err) }
	}
	return x.Log.Read(ctx, stream, after)
}

type faultyInbox struct {
	muster.Inbox
	f *failure
}

func (x faultyInbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	if err := x.f.of("put mail"); err != nil {
		return err
	}
	return x.Inbox.Put(ctx, box, m)
}

func (x faultyInbox) Peek(
	ctx context.Context, box muster.Name, after muster.Pos, most int,
) ([]muster.Message, muster.Pos, error) {
	if err := x.f.of("peek mail"); err != nil {
		return nil, after, err
	}
	return x.Inbox.Peek(ctx, box, after, most)
}

func (x faultyInbox) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	if err := x.f.of("drop mail"); err != nil {
		return err
	}
	return x.Inbox.Drop(ctx, box, before)
}
