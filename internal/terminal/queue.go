package terminal

import "sync"

// itemKind says how the text of an item is shown.
type itemKind int

const (
	none     itemKind = iota
	printed           // whole lines; they wait while a streamed line grows
	echoed            // what the user has entered, shown at once below the prompt
	thought           // a piece of what the model thinks, which ends with the next streamed or flushed text
	streamed          // a piece of streamed text
	flushed           // the streamed text is complete
)

// item is a text that waits to be shown above the prompt.
type item struct {
	kind itemKind
	text string
}

// queue is an unbounded first-in, first-out queue. Writers never block, because the goroutine that draws the
// screen is one of them. One goroutine reads: it waits on ready, then calls take.
type queue[T any] struct {
	ready chan struct{} // holds a token when there may be something to take

	mu     sync.Mutex
	items  []T
	closed bool
}

// newQueue returns an empty queue.
func newQueue[T any]() *queue[T] { return &queue[T]{ready: make(chan struct{}, 1)} }

// put appends an item. After close it does nothing.
func (q *queue[T]) put(i T) {
	q.mu.Lock()
	if !q.closed {
		q.items = append(q.items, i)
	}
	q.mu.Unlock()
	q.nudge()
}

// nudge makes the reader call take again. One token is enough, because take returns everything.
func (q *queue[T]) nudge() {
	select {
	case q.ready <- struct{}{}:
	default: // a token is there already
	}
}

// close says that no item follows. The items in the queue can still be taken.
func (q *queue[T]) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.nudge()
}

// take removes and returns all items, and reports whether none will follow.
func (q *queue[T]) take() (items []T, last bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, q.items = q.items, nil
	return items, q.closed
}

// keptEvents is how many events a reader still finds that comes back after the terminal has closed.
const keptEvents = 16

// deliverEvents moves events from a queue to a channel until the queue is closed and empty, then closes the
// channel. After done is closed it no longer waits for the reader: events beyond the channel's capacity are lost.
func deliverEvents(from *queue[Event], to chan<- Event, done <-chan struct{}) {
	defer close(to)
	for range from.ready {
		events, last := from.take()
		for _, e := range events {
			select {
			case to <- e:
				continue
			case <-done:
			}
			select {
			case to <- e:
			default:
				return
			}
		}
		if last {
			return
		}
	}
}
