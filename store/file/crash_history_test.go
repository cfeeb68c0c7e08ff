package file_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"muster"
	"muster/internal/testing/simfs"
	"muster/store/file"
)

// wish is one change that was asked for: from and done are moments, in calls of the simulated disk.
type wish struct {
	data string // of a document: "" is none
	from int
	done int // -1: never acknowledged
}

// history is what was asked of one state, and what of it was acknowledged when.
type history struct {
	sim *simfs.FS

	mu      sync.Mutex
	docs    map[[2]string][]*wish // by table and key
	recs    map[string][]*wish    // by stream
	soon    map[*wish]bool        // not promised before a later record of the stream is
	damaged map[string]int        // lines of a stream that were bad when the history began
	moments []int
}

func newHistory(sim *simfs.FS) *history {
	return &history{sim: sim, docs: map[[2]string][]*wish{}, recs: map[string][]*wish{}, soon: map[*wish]bool{},
		damaged: map[string]int{}}
}

func (h *history) begin(data string) *wish { return &wish{data, h.sim.Calls(), -1} }

// ends notes how a wish ended; false: it was refused.
func (h *history) ends(w *wish, err error) bool {
	if err == nil {
		w.done = h.sim.Calls()
		h.moments = append(h.moments, w.done)
	}
	return !errors.Is(err, muster.ErrStale) && !errors.Is(err, muster.ErrInvalid)
}

// recorded is a store whose changes are noted.
type recorded struct {
	*file.Store
	h *history
}

func (r recorded) Table(name string) muster.Table {
	return recordedTable{r.Store.Table(name), name, r.h}
}
func (r recorded) Log() muster.Log { return recordedLog{r.Store.Log(), r.h} }

type recordedTable struct {
	muster.Table
	name string
	h    *history
}

func (t recordedTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	var rev muster.Rev
	err := t.note(key, string(data), func() (err error) {
		rev, err = t.Table.Put(ctx, key, data, at)
		return err
	})
	return rev, err
}

func (t recordedTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	return t.note(key, "", func() error { return t.Table.Delete(ctx, key, at) })
}

func (t recordedTable) note(key, data string, f func() error) error {
	t.h.mu.Lock()
	defer t.h.mu.Unlock()
	w := t.h.begin(data)
	err := f()
	if t.h.ends(w, err) {
		id := [2]string{t.name, key}
		t.h.docs[id] = append(t.h.docs[id], w)
	}
	return err
}

type recordedLog struct {
	muster.Log
	h *history
}

func (l recordedLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	ws := l.wishes(recs)
	end, err := l.Log.Append(ctx, stream, at, recs...)
	if l.note(stream, ws, err); err == nil && len(recs) > 0 {
		for _, w := range l.h.recs[stream] { // it makes those durable that were written soon
			if l.h.soon[w] {
				w.done = l.h.sim.Calls()
				delete(l.h.soon, w)
			}
		}
	}
	return end, err
}

func (l recordedLog) AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error) {
	l.h.mu.Lock()
	defer l.h.mu.Unlock()
	ws := l.wishes(recs)
	end, err := l.Log.(interface {
		AppendSoon(context.Context, string, ...[]byte) (muster.Pos, error)
	}).AppendSoon(ctx, stream, recs...)
	l.note(stream, ws, err)
	if err == nil {
		for _, w := range ws {
			w.done, l.h.soon[w] = -1, true
		}
	}
	return end, err
}

func (l recordedLog) wishes(recs [][]byte) (ws []*wish) {
	for _, r := range recs {
		ws = append(ws, l.h.begin(string(r)))
	}
	return ws
}

func (l recordedLog) note(stream string, ws []*wish, err error) {
	for _, w := range ws {
		if l.h.ends(w, err) {
			l.h.recs[stream] = append(l.h.recs[stream], w)
		}
	}
}

// tables are those that a history is compared with.
var tables = []string{muster.TableTasks, muster.TableMembers, muster.TableRequests, muster.TableHosts, muster.TableTeam}

