package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"muster"
)

// rec returns a record with a number and with text that needs escapes.
func rec(n int) []byte { return fmt.Appendf(nil, `{"n":%d,"text":"zwölf \"x\" }"}`, n) }

// records reads what comes after a place: the data, and each one's place.
func records(t *testing.T, l muster.Log, stream string, after muster.Pos) (data []string, places []muster.Pos) {
	t.Helper()
	for r, err := range l.Read(t.Context(), stream, after) {
		ok(t, err)
		if r.Pos <= after {
			t.Fatalf("the place went from %d to %d", after, r.Pos)
		}
		after = r.Pos
		data, places = append(data, string(r.Data)), append(places, r.Pos)
	}
	return data, places
}

// add appends records at a position, which must be the stream's end.
func add(t *testing.T, l muster.Log, stream string, at muster.Pos, recs ...[]byte) muster.Pos {
	t.Helper()
	end, err := l.Append(t.Context(), stream, at, recs...)
	ok(t, err)
	return end
}

const (
	one = muster.StreamTranscripts + "alice"
	two = muster.StreamEvents
)

var logTests = []test{
	{"records come back in order, byte for byte", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		end := add(t, a, one, 0, rec(1), rec(2))
		end = add(t, b, one, end, rec(3))
		add(t, a, one, end, []byte(`{}`), []byte(`{ }`))
		want := []string{string(rec(1)), string(rec(2)), string(rec(3)), `{}`, `{ }`}
		for _, l := range []muster.Log{a, b} {
			got, _ := records(t, l, one, 0)
			same(t, "records", got, want)
		}
	}},
	{"what comes after a place is unread", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		end := add(t, a, one, muster.Anywhere, rec(1), rec(2), rec(3))
		all, places := records(t, b, one, 0)
		equal(t, "the end", places[2], end)
		for i, p := range places {
			got, _ := records(t, a, one, p)
			same(t, "the rest", got, all[i+1:])
		}
	}},
	{"an empty stream has nothing and ends at zero", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		got, _ := records(t, a, one, 0)
		equal(t, "records", len(got), 0)
		end, err := a.Tail(t.Context(), one, 0)
		ok(t, err)
		equal(t, "the end", end, 0)
		equal(t, "the end", add(t, a, one, muster.Anywhere), 0)
		_, err = a.Append(t.Context(), one, 5, rec(1))
		wants(t, err, muster.ErrStale)
	}},
	{"an append at another place than the end is stale and adds nothing", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		early := add(t, a, one, 0, rec(1))
		add(t, b, one, early, rec(2))
		for _, at := range []muster.Pos{0, early} {
			_, err := a.Append(t.Context(), one, at, rec(3))
			wants(t, err, muster.ErrStale)
			_, err = a.Append(t.Context(), one, at)
			wants(t, err, muster.ErrStale)
		}
		got, _ := records(t, a, one, 0)
		same(t, "records", got, []string{string(rec(1)), string(rec(2))})
	}},
	{"streams are apart", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		streams := []string{one, muster.StreamTranscripts + "bob", two, muster.StreamClaims, muster.StreamLanes}
		for i, s := range streams {
			add(t, a, s, 0, rec(i))
			got, _ := records(t, a, s, 0)
			same(t, s, got, []string{string(rec(i))})
		}
	}},
	{"the tail is the last n records", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		for i := range 40 {
			add(t, a, two, muster.Anywhere, rec(i))
		}
		all, places := records(t, a, two, 0)
		for _, n := range []int{0, 1, 7, 39, 40, 41, 1000} {
			p, err := b.Tail(t.Context(), two, n)
			ok(t, err)
			got, _ := records(t, b, two, p)
			same(t, "the tail", got, all[max(0, len(all)-n):])
		}
		end, err := a.Tail(t.Context(), two, 0)
		ok(t, err)
		equal(t, "the end", end, places[39])
		add(t, b, two, end, rec(40))
	}},
	{"a read ends at the end as it was, and may be left", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		add(t, a, one, 0, rec(1), rec(2))
		n := 0
		for _, err := range a.Read(t.Context(), one, 0) {
			ok(t, err)
			add(t, a, one, muster.Anywhere, rec(9))
			n++
		}
		equal(t, "records", n, 2)
		for r, err := range a.Read(t.Context(), one, 0) {
			ok(t, err)
			equal(t, "the first", string(r.Data), string(rec(1)))
			break
		}
	}},
	{"after a trim the rest is there", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		add(t, a, two, 0, rec(1), rec(2), rec(3))
		_, places := records(t, a, two, 0)
		ok(t, b.Trim(t.Context(), two, places[1]))
		got, _ := records(t, a, two, places[1])
		same(t, "the rest", got, []string{string(rec(3))})
		p, err := a.Tail(t.Context(), two, 1)
		ok(t, err)
		equal(t, "the last one's place", p, places[1])
		var left []muster.Pos
		for r, err := range a.Read(t.Context(), two, 0) { // the beginning is that of what is left
			ok(t, err)
			left = append(left, r.Pos)
		}
		if n := len(left); n == 0 || n > 3 || !slices.Equal(left, places[3-n:]) {
			t.Fatalf("from the beginning there is something at %v", left)
		}
		end := add(t, b, two, places[2], rec(4))
		if end <= places[2] {
			t.Fatalf("the end went from %d to %d", places[2], end)
		}
	}},
	{"a place beyond the end was forgotten", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		end := add(t, a, two, 0, rec(1))
		for _, err := range a.Read(t.Context(), two, end+1000) {
			wants(t, err, muster.ErrTrimmed)
			return
		}
		t.Fatal("nothing was said")
	}},
	{"a read ends with its context", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		add(t, a, two, 0, rec(1), rec(2))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for _, err := range a.Read(ctx, two, 0) {
			if n++; (n == 1) != (err == nil) || n > 2 {
				t.Fatalf("record %d: %v", n, err)
			}
			cancel()
		}
		equal(t, "records and errors", n, 2)
	}},
	{"what is not an object on one line is invalid", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		for _, r := range []string{"", "1", "null", `[{}]`, `{"a":`, "{\n}", "{\r}", `{} `, `{} {}`} {
			_, err := a.Append(t.Context(), one, muster.Anywhere, rec(1), []byte(r))
			wants(t, err, muster.ErrInvalid)
		}
		got, _ := records(t, a, one, 0)
		equal(t, "records", len(got), 0)
	}},
	{"a stream whose name is a path is invalid", func(t *testing.T, open func() muster.Store) {
		a := open().Log()
		transcripts := muster.StreamTranscripts
		for _, s := range []string{"", "..", "../x", "-x", transcripts, transcripts + "../x", "a/b"} {
			_, err := a.Append(t.Context(), s, muster.Anywhere, rec(1))
			wants(t, err, muster.ErrInvalid)
			for _, err := range a.Read(t.Context(), s, 0) {
				wants(t, err, muster.ErrInvalid)
			}
		}
	}},
	{"many writers anywhere lose nothing and tear nothing", func(t *testing.T, open func() muster.Store) {
		const writers, each = 4, 10
		reader := open().Log()
		watch := reader.Watch(t.Context(), two)
		var all sync.WaitGroup
		for w := range writers {
			l := open().Log()
			all.Go(func() {
				for i := range each {
					if _, err := l.Append(t.Context(), two, muster.Anywhere, rec(w*each+i), rec(1000)); err != nil {
						t.Error(err)
					}
				}
			})
		}
		var got []string
		var at muster.Pos
		for len(got) < 2*writers*each {
			data, places := records(t, reader, two, at)
			if got = append(got, data...); len(places) > 0 {
				at = places[len(places)-1]
				continue
			}
			hinted(t, watch, fmt.Sprintf("%d records", len(got)))
		}
		all.Wait()
		next := map[int]int{}
		for i := 0; i < len(got); i += 2 {
			var n int
			if _, err := fmt.Sscanf(got[i], `{"n":%d`, &n); err != nil {
				t.Fatal(err)
			}
			equal(t, "one writer's order", n%each, next[n/each])
			next[n/each]++
			equal(t, "the batch's second record", got[i+1], string(rec(1000)))
		}
	}},
	{"one of many writers at a place wins", func(t *testing.T, open func() muster.Store) {
		const writers = 5
		var all sync.WaitGroup
		results := make([]error, writers)
		for w := range writers {
			l := open().Log()
			all.Go(func() { _, results[w] = l.Append(t.Context(), one, 0, rec(w)) })
		}
		all.Wait()
		won := 0
		for _, err := range results {
			if err == nil {
				won++
			} else if !errors.Is(err, muster.ErrStale) {
				t.Error(err)
			}
		}
		equal(t, "winners", won, 1)
		got, _ := records(t, open().Log(), one, 0)
		equal(t, "records", len(got), 1)
	}},
	{"a watch is told of its stream, and ends with its context", func(t *testing.T, open func() muster.Store) {
		a, b := open().Log(), open().Log()
		ctx, cancel := context.WithCancel(t.Context())
		own, other := a.Watch(ctx, one), b.Watch(t.Context(), one)
		add(t, a, one, 0, rec(1))
		hinted(t, own, "an own append")
		hinted(t, other, "another's append")
		cancel()
		ended(t, own)
	}},
}
