package teammate

import (
	"context"
	"fmt"
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
		l.OnlyOwn = func(role string) bool { return role == "coder" }
		l.create("")
		l.woken("a task of no role, for a role that takes only its own")
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

// Each ready task wants a teammate; more than that, or than there is room for, are not spawned.
func TestStaffing(t *testing.T) {
	task := func(id int, role string, more ...func(*muster.Task)) muster.Task {
		x := muster.Task{ID: muster.TaskID(id), Status: muster.Pending, ClaimRole: role}
		for _, f := range more {
			f(&x)
		}
		return x
	}
	of := func(name muster.Name) func(*muster.Task) {
		return func(x *muster.Task) { x.Owner, x.Status = name, muster.InProgress }
	}
	high := func(x *muster.Task) { x.Priority = 5 }
	waits := func(x *muster.Task) { x.BlockedBy = []muster.TaskID{99} }
	member := func(name muster.Name, role string, status muster.MemberStatus) muster.Member {
		return muster.Member{Name: name, Role: role, Status: status}
	}
	lead := member(muster.Lead, "lead", muster.Idle)
	for _, c := range []struct {
		name    string
		most    int
		tasks   []muster.Task
		members []muster.Member
		want    string
	}{
		{"nothing is ready", 4, []muster.Task{task(1, "", waits)}, nil, "[] [] false"},
		{"as many as are ready", 4, []muster.Task{task(1, ""), task(2, "writer")}, nil, "[coder writer] [] false"},
		{"as many as there is room for", 2, []muster.Task{task(1, ""), task(2, ""), task(3, "")}, nil,
			"[coder coder] [] true"},
		{"the highest first", 1, []muster.Task{task(1, ""), task(2, "writer", high)}, nil, "[writer] [] true"},
		{"the lead does not count", 1, []muster.Task{task(1, "")}, []muster.Member{lead}, "[coder] [] true"},
		{"one that is free takes it", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "writer", muster.Idle)}, "[] [] false"},
		{"one that was just spawned takes it", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[] [] false"},
		{"one that has left does not", 4, []muster.Task{task(1, "")},
			[]muster.Member{member("a", "coder", muster.Shutdown)}, "[coder] [] false"},
		{"one with a task does not", 4, []muster.Task{task(1, "", of("a")), task(2, "")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[coder] [] false"},
		{"tasks of a role choose first", 4, []muster.Task{task(1, ""), task(2, "writer")},
			[]muster.Member{member("a", "writer", muster.Idle)}, "[coder] [] false"},
		{"who is in the way leaves", 1, []muster.Task{task(1, "writer")},
			[]muster.Member{member("a", "coder", muster.Idle)}, "[] [a] true"},
		{"who works does not", 1, []muster.Task{task(1, "writer")},
			[]muster.Member{member("a", "coder", muster.Working)}, "[] [] true"},
		{"who is wanted does not", 1, []muster.Task{task(1, "writer"), task(2, "")},
			[]muster.Member{member("a", "coder", muster.Idle)}, "[] [] true"},
		{"nobody leaves for a role that somebody has", 2, []muster.Task{task(1, "writer", of("b")), task(2, "writer")},
			[]muster.Member{member("a", "coder", muster.Idle), member("b", "writer", muster.Working)}, "[] [] true"},
	} {
		s := newStaffing(c.most, c.tasks, c.members, nil)
		if got := fmt.Sprint(s.spawn, s.leave, s.isFull); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	// A role that takes only its own tasks is no help with a task of none.
	reads := func(t muster.Task, role string) bool { return t.ClaimRole != "" && t.RoleMay(role) }
	if s := newStaffing(4, []muster.Task{task(1, ""), task(2, "reviewer")}, nil, reads); fmt.Sprint(s.spawn) != "[reviewer]" {
		t.Errorf("spawned: %v", s.spawn)
	}
}
