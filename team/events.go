package team

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/live"
	"muster/journal"
	"muster/loop"
)

// Event is what Subscribe delivers: a TurnEvent, a CheckEvent, a StateEvent, Missed or Failed.
type Event interface{ event() }

type (
	// TurnEvent is what happens in a turn of a member: text and thinking as they stream in, and tool calls with their
	// progress. It is not recorded anywhere. Of a member of another process there are only TextDelta, ThinkingDelta,
	// ReplyDiscarded, TurnEnded without its reply, and ToolProgress without its call; some of them may be missing.
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

func (TurnEvent) event() {}

func (CheckEvent) event() {}

func (StateEvent) event() {}

func (Missed) event() {}

func (Failed) event() {}

// subscriberBuffer is how many turn events a subscriber may be behind before some are dropped.
const subscriberBuffer = 4096

// subscriber holds the events that one reader has not taken yet.
type subscriber struct {
	wake   chan struct{} // holds one token: there is something to take
	mu     sync.Mutex    // guards the following
	events []Event
	missed int // turn events that were dropped
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

// subscribers are those who are told the events of this process. The zero value is ready.
type subscribers struct {
	all   sync.Map               // of *subscriber
	words atomic.Pointer[string] // the file of share
}

func (s *subscribers) add() *subscriber {
	sub := &subscriber{wake: make(chan struct{}, 1)}
	s.all.Store(sub, nil)
	return sub
}

// publish gives the event to every subscriber. It never blocks, because a member's turn calls it.
func (s *subscribers) publish(e Event) {
	for sub := range s.all.Range {
		sub.(*subscriber).add(e)
	}
}

// wordsInterval is the time for which words are collected before they are written for other processes.
const wordsInterval = 50 * time.Millisecond

// share writes what members of this process say, while it streams in, for the faces of other processes, until ctx ends.
// It is a subscriber like any other: the members never wait for it, and where it is too slow, words are missing.
func (s *subscribers) share(ctx context.Context, dir string) {
	sub := s.add()
	defer s.all.Delete(sub)
	w := live.NewWriter(dir)
	defer func() { _ = w.Close() }() // a file that stays is removed later
	for {
		select {
		case <-ctx.Done():
			return
		case <-sub.wake:
		}
		// What has collected since the last write goes into the file at once.
		var pieces []live.Piece
		for _, e := range sub.take() {
			switch e := e.(type) {
			case TurnEvent:
				if p, ok := pieceOf(e); ok {
					pieces = append(pieces, p)
				}
			case CheckEvent:
				pieces = append(pieces, live.Piece{Kind: live.Test, Task: e.Task, Text: e.Test})
			}
		}
		if len(pieces) == 0 {
			continue
		}
		if w.Write(pieces) != nil {
			return // the disk is full, for one: faces of other processes show whole replies
		}
		// The followers of this process leave its own file out: they have its words already.
		path := w.Path()
		s.words.Store(&path)
		if !wait(ctx, wordsInterval) {
			return
		}
	}
}

func pieceOf(e TurnEvent) (p live.Piece, ok bool) {
	p.Member = e.Member
	// Whole replies and calls of tools are in the transcript, and need not be streamed.
	switch e := e.Event.(type) {
	case loop.TextDelta:
		p.Kind, p.Part, p.Text = live.Text, e.Part, e.Text
	case loop.ThinkingDelta:
		p.Kind, p.Part, p.Text = live.Think, e.Part, e.Text
	case loop.ReplyDiscarded:
		p.Kind = live.Again
	case loop.TurnEnded:
		p.Kind = live.End
	case loop.ToolProgress:
		p.Kind, p.Text = live.Progress, e.Text
	default:
		return p, false
	}
	return p, true
}

// follow sends what members of other processes say, until ctx ends.
func (s *subscribers) follow(ctx context.Context, dir string, send func(Event) bool) {
	isOwn := func(path string) bool {
		own := s.words.Load()
		return own != nil && *own == path
	}
	for p := range live.Follow(ctx, dir, isOwn) {
		// A test belongs to a check, and not to a turn.
		if p.Kind == live.Test {
			if !send(CheckEvent{Task: p.Task, Test: p.Text}) {
				return
			}
			continue
		}
		e := TurnEvent{Member: p.Member, IsRemote: true, Event: eventOf(p)}
		if e.Event != nil && !send(e) {
			return
		}
	}
}

// eventOf returns the event of a piece that pieceOf has made, and nil for one of a newer program.
func eventOf(p live.Piece) loop.Event {
	switch p.Kind {
	case live.Text:
		return loop.TextDelta{Part: p.Part, Text: p.Text}
	case live.Think:
		return loop.ThinkingDelta{Part: p.Part, Text: p.Text}
	case live.Again:
		return loop.ReplyDiscarded{}
	case live.End:
		return loop.TurnEnded{}
	case live.Progress:
		return loop.ToolProgress{Text: p.Text}
	}
	return nil
}
