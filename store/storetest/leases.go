package storetest

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"muster"
)

// held reports whether anyone has the lease.
func held(t *testing.T, l muster.Leases, name string) bool {
	t.Helper()
	yes, err := l.Held(t.Context(), name)
	ok(t, err)
	return yes
}

// acquire takes a lease, which must be free.
func acquire(t *testing.T, l muster.Leases, name string) muster.Lease {
	t.Helper()
	lease, err := l.Acquire(t.Context(), name)
	ok(t, err)
	return lease
}

var leaseTests = []test{
	{"one has it", func(t *testing.T, open func() muster.Store) {
		a, b := open().Leases(), open().Leases()
		equal(t, "held before", held(t, a, "host-1"), false)
		lease := acquire(t, a, "host-1")
		for _, l := range []muster.Leases{a, b} {
			_, err := l.Acquire(t.Context(), "host-1")
			wants(t, err, muster.ErrHeld)
			equal(t, "held", held(t, l, "host-1"), true)
			equal(t, "another one", held(t, l, "host-2"), false)
		}
		acquire(t, b, "host-2")
		select {
		case <-lease.Lost():
			t.Fatal("it is lost while it is held")
		default:
		}
		ok(t, lease.Release())
		<-lease.Lost()
		ok(t, lease.Release())
		equal(t, "held after", held(t, b, "host-1"), false)
		second := acquire(t, b, "host-1")
		ok(t, lease.Release())
		equal(t, "an old release frees nothing", held(t, a, "host-1"), true)
		ok(t, second.Release())
	}},
	{"the end of its process frees it", func(t *testing.T, open func() muster.Store) {
		a, b := open(), open().Leases()
		lease := acquire(t, a.Leases(), "host-1")
		ok(t, a.Close())
		<-lease.Lost()
		_, err := a.Leases().Acquire(t.Context(), "host-1") // nobody would release it
		wants(t, err, muster.ErrUnavailable)
		equal(t, "held", held(t, b, "host-1"), false)
		acquire(t, b, "host-1")
	}},
	{"asking never makes an acquire fail", func(t *testing.T, open func() muster.Store) {
		const askers, rounds = 3, 300
		done := make(chan struct{})
		var all sync.WaitGroup
		for range askers {
			l := open().Leases()
			all.Go(func() {
				for {
					select {
					case <-done:
						return
					default:
					}
					if _, err := l.Held(t.Context(), "host-1"); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		l, other := open().Leases(), open().Leases()
		for i := range rounds {
			lease, err := l.Acquire(t.Context(), "host-1")
			if err != nil {
				t.Errorf("round %d: %v", i, err)
				break
			}
			if !held(t, other, "host-1") {
				t.Error("it is held and nobody says so")
			}
			ok(t, lease.Release())
		}
		close(done)
		all.Wait()
	}},
	{"of many at once one gets it", func(t *testing.T, open func() muster.Store) {
		const racers = 6
		var ls []muster.Leases
		for range racers {
			ls = append(ls, open().Leases())
		}
		for range 20 {
			var got atomic.Pointer[muster.Lease]
			var won atomic.Int32
			var all sync.WaitGroup
			for _, l := range ls {
				all.Go(func() {
					lease, err := l.Acquire(t.Context(), "host-1")
					if err == nil {
						won.Add(1)
						got.Store(&lease)
					} else if !errors.Is(err, muster.ErrHeld) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			equal(t, "winners", won.Load(), 1)
			ok(t, (*got.Load()).Release())
		}
	}},
	{"a name that is a path is invalid", func(t *testing.T, open func() muster.Store) {
		l := open().Leases()
		for _, name := range []string{"", "..", "../x", "a/b", ".x", "-x"} {
			_, err := l.Acquire(t.Context(), name)
			wants(t, err, muster.ErrInvalid)
			_, err = l.Held(t.Context(), name)
			wants(t, err, muster.ErrInvalid)
		}
	}},
}
