package teammate

import (
	"testing"
	"testing/synctest"

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
