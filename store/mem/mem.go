// Package mem is the state contracts in memory: the twin of store/file for tests and for teams that need not outlive
// their process. It starts no goroutine, so it works inside a testing/synctest bubble.
package mem

import (
	"context"
	"regexp"
	"sync"

	"muster"
)

// Store is one handle on a state. It implements muster.Store.
type Store struct {
	s *state

	mu    sync.Mutex
	held  map[*lease]bool
	ended bool
}

// state is what the handles share.
type state struct {
	mu      sync.Mutex
	tables  map[string]*table
	streams map[string]*stream
	boxes   map[muster.Name]*box
	leases  map[string]*lease
}

// New makes an empty state and the first handle on it.
func New() *Store {
	return (&state{
		tables:  map[string]*table{},
		streams: map[string]*stream{},
		boxes:   map[muster.Name]*box{},
		leases:  map[string]*lease{},
	}).handle()
}

// Handle makes one more handle on the same state, as another process would have it.
func (s *Store) Handle() *Store { return s.s.handle() }

// handle makes a handle on the state.
func (st *state) handle() *Store { return &Store{s: st, held: map[*lease]bool{}} }

// Table returns the table of that name.
func (s *Store) Table(name string) muster.Table {
	s.s.mu.Lock()
	defer s.s.mu.Unlock()
	t := s.s.tables[name]
	if t == nil {
		t = &table{st: s.s, name: name, docs: map[string]entry{}}
		s.s.tables[name] = t
	}
	return t
}

// Log returns the streams.
func (s *Store) Log() muster.Log { return logs{s.s} }

// Inbox returns the boxes.
func (s *Store) Inbox() muster.Inbox { return inbox{s.s} }

// Leases returns the leases; what this handle holds ends with Close.
func (s *Store) Leases() muster.Leases { return leases{s} }

// Close releases the leases that this handle holds. The state lives on in the other handles.
func (s *Store) Close() error {
	s.mu.Lock()
	held := s.held
	s.held, s.ended = map[*lease]bool{}, true
	s.mu.Unlock()
	for l := range held {
		l.end()
	}
	return nil
}

// hints are the watchers of one thing. Their owner's lock guards them.
type hints map[chan struct{}]struct{}

// watch registers a watcher until ctx ends; then its channel is closed. mu guards h.
func (h hints) watch(ctx context.Context, mu *sync.Mutex) <-chan struct{} {
	ch := make(chan struct{}, 1)
	mu.Lock()
	h[ch] = struct{}{}
	mu.Unlock()
	context.AfterFunc(ctx, func() {
		mu.Lock()
		defer mu.Unlock()
		delete(h, ch)
		close(ch)
	})
	return ch
}

// tell gives every watcher a hint; one that has not taken the last one needs no other.
func (h hints) tell() {
	for ch := range h {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// The keys of documents and the names of streams, boxes and leases are those that store/file can have as file names.
var nameRule = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$`)

// checkName refuses the same names as the file engine does.
func checkName(what, name string) error {
	if !nameRule.MatchString(name) {
		return muster.Errorf(muster.Invalid, "%q cannot be %s: use letters, digits, dots, hyphens and underscores",
			name, what)
	}
	return nil
}
