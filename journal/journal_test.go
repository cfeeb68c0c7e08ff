package journal_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
	"muster/store/mem"
)

func emit(t *testing.T, j *journal.Journal, kind string, fields map[string]any) {
	t.Helper()
	require.NoError(t, j.Emit(t.Context(), muster.Event{Kind: kind, Member: "alice", Task: 3, Fields: fields}))
}

// all are the kinds after a place, errors by their code.
func all(t *testing.T, j *journal.Journal, after muster.Pos) (kinds []string, end muster.Pos) {
	t.Helper()
	end = after
	for e, err := range j.Read(t.Context(), after) {
		if e.Pos <= end {
			t.Fatalf("the place of %+v is not past %d", e, end)
		}
		end = e.Pos
		if errors.Is(err, muster.ErrCorrupt) {
			kinds = append(kinds, string(muster.Corrupt))
		} else if err != nil {
			t.Fatal(err)
		} else {
			kinds = append(kinds, e.Kind)
		}
	}
	return kinds, end
}

func TestReadGoesOnFromAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		j := journal.New(s.Log())
		emit(t, j, journal.TaskCreated, map[string]any{"subject": "x"})
		emit(t, j, journal.TaskClaimed, map[string]any{"fence": 1})
		kinds, end := all(t, j, 0)
		if strings.Join(kinds, " ") != "task.created task.claimed" {
			t.Fatal(kinds)
		}
		emit(t, j, journal.TaskLanding, nil)
		if kinds, _ = all(t, j, end); strings.Join(kinds, " ") != "task.landing" {
			t.Fatal(kinds)
		}
		from := require.Value(j.Tail(t.Context(), 2))(t)
		for e, err := range j.Read(t.Context(), from) {
			if err != nil || e.Kind != journal.TaskClaimed || e.Number("fence") != 1 || e.Member != "alice" || e.Task != 3 {
				t.Fatalf("%+v, %v", e, err)
			}
			if e.At != muster.UnixTime(time.Now()) {
				t.Errorf("stamped %v at %v", e.At, time.Now())
			}
			break
		}
		require.NoError(t, j.Emit(t.Context(), muster.Event{Kind: journal.RunNote, At: 5}))
		from, _ = j.Tail(t.Context(), 1)
		for e, err := range j.Read(t.Context(), from) {
			if err != nil || e.At != 5 {
				t.Errorf("a time that was given became %v, error %v", e.At, err)
			}
		}
	})
}

func TestBadLinesHarmNoOthers(t *testing.T) {
	s := mem.New()
	j := journal.New(s.Log())
	emit(t, j, "one", nil)
	for _, bad := range []string{`{"event":7}`, `{"no":"event"}`} {
		require.Value(s.Log().Append(t.Context(), muster.StreamEvents, muster.Anywhere, []byte(bad)))(t)
	}
	emit(t, j, "two", nil)
	if kinds, _ := all(t, j, 0); strings.Join(kinds, " ") != "one corrupt corrupt two" {
		t.Fatal(kinds)
	}
	var got []string
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for e, err := range j.Follow(ctx, 0) {
		if err != nil {
			got = append(got, "bad")
			continue
		}
		if got = append(got, e.Kind); e.Kind == "two" {
			break
		}
	}
	if strings.Join(got, " ") != "one bad bad two" {
		t.Error(got)
	}
}

func TestAnEventThatIsNoJSONIsRefused(t *testing.T) {
	j := journal.New(mem.New().Log())
	err := j.Emit(t.Context(), muster.Event{Kind: "x", Fields: map[string]any{"f": func() {}}})
	if !errors.Is(err, muster.ErrInvalid) {
		t.Fatal(err)
	}
	if kinds, _ := all(t, j, 0); len(kinds) != 0 {
		t.Fatal(kinds)
	}
}

// A follower that is slow, and starts while others write, has every event once and in order.
func TestFollowMissesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		const writers, each = 4, 50
		var writing sync.WaitGroup
		for w := range writers {
			j := journal.New(s.Handle().Log())
			writing.Go(func() {
				for i := range each {
					emit(t, j, "n", map[string]any{"w": w, "i": i})
					time.Sleep(time.Duration(w+1) * time.Millisecond)
				}
			})
		}
		j := journal.New(s.Handle().Log())
		next := map[int]int{}
		n, last := 0, muster.Pos(0)
		for e, err := range j.Follow(t.Context(), 0) {
			if err != nil || e.Pos <= last {
				t.Fatalf("%+v after %d, %v", e, last, err)
			}
			last = e.Pos
			w := int(e.Number("w"))
			if int(e.Number("i")) != next[w] {
				t.Fatalf("writer %d: %v, want %d", w, e.Number("i"), next[w])
			}
			next[w]++
			if n++; n == writers*each {
				break
			}
			if n%10 == 0 {
				time.Sleep(7 * time.Millisecond)
			}
		}
		writing.Wait()
	})
}

// between is a log where something is written after the reading of what is there and before the wait.
type between struct {
	muster.Log
	once sync.Once
	do   func()
}

func (b *between) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		b.Log.Read(ctx, stream, after)(yield)
		b.once.Do(b.do)
	}
}

func TestFollowSeesWhatCameBetweenReadingAndWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		writer := journal.New(s.Log())
		j := journal.New(&between{Log: s.Log(), do: func() { emit(t, writer, "between", nil) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for e, err := range j.Follow(ctx, 0) {
			if err != nil || e.Kind != "between" {
				t.Fatalf("%+v, %v", e, err)
			}
			return
		}
		t.Fatal("the event was not seen")
	})
}

func TestFollowEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		j := journal.New(s.Log())
		emit(t, j, "one", nil)
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		done := make(chan struct{})
		go func() {
			defer close(done)
			for _, err := range j.Follow(ctx, 0) {
				if err != nil {
					t.Error(err)
				}
				n++
			}
		}()
		synctest.Wait()
		if n != 1 {
			t.Errorf("%d", n)
		}
		cancel()
		<-done
		if n != 1 {
			t.Errorf("%d", n)
		}
	})
}

type broken struct{ muster.Log }

func (broken) Read(context.Context, string, muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		yield(muster.Record{}, muster.Errorf(muster.Trimmed, "gone"))
	}
}

func TestFollowEndsWithAnError(t *testing.T) {
	j := journal.New(broken{mem.New().Log()})
	n := 0
	for _, err := range j.Follow(t.Context(), 5) {
		if n++; !errors.Is(err, muster.ErrTrimmed) {
			t.Fatal(err)
		}
	}
	if n != 1 {
		t.Errorf("%d", n)
	}
}
