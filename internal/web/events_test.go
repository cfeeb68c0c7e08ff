package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/roster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
	"muster/journal"
)

// page is what a browser has of a stream.
type page struct {
	lastID  string
	texts   []string // of events with words
	changed int
	query   string // of its address
	words   string // that stream in, as JSON
}

func (p *page) read(ctx context.Context, w *world, enough func() bool) {
	w.Helper()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r := w.request(http.MethodGet, "/api/events"+p.query, "").WithContext(ctx)
	if p.lastID != "" {
		r.Header.Set("Last-Event-ID", p.lastID)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return // the server is down
	}
	defer res.Body.Close()
	if got := res.Header.Get("Content-Type"); got != "text/event-stream" {
		w.Fatalf("type %q", got)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, 1<<24)
	id, event, data := "", "", ""
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			id = value
		case "event":
			event = value
		case "data":
			data = value
		case "": // the end of a message
			p.take(w, id, event, data)
			id, event, data = "", "", ""
			if enough() {
				return
			}
		}
	}
}

func (p *page) take(w *world, id, event, data string) {
	if event == "changed" {
		p.changed++
	}
	if event == "words" {
		p.words += data
	}
	if id == "" {
		return
	}
	var events []struct {
		Pos  uint64
		Text string
	}
	if err := json.Unmarshal([]byte(data), &events); err != nil {
		w.Fatalf("%v: %.200s", err, data)
	}
	if last := strconv.FormatUint(events[len(events)-1].Pos, 10); last != id {
		w.Errorf("the message has the id %s, and its last event %s", id, last)
	}
	p.lastID = id
	for _, e := range events {
		p.texts = append(p.texts, e.Text)
	}
}

// A page that loses its connection again and again, and whose server is started again, has each event once.
func TestEventsSurviveRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	all := tier.Amount(500, 2000)
	writing := make(chan struct{})
	go func() {
		defer close(writing)
		w.emit(1, all)
	}()
	p := new(page)
	for i := 0; len(p.texts) < all; i++ {
		seen := len(p.texts)
		if i < 6 { // the connection breaks in the middle
			p.read(t.Context(), w, func() bool { return len(p.texts) > min(seen+50, all-1) })
		} else {
			p.read(t.Context(), w, func() bool { return len(p.texts) >= all })
		}
		if i < tier.Amount(2, 4) {
			w.restart()
		}
		if i > 20 {
			break
		}
	}
	<-writing
	if len(p.texts) != all {
		t.Fatalf("%d events", len(p.texts))
	}
	for i, text := range p.texts {
		if want := fmt.Sprintf("%d task %d", i+1, i+1); text != want {
			t.Fatalf("event %d is %q, want %q", i+1, text, want)
		}
	}
}

func TestEventsChangeTheState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members("alice")
	p := new(page)
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.read(t.Context(), w, func() bool { return p.changed >= 2 })
	}()
	// The first message says that the state is to be read; the next one comes with the event.
	for i, told := 1, false; !told; i++ {
		e := muster.Event{Kind: journal.TurnStarted, Member: "alice", Fields: map[string]any{"turn": i, "turns": i}}
		require.NoError(t, w.journal.Emit(t.Context(), e))
		_, told = wait.Poll(100*time.Millisecond, func() bool {
			select {
			case <-over:
				return true
			default:
				return false
			}
		})
		if i > 600 { // a minute
			t.Fatal("nothing is told")
		}
	}
	var s state
	w.get("/api/state", &s)
	if s.Members[1].Turns < 1 {
		t.Errorf("members %+v", s.Members)
	}
}

// A team that comes and goes between two heartbeats is missed, though as many live then as when the page came.
func TestEndsBetweenHeartbeatsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := roster.New(w.store, w.journal, "team")
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		res := httptest.NewRecorder()
		var changes atomic.Int32
		out := &stream{server: w.server, w: res, flush: func() error {
			changes.Store(int32(strings.Count(res.Body.String(), "event: changed")))
			return nil
		}}
		changed := make(chan struct{}, 1)
		go out.run(ctx, nil, nil, changed, nil)
		synctest.Wait()
		h := require.Value(r.Join(ctx, "the test"))(t)
		require.Value(r.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Host: h.ID()}))(t)
		changed <- struct{}{}
		time.Sleep(2 * gathering)
		synctest.Wait()
		told := changes.Load()
		require.NoError(t, h.Release())
		time.Sleep(heartbeat + gathering)
		synctest.Wait()
		if again := changes.Load(); told != 2 || again != 3 {
			t.Errorf("the page is told %d times, and %d times after the end", told, again)
		}
	})
}

func TestPositionsAreChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, after := range []string{"x", "-1", "1.5", "99999999999999999999999"} {
		if res, _ := w.send(w.request(http.MethodGet, "/api/events?after="+after, "")); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s", after, res.Status)
		}
	}
}
