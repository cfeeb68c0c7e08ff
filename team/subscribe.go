package team

import (
	"context"
	"iter"
	"sync"

	"muster"
	"muster/journal"
)

// Subscribe returns a channel of what happens in the team from now on, in all of its processes. Use Events to read
// earlier state events. The order between turn events and state events is not defined. The channel is closed after ctx
// has ended. Subscribe may be called at any time, from any goroutine.
func (t *Team) Subscribe(ctx context.Context) <-chan Event {
	sub := t.listeners.add()
	out := make(chan Event)
	from, err := t.Journal().Tail(ctx, 0) // before it returns, so that nothing that follows is missed
	send := func(e Event) bool {
		select {
		case out <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
	var sending sync.WaitGroup
	// Two goroutines, because each waits for another source. The journal may be slow to read, and text that streams
	// must not wait for it.
	sending.Go(func() {
		if err != nil {
			send(Failed{err})
			return
		}
		for e, err := range t.Journal().Follow(ctx, from) {
			var next Event = StateEvent{e}
			if err != nil {
				next = Failed{err}
			}
			if !send(next) {
				return
			}
		}
	})
	sending.Go(func() {
		for ctx.Err() == nil {
			for _, e := range sub.take() {
				send(e)
			}
			select {
			case <-sub.wake:
			case <-ctx.Done():
			}
		}
	})
	sending.Go(func() { t.listeners.follow(ctx, t.services().Paths().Live(), send) })
	go func() {
		sending.Wait()
		<-ctx.Done()
		t.listeners.all.Delete(sub)
		close(out)
	}()
	return out
}

// Events yields what happens in the team, in one order, from the first event after the place: 0 is the beginning of all
// runs that the store has seen. At the end it waits for more; it ends, without an error, when ctx does. The package
// journal lists the kinds and their fields.
//
// The Pos of an entry is all that a reader keeps: it may be stored, and Events goes on from there, in this process or
// in another. A slow reader is only late. An error whose code is Corrupt concerns the one entry it comes with, whose
// Pos is good, and the sequence goes on; any other ends it.
//
// It may be called at any time, from any goroutine, any number of times, also while Run runs in another.
func (t *Team) Events(ctx context.Context, after muster.Pos) iter.Seq2[journal.Entry, error] {
	return t.Journal().Follow(ctx, after)
}
