package terminal

import "sync"

type kind int

const (
	printed  kind = iota // whole lines, which wait while a streamed line grows
	echoed               // whole lines, at once: what the user entered or asked for
	streamed             // a piece of streamed text
	flushed              // the streamed text is complete
)

type item struct {
	kind kind
	text string
}

// queue is what waits to be printed. It never blocks a writer.
type queue struct {
	ready chan struct{} // holds a token when there may be something to take

	mu     sync.Mutex
	items  []item
	closed bool
}

func newQueue() *queue { return &queue{ready: make(chan struct{}, 1)} }

func (q *queue) put(i item) {
	q.mu.Lock()
	if !q.closed {
		q.items = append(q.items, i)
	}
	q.mu.Unlock()
	q.nudge()
}

func (q *queue) nudge() {
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.nudge()
}

func (q *queue) ended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed
}

// take gives what waits, and whether nothing will follow.
func (q *queue) take() ([]item, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items := q.items
	q.items = nil
	return items, q.closed
}

// eventsKept are for a reader who comes back after the terminal has closed.
const eventsKept = 16

// mailbox carries events to a reader who may be slow: the model must never wait for it.
type mailbox struct {
	out chan Event

	mu     sync.Mutex
	events []Event
	gone   bool // Closed was put
	wake   chan struct{}
	ended  chan struct{}
}

func newMailbox() *mailbox {
	m := &mailbox{out: make(chan Event, eventsKept), wake: make(chan struct{}, 1), ended: make(chan struct{})}
	go m.carry()
	return m
}

func (m *mailbox) put(e Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := e.(Closed); ok {
		if m.gone {
			return
		}
		m.gone = true
	}
	m.events = append(m.events, e)
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// close ends the mailbox. What the reader has not taken yet is left in the channel, as far as it holds it.
func (m *mailbox) close() { close(m.ended) }

func (m *mailbox) carry() {
	defer close(m.out)
	for {
		e, ok := m.next()
		if !ok {
			return
		}
		select {
		case m.out <- e:
		case <-m.ended:
			select {
			case m.out <- e:
			default:
				return
			}
		}
	}
}

// next waits for an event; false when there will be none.
func (m *mailbox) next() (Event, bool) {
	for ended := false; ; {
		m.mu.Lock()
		if len(m.events) > 0 {
			e := m.events[0]
			m.events = m.events[1:]
			m.mu.Unlock()
			return e, true
		}
		m.mu.Unlock()
		if ended {
			return nil, false
		}
		select {
		case <-m.wake:
		case <-m.ended:
			ended = true // look once more
		}
	}
}
