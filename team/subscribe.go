package team

import (
	"context"
	"maps"
	"slices"
	"sync"

	"muster"
	"muster/journal"
	"muster/loop"
)

// Event is what Subscribe delivers: a TurnEvent, a StateEvent, Missed or Failed.
type Event interface{ event() }

type (
	// TurnEvent is what happens in a turn of a member of this process: text and thinking as they stream in, and tool
	// calls with their progress. It is not recorded anywhere.
	TurnEvent struct {
		Member muster.Name
		Event  loop.Event
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
func (StateEvent) event() {}
func (Missed) event()     {}
func (Failed) event()     {}

// subscriberBuffer is how many turn events a subscriber may be behind before some are dropped.
const subscriberBuffer = 4096

// Subscribe returns a channel of what happens in the team from now on. Turn events are those of members that run in
// this process. State events are those of all processes; use Events to read earlier ones. The order between turn events
// and state events is not defined. The channel is closed after ctx has ended. Subscribe may be called at any time, from
// any goroutine.
func (t *Team) Subscribe(ctx context.Context) <-chan Event {
	sub := &subscriber{wake: make(chan struct{}, 1)}
	t.subscribers.add(sub)
	out := make(chan Event)
	from, err := t.Journal().Tail(ctx, 0)
	var sending sync.WaitGroup
	send := func(e Event) bool {
		select {
		case out <- e:
			return true
		case <-ctx.Done():
			return false
		}
	}
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
		for {
			for _, e := range sub.take() {
				if !send(e) {
					return
				}
			}
			select {
			case <-sub.wake:
			case <-ctx.Done():
				return
			}
		}
	})
	go func() {
		sending.Wait()
		<-ctx.Done()
		t.subscribers.remove(sub)
		close(out)
	}()
	return out
}

// subscribers are those who are told the events of this process.
type subscribers struct {
	mu  sync.Mutex
	all map[*subscriber]bool
}

func (s *subscribers) add(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[*subscriber]bool{}
	}
	s.all[sub] = true
}

func (s *subscribers) remove(sub *subscriber) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.all, sub)
}

// publish gives the event to every subscriber. It never blocks, because a member's turn calls it.
func (s *subscribers) publish(e Event) {
	s.mu.Lock()
	all := slices.Collect(maps.Keys(s.all))
	s.mu.Unlock()
	for _, sub := range all {
		sub.put(e)
	}
}

// subscriber holds the events that one reader has not taken yet.
type subscriber struct {
	wake chan struct{} // holds one token: there is something to take

	mu     sync.Mutex
	events []Event
	missed int
}

// put adds an event, or drops it where the subscriber is too far behind.
func (s *subscriber) put(e Event) {
	s.mu.Lock()
	if _, isState := e.(StateEvent); len(s.events) < subscriberBuffer || isState {
		s.events = append(s.events, e)
	} else {
		s.missed++
	}
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
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