// compare says what is wrong with a state, as it was after so many calls: nothing that was acknowledged may be missing,
// and nothing may be there that nobody asked for.
func (h *history) compare(ctx context.Context, s muster.Store, calls int) (wrong []string) {
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for _, name := range tables {
		there := map[string]string{}
		for c, err := range s.Table(name).Changes(ctx, 0) {
			if err != nil {
				say("table %s, %q: %v", name, c.Key, err)
			}
			there[c.Key] = string(c.Data)
			if d, err := s.Table(name).Get(ctx, c.Key); err != nil || string(d.Data) != string(c.Data) {
				say("table %s, %q: listed as %q, read as %q, %v", name, c.Key, c.Data, d.Data, err)
			}
		}
		for id, ws := range h.docs {
			if id[0] != name {
				continue
			}
			if now := there[id[1]]; !slices.Contains(versions(ws, calls), now) {
				say("table %s, %q is %q, and may be one of %q", name, id[1], now, versions(ws, calls))
			}
			delete(there, id[1])
		}
		for key, data := range there {
			say("table %s has %q, for which nobody asked: %q", name, key, data)
		}
	}
	for stream, ws := range h.recs {
		got, damaged, err := records(ctx, s, stream)
		if err != nil {
			say("stream %s: %v", stream, err)
		}
		if !follows(got, ws, calls) {
			say("stream %s has %q after %d calls", stream, got, calls)
		}
		open := 0
		for _, w := range ws {
			if w.from <= calls && !w.sure(calls) {
				open++
			}
		}
		if damaged > open+h.damaged[stream] {
			say("stream %s has %d damaged lines where %d records were being written", stream, damaged, open)
		}
	}
	return wrong
}

// sure reports whether it was acknowledged at that moment.
func (w *wish) sure(calls int) bool { return w.done >= 0 && w.done <= calls }

// follows reports whether records are all that were acknowledged, and perhaps others that were asked for, in their
// order.
func follows(got []string, ws []*wish, calls int) bool {
	at := map[int]bool{0: true} // how many of got the wishes so far may be
	for _, w := range ws {
		if w.from > calls {
			break
		}
		next := map[int]bool{}
		for n := range at {
			if !w.sure(calls) {
				next[n] = true
			}
			if n < len(got) && got[n] == w.data {
				next[n+1] = true
			}
		}
		at = next
	}
	return at[len(got)]
}

// versions are what a document may say: what was acknowledged last, and what was asked for since.
func versions(ws []*wish, calls int) (may []string) {
	may = []string{""}
	for _, w := range ws {
		switch {
		case w.from > calls:
			return may
		case w.sure(calls):
			may = may[:0]
		}
		may = append(may, w.data)
	}
	return may
}

func records(ctx context.Context, s muster.Store, stream string) (got []string, damaged int, err error) {
	for r, err := range s.Log().Read(ctx, stream, 0) {
		if errors.Is(err, muster.ErrCorrupt) {
			damaged++
		} else if err != nil {
			return got, damaged, err
		} else {
			got = append(got, string(r.Data))
		}
	}
	return got, damaged, nil
}

// survey is the history of a state that is found: what is there, is acknowledged.
func survey(ctx context.Context, sim *simfs.FS, s muster.Store, streams map[string][]*wish) *history {
	h := newHistory(sim)
	for _, name := range tables {
		for c, err := range s.Table(name).Changes(ctx, 0) {
			if err == nil {
				h.docs[[2]string{name, c.Key}] = []*wish{{string(c.Data), 0, 0}}
			}
		}
	}
	for stream := range streams {
		got, damaged, _ := records(ctx, s, stream)
		h.recs[stream], h.damaged[stream] = nil, damaged
		for _, r := range got {
			h.recs[stream] = append(h.recs[stream], &wish{r, 0, 0})
		}
	}
	return h
}
