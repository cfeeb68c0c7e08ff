package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"muster"
	"muster/internal/face"
)

// The stream gathers what happens within this time into one message, and has at most so many lines in one: what was
// missed for a night comes in pieces.
const (
	gathering   = 100 * time.Millisecond
	mostInBatch = 500
)

// stream writes one page's messages. A message with events has as its id the position after all words of its last
// event, so a page that goes on from there misses none and gets none twice.
type stream struct {
	server *Server
	w      http.ResponseWriter
	flush  func() error
	batch  []face.Event // what was not sent yet, in whole events
	whole  int          // how many of batch belong to events that are there with all their words
	alive  string       // which members live, as the page was last told
	spoken []piece      // of the member that the page looks at
}

// events streams what happens after a position. It ends with the request, and when the journal cannot be read any more.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	after, err := position(r)
	if err != nil {
		refuse(w, http.StatusBadRequest, muster.PlainText(err))
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out := &stream{server: s, w: w, flush: http.NewResponseController(w).Flush}
	ctx, stop := context.WithCancel(r.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer stop()
	// Both follow the journal: one for the words, and one for the events without words, which only change the state.
	// words has no buffer: the reader of the journal goes on when the page does.
	words, changed, failed := make(chan face.Event), make(chan struct{}, 1), make(chan struct{})
	readers.Go(func() {
		for e, err := range face.Follow(ctx, s.team, after) {
			if err != nil {
				close(failed)
				return
			}
			select {
			case words <- e:
			case <-ctx.Done():
				return
			}
		}
	})
	readers.Go(func() { s.followChanges(ctx, changed) })
	// Words that stream in are asked for while a conversation is open only: the files that carry them are looked at ten
	// times a second.
	spoken := make(chan piece)
	if name := muster.Name(r.URL.Query().Get("member")); name != "" {
		readers.Go(func() { s.followSpeech(ctx, name, spoken) })
	}
	out.run(ctx, words, spoken, changed, failed)
}

// position returns where a stream begins: what the browser says when it connects again is newer than its address.
func position(r *http.Request) (muster.Pos, error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = r.URL.Query().Get("after")
	}
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, muster.Errorf(muster.Invalid, "%q is no position of the journal", text)
	}
	return muster.Pos(n), nil
}

// followChanges says on changed that events have been written. It never waits for the page.
func (s *Server) followChanges(ctx context.Context, changed chan<- struct{}) {
	end, err := s.team.Journal().Tail(ctx, 0)
	if err != nil {
		return // the words say so
	}
	// Following waits for a hint of the store, so that a page on which nothing happens costs nothing.
	for _, err := range s.team.Journal().Follow(ctx, end) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return
		}
		select {
		case changed <- struct{}{}:
		default: // the page will be told anyway
		}
	}
}

// run writes messages until the page goes. It wakes when something happens, and at each heartbeat.
func (o *stream) run(
	ctx context.Context, words <-chan face.Event, spoken <-chan piece, changed, failed <-chan struct{},
) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	o.alive = o.server.living(ctx)
	// The page reads the state now: it may have changed while the page was not connected.
	ok := o.write("retry: 1000\nevent: changed\ndata: {}\n\n")
	// No timer runs while nothing waits, so that an idle page wakes at heartbeats only.
	var due <-chan time.Time // nil: nothing waits to be sent
	isChanged := false
	for ok {
		in := words
		// A full message goes before more is read. The journal's reader waits meanwhile, and nothing piles up here.
		if len(o.batch) >= mostInBatch && o.whole > 0 {
			in, due = nil, closedTimer()
		}
		select {
		case <-ctx.Done():
			return
		case <-failed: // the page connects again, and is told what is wrong when it asks for the state
			return
		case e := <-in:
			o.batch = append(o.batch, e)
			if e.Last {
				o.whole = len(o.batch)
			}
		case p := <-spoken: // a team says a few hundred pieces a second at most, so they need no limit
			o.spoken = append(o.spoken, p)
		case <-changed:
			isChanged = true
		case <-due:
			if isChanged { // before the page reads the state, so that the next heartbeat misses who ends meanwhile
				o.alive = o.server.living(ctx)
			}
			ok, due = o.send(isChanged), nil
			isChanged = false
			continue
		case <-beat.C:
			// No event tells that a process was killed.
			now := o.server.living(ctx)
			isChanged = isChanged || now != o.alive
			o.alive = now
			ok = o.write(": still here\n\n")
		}
		// The first event of a message sets when it goes, so that a busy team cannot put it off without end.
		if due == nil && (isChanged || o.whole > 0 || len(o.spoken) > 0) {
			due = time.After(gathering)
		}
	}
}

// closedTimer returns a channel that is ready at once.
func closedTimer() <-chan time.Time {
	c := make(chan time.Time)
	close(c)
	return c
}

// send writes the words and the whole events that were gathered, and whether the state has changed.
func (o *stream) send(isChanged bool) bool {
	if len(o.spoken) > 0 {
		data, err := o.server.encode(o.spoken)
		o.spoken = nil
		// It has no id, because nobody can go on behind words that are kept nowhere.
		if err != nil || !o.write(fmt.Sprintf("event: words\ndata: %s\n\n", data)) {
			return false
		}
	}
	if o.whole > 0 {
		data, err := o.server.encode(o.batch[:o.whole])
		if err != nil {
			return false
		}
		// The id is a position after whole events: a page that goes on there has no event in part.
		pos := o.batch[o.whole-1].Pos
		if !o.write(fmt.Sprintf("id: %d\ndata: %s\n\n", pos, data)) {
			return false
		}
		o.batch, o.whole = append([]face.Event(nil), o.batch[o.whole:]...), 0
	}
	return !isChanged || o.write("event: changed\ndata: {}\n\n")
}

// write sends a message at once, because a message that waits in a buffer is as good as lost for who watches. It blocks
// while the page does not read, which keeps up nobody else: each page has a stream of its own. It reports whether
// the page is still there.
func (o *stream) write(message string) bool {
	_, err := o.w.Write([]byte(message))
	return err == nil && o.flush() == nil
}

func (s *Server) living(ctx context.Context) (names string) {
	all, _ := s.team.Members().List(ctx) // the state says what is wrong
	for _, m := range all {
		if m.IsAlive {
			names += string(m.Name) + " "
		}
	}
	return names
}
