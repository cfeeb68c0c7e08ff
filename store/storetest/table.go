package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"muster"
)

// doc returns a document with a number.
func doc(n int) []byte { return fmt.Appendf(nil, "{\"n\":%d}\n", n) }

// put writes a document at a revision, which must be its own.
func put(t *testing.T, tab muster.Table, key string, data []byte, at muster.Rev) muster.Rev {
	t.Helper()
	rev, err := tab.Put(t.Context(), key, data, at)
	ok(t, err)
	return rev
}

// get reads a document, which must be there.
func get(t *testing.T, tab muster.Table, key string) muster.Doc {
	t.Helper()
	d, err := tab.Get(t.Context(), key)
	ok(t, err)
	return d
}

var tableTests = []test{
	{"get returns what another handle put", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableMembers), open().Table(muster.TableMembers)
		rev := put(t, a, "alice", doc(1), muster.None)
		d := get(t, b, "alice")
		equal(t, "data", string(d.Data), string(doc(1)))
		equal(t, "key", d.Key, "alice")
		equal(t, "rev", d.Rev, rev)
		if rev == muster.None {
			t.Fatal("a document that exists has the rev None")
		}
	}},
	{"what was put is not the caller's slice", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableMembers)
		data := doc(1)
		put(t, a, "alice", data, muster.None)
		copy(data, "overwritten")
		equal(t, "data", string(get(t, a, "alice").Data), string(doc(1)))
	}},
	{"a missing document is not found", func(t *testing.T, open func() muster.Store) {
		_, err := open().Table(muster.TableMembers).Get(t.Context(), "nobody")
		wants(t, err, muster.ErrNotFound)
	}},
	{"create loses against what exists", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableMembers), open().Table(muster.TableMembers)
		put(t, a, "alice", doc(1), muster.None)
		_, err := b.Put(t.Context(), "alice", doc(2), muster.None)
		wants(t, err, muster.ErrStale)
		equal(t, "data", string(get(t, a, "alice").Data), string(doc(1)))
	}},
	{"put at an old rev is stale and changes nothing", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableMembers), open().Table(muster.TableMembers)
		old := put(t, a, "alice", doc(1), muster.None)
		now := put(t, b, "alice", doc(2), old)
		_, err := a.Put(t.Context(), "alice", doc(3), old)
		wants(t, err, muster.ErrStale)
		d := get(t, a, "alice")
		equal(t, "data", string(d.Data), string(doc(2)))
		equal(t, "rev", d.Rev, now)
	}},
	{"put at a rev of a missing document is stale", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableMembers)
		rev := put(t, a, "alice", doc(1), muster.None)
		ok(t, a.Delete(t.Context(), "alice", rev))
		_, err := a.Put(t.Context(), "alice", doc(2), rev)
		wants(t, err, muster.ErrStale)
		_, err = a.Get(t.Context(), "alice")
		wants(t, err, muster.ErrNotFound)
	}},
	{"delete removes at its rev only", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableMembers), open().Table(muster.TableMembers)
		old := put(t, a, "alice", doc(1), muster.None)
		now := put(t, a, "alice", doc(2), old)
		wants(t, b.Delete(t.Context(), "alice", old), muster.ErrStale)
		wants(t, b.Delete(t.Context(), "alice", muster.None), muster.ErrStale)
		ok(t, b.Delete(t.Context(), "alice", now))
		_, err := a.Get(t.Context(), "alice")
		wants(t, err, muster.ErrNotFound)
		put(t, a, "alice", doc(3), muster.None)
	}},
	{"documents and tables are apart", func(t *testing.T, open func() muster.Store) {
		s := open()
		put(t, s.Table(muster.TableMembers), "alice", doc(1), muster.None)
		put(t, s.Table(muster.TableMembers), "bob", doc(2), muster.None)
		put(t, s.Table(muster.TableRequests), "alice", doc(3), muster.None)
		put(t, s.Table(muster.TableTasks), "1", doc(4), muster.None)
		put(t, s.Table(muster.TableTasks), "meta", doc(5), muster.None)
		put(t, s.Table(muster.TableTeam), "run", doc(6), muster.None)
		put(t, s.Table(muster.TableHosts), "host-1", doc(7), muster.None)
		equal(t, "alice", string(get(t, s.Table(muster.TableMembers), "alice").Data), string(doc(1)))
		equal(t, "meta", string(get(t, s.Table(muster.TableTasks), "meta").Data), string(doc(5)))
		_, err := s.Table(muster.TableTasks).Get(t.Context(), "2")
		wants(t, err, muster.ErrNotFound)
	}},
	{"the data is the caller's", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableMembers)
		data := doc(1)
		put(t, a, "alice", data, muster.None)
		data[5] = '7'
		d := get(t, a, "alice")
		equal(t, "data", string(d.Data), string(doc(1)))
		d.Data[5] = '8'
		equal(t, "data", string(get(t, a, "alice").Data), string(doc(1)))
	}},
	{"a key that is a path is invalid", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableMembers)
		for _, key := range []string{"", ".", "..", "../x", "a/b", `a\b`, "a b", ".x", "-x"} {
			_, err := a.Put(t.Context(), key, doc(1), muster.None)
			wants(t, err, muster.ErrInvalid)
			_, err = a.Get(t.Context(), key)
			wants(t, err, muster.ErrInvalid)
			wants(t, a.Delete(t.Context(), key, muster.None), muster.ErrInvalid)
		}
	}},
	{"what is not JSON is invalid", func(t *testing.T, open func() muster.Store) {
		_, err := open().Table(muster.TableMembers).Put(t.Context(), "alice", []byte(`{"n":`), muster.None)
		wants(t, err, muster.ErrInvalid)
	}},
	{"an ended context does nothing", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableMembers)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := a.Put(ctx, "alice", doc(1), muster.None); !errors.Is(err, context.Canceled) {
			t.Fatalf("the error is %v", err)
		}
		_, err := a.Get(t.Context(), "alice")
		wants(t, err, muster.ErrNotFound)
	}},
	{"one of many puts at a rev wins", func(t *testing.T, open func() muster.Store) {
		const writers, rounds = 6, 5
		var tabs []muster.Table
		for range writers {
			tabs = append(tabs, open().Table(muster.TableTasks))
		}
		at := put(t, tabs[0], "1", doc(0), muster.None)
		for round := range rounds {
			var won atomic.Int32
			revs := make([]muster.Rev, writers)
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					rev, err := tabs[w].Put(t.Context(), "1", doc(1+round*writers+w), at)
					if err == nil {
						won.Add(1)
						revs[w] = rev
					} else if !errors.Is(err, muster.ErrStale) {
						t.Errorf("the error is %v", err)
					}
				})
			}
			all.Wait()
			equal(t, "winners", won.Load(), 1)
			now := get(t, tabs[0], "1").Rev
			for _, r := range revs {
				if r != muster.None {
					equal(t, "the winner's rev", now, r)
				}
			}
			at = now
		}
	}},
	{"read, add, put until it is not stale loses no addition", func(t *testing.T, open func() muster.Store) {
		const writers, each = 4, 5
		put(t, open().Table(muster.TableTeam), "run", doc(0), muster.None)
		var all sync.WaitGroup
		for range writers {
			tab := open().Table(muster.TableTeam)
			all.Go(func() {
				for done := 0; done < each; {
					d, err := tab.Get(t.Context(), "run")
					if err != nil {
						t.Error(err)
						return
					}
					var n int
					if _, err := fmt.Sscanf(string(d.Data), `{"n":%d}`, &n); err != nil {
						t.Error(err)
						return
					}
					_, err = tab.Put(t.Context(), "run", doc(n+1), d.Rev)
					if err == nil {
						done++
					} else if !errors.Is(err, muster.ErrStale) {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		equal(t, "sum", string(get(t, open().Table(muster.TableTeam), "run").Data), string(doc(writers*each)))
	}},
}
