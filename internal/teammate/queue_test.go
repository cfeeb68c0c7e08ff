package teammate

import (
	"context"
	"iter"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/store/mem"
)

// turns counts who was woken.
func turns(places []<-chan struct{}) (n int) {
	for _, p := range places {
		select {
		case <-p:
			n++
		default:
		}
	}
	return n
}

func TestQueueWakesAsManyAsThereAreTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		b := board.New(store, journal.New(store.Log()))
		q := NewQueue(b)
		go q.Serve(t.Context())
		var places []<-chan struct{}
		var leave []func()
		for range 1000 {
			p, l := q.Enter("coder")
			places, leave = append(places, p), append(leave, l)
		}
		synctest.Wait()
		if n := turns(places); n != 0 {
			t.Fatalf("%d woken with no task", n)
		}
		for _, subject := range []string{"one", "two"} {
			if _, err := b.Create(t.Context(), board.Draft{Subject: subject}); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if n := turns(places); n != 2 {
			t.Fatalf("%d woken for two tasks", n)
		}
		leave[0]() // it looked and did not take: the next one's turn
		synctest.Wait()
		if n := turns(places); n != 1 {
			t.Fatalf("%d woken after one passed on", n)
		}
	})
}

// Who has left is not called, wherever in the queue it stood.
func TestQueueForgetsWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		b := board.New(store, journal.New(store.Log()))
		q := NewQueue(b)
		go q.Serve(t.Context())
		var places []<-chan struct{}
		for i := range 3 {
			p, leave := q.Enter("coder")
			if places = append(places, p); i != 1 {
				leave()
				leave() // again it does nothing
			}
		}
		if _, err := b.Create(t.Context(), board.Draft{Subject: "one"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if turns(places[1:2]) != 1 || turns(places) != 0 {
			t.Fatal("the task must wake the one that stayed")
		}
	})
}

func TestQueueKeepsRolesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		b := board.New(store, journal.New(store.Log()))
		q := NewQueue(b)
		go q.Serve(t.Context())
		coder, _ := q.Enter("coder")
		tester, _ := q.Enter("tester")
		if _, err := b.Create(t.Context(), board.Draft{Subject: "probe", Role: "tester"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if turns([]<-chan struct{}{coder}) != 0 || turns([]<-chan struct{}{tester}) != 1 {
			t.Fatal("the tester's task must wake the tester alone")
		}
	})
}

// A task that is ready already is offered to who enters the queue. Who leaves twice takes nothing from the next one.
func TestQueueOffersToOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		b := board.New(store, journal.New(store.Log()))
		if _, err := b.Create(t.Context(), board.Draft{Subject: "one"}); err != nil {
			t.Fatal(err)
		}
		q := NewQueue(b)
		go q.Serve(t.Context())
		synctest.Wait()
		var places []<-chan struct{}
		var leave []func()
		for i := range 3 {
			p, l := q.Enter("coder")
			places, leave = append(places, p), append(leave, l)
			if synctest.Wait(); turns(places) != 1-min(i, 1) {
				t.Fatalf("%d are in the queue, and the task was offered otherwise", i+1)
			}
		}
		leave[0]()
		synctest.Wait()
		leave[0]()
		synctest.Wait()
		if turns(places[1:2]) != 1 || turns(places) != 0 {
			t.Error("the task is offered to two at a time")
		}
	})
}

// A board that cannot be read now is read again, though nobody says when it can. It is read for who waits only.
func TestQueueReadsAgainWhatItCouldNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		var down, looked atomic.Int64 // looks that fail from now on; looks
		b := board.New(failing{store, &down, &looked}, journal.New(store.Log()))
		q := NewQueue(b)
		if _, err := b.Create(t.Context(), board.Draft{Subject: "one"}); err != nil {
			t.Fatal(err)
		}
		down.Store(3)
		coder, leave := q.Enter("coder")
		began := time.Now()
		go q.Serve(t.Context())
		if <-coder; down.Load() > 0 || time.Since(began) > 10*passOn {
			t.Errorf("called after %v", time.Since(began))
		}
		if !q.offerAll(t.Context()) {
			t.Error("it is read again though nothing has failed")
		}
		leave()
		synctest.Wait()
		before := looked.Load()
		if _, err := board.New(store, journal.New(store.Log())).Create(t.Context(), board.Draft{Subject: "two"}); err != nil {
			t.Fatal(err)
		}
		if synctest.Wait(); looked.Load() != before {
			t.Error("it is read though nobody waits")
		}
	})
}

// failing is a store that cannot list its documents down times.
type failing struct {
	muster.Store
	down, looked *atomic.Int64
}

func (f failing) Table(name string) muster.Table { return failingTable{f.Store.Table(name), f} }

type failingTable struct {
	muster.Table
	f failing
}

func (x failingTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	x.f.looked.Add(1)
	if x.f.down.Load() > 0 {
		x.f.down.Add(-1)
		return func(yield func(muster.Change, error) bool) { yield(muster.Change{}, errDisk) }
	}
	return x.Table.Changes(ctx, since)
}
