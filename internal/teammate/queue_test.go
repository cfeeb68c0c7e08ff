package teammate

import (
	"context"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/journal"
	"muster/store/mem"
)

// line is a queue, and the places that a test has taken in it.
type line struct {
	*testing.T
	*Queue
	board  *board.Board
	places []<-chan struct{}
	leave  []func()
}

// queue runs a test with a queue that is served, in a bubble. The tasks are on the board first.
func queue(t *testing.T, tasks int, f func(l *line)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := mem.New()
		l := &line{T: t, board: board.New(store, journal.New(store.Log()))}
		l.Queue = NewQueue(l.board)
		for range tasks {
			l.create("")
		}
		go l.Serve(t.Context())
		synctest.Wait()
		f(l)
	})
}

func (l *line) create(role string) {
	l.Helper()
	if _, err := l.board.Create(l.Context(), board.Draft{Subject: "one", Role: role}); err != nil {
		l.Fatal(err)
	}
}

func (l *line) enter(role string) {
	p, leave := l.Enter(role)
	l.places, l.leave = append(l.places, p), append(l.leave, leave)
}

// woken fails the test unless the places with the numbers were called since the last time, and no other.
func (l *line) woken(what string, want ...int) {
	l.Helper()
	synctest.Wait()
	var got []int
	for i, p := range l.places {
		if len(p) > 0 {
			<-p
			got = append(got, i)
		}
	}
	if !slices.Equal(got, want) {
		l.Errorf("%s: called are %v, want %v", what, got, want)
	}
}

func TestQueueWakesAsManyAsThereAreTasks(t *testing.T) {
	queue(t, 0, func(l *line) {
		for range 1000 {
			l.enter("coder")
		}
		l.woken("no task")
		l.create("")
		l.create("")
		l.woken("two tasks", 0, 1)
		l.leave[0]() // it looked and did not take
		l.woken("one passed on", 2)
	})
}

// Who has left is not called, wherever in the queue it stood.
func TestQueueForgetsWhoLeft(t *testing.T) {
	queue(t, 0, func(l *line) {
		for i := range 3 {
			if l.enter("coder"); i != 1 {
				l.leave[i]()
				l.leave[i]() // again it does nothing
			}
		}
		l.create("")
		l.woken("one has stayed", 1)
	})
}

func TestQueueKeepsRolesApart(t *testing.T) {
	queue(t, 0, func(l *line) {
		l.enter("coder")
		l.enter("tester")
		l.create("tester")
		l.woken("a task for a tester", 1)
	})
}

// A task that is ready already is offered to who enters the queue. Who leaves twice takes nothing from the next one.
func TestQueueOffersToOneAtATime(t *testing.T) {
	queue(t, 1, func(l *line) {
		l.enter("coder")
		l.woken("the first", 0)
		l.enter("coder")
		l.enter("coder")
		l.woken("two more")
		l.leave[0]()
		l.woken("the first has left", 1)
		l.leave[0]()
		l.woken("and left again")
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
