package team

import (
	"context"
	"iter"
	"sync"

	"muster"
	"muster/journal"
	"muster/loop"
)

// Event is what Subscribe delivers: a TurnEvent, a CheckEvent, a StateEvent, Missed or Failed.
type Event interface{ event() }

type (
	// TurnEvent is what happens in a turn of a member: text and thinking as they stream in, and tool calls with their
	// progress. It is not recorded anywhere. Of a member of another process there are only TextDelta, ReplyDiscarded,
	// TurnEnded without its reply, and ToolProgress without its call; some of them may be missing.
	TurnEvent struct {
		Member   muster.Name
		Event    loop.Event
		IsRemote bool // the member runs in another process
	}
	// CheckEvent says which test a check runs now, or has run last. Task is the one that would land, 0 for a check of
	// the base. Like a TurnEvent it is recorded nowhere, and some may be missing.
	CheckEvent struct {
		Task muster.TaskID
		Test string
	}
	// StateEvent is a change of the team's state, of whichever process: an entry of the journal. Where the journal
	// could not be written, Entry has the event all the same and its Pos is 0.
	StateEvent struct{ Entry journal.Entry }
	// Missed says that a subscriber was too slow and that so many turn events were dropped here. State events are not
	// dropped.
	Missed struct{ Count int }
	// Failed says that state events cannot be read. An error whose code is Corrupt concerns one entry. After any other
	// no state event follows.
	Failed struct{ Err error }
)

func (TurnEvent) event()  {}
func (CheckEvent) event() {}
func (StateEvent) event() {}
func (Missed) event()     {}
func (Failed) event()     {}

// subscriberBuffer is how many turn events a subscriber may be behind before some are dropped.
const subscriberBuffer = 4096

// Subscribe returns a channel of what happens in the team from now on, in all of its processes. Use Events to read
// earlier state events. The order between turn events and state events is not defined. The channel is closed after ctx
// has ended. Subscribe may be called at any time, from any goroutine.
func (t *Team) Subscribe(ctx context.Context) <-chan Event {
	sub := &subscriber{wake: make(chan struct{}, 1)}
	t.subscribers.Store(sub, nil)
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
	sending.Go(func() { followWords(ctx, t, send) })
	go func() {
		sending.Wait()
		<-ctx.Done()
		t.subscribers.Delete(sub)
		close(out)
	}()
	return out
}

// subscriber holds the events that one reader has not taken yet.
type subscriber struct {
	wake   chan struct{} // holds one token: there is something to take
	mu     sync.Mutex    // guards the following
	events []Event
	missed int // turn events that were dropped
}

// publish gives the event to every subscriber. It never blocks, because a member's turn calls it.
func (t *Team) publish(e Event) {
	for sub := range t.subscribers.Range {
		sub.(*subscriber).add(e)
	}
}

// add adds an event. A reader that is too far behind misses a turn event, and a state event never.
func (s *subscriber) add(e Event) {
	_, isState := e.(StateEvent)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.events) < subscriberBuffer || isState {
		s.events = append(s.events, e)
	} else {
		s.missed++
	}
	wake(s.wake)
}

// take returns the events since the last call. Missed comes last, where the dropped events would have been.
func (s *subscriber) take() []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := s.events
	if s.missed > 0 {
		events = append(events, Missed{s.missed})
	}
	s.events, s.missed = nil, 0
	return events
}

// wake puts a token into a channel that holds one, unless it has it already.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
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
