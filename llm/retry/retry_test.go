package retry_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/llm"
	"muster/llm/retry"
)

// model is a model that is a function of the try's number, from 1.
type model struct {
	mu    sync.Mutex
	n     int
	at    []time.Time
	reply func(ctx context.Context, n int, emit func(llm.Delta)) error
}

func (m *model) Reply(ctx context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	m.mu.Lock()
	m.n++
	n := m.n
	m.at = append(m.at, time.Now())
	m.mu.Unlock()
	if err := m.reply(ctx, n, emit); err != nil {
		return llm.Reply{}, err
	}
	return llm.Reply{Stop: llm.StopEnd}, nil
}

func failing(times int, err error) *model {
	return &model{reply: func(_ context.Context, n int, _ func(llm.Delta)) error {
		if n <= times {
			return err
		}
		return nil
	}}
}

func of(kind llm.Kind, after time.Duration) error {
	return &llm.Error{Kind: kind, After: after, Err: errors.New("as told")}
}

func ask(m llm.Model) (ds []llm.Delta, err error) {
	_, err = m.Reply(context.Background(), llm.Request{}, func(d llm.Delta) { ds = append(ds, d) })
	return ds, err
}

// A trouble that does not pass is waited out for an hour from its first sign, with ever longer pauses, and its kind stays.
func TestAnHourIsWaitedOut(t *testing.T) {
	for _, kind := range []llm.Kind{llm.Overloaded, llm.Unreachable, llm.Limited, llm.Incomplete} {
		for _, after := range []time.Duration{0, 7 * time.Second, time.Hour} {
			synctest.Test(t, func(t *testing.T) {
				m, began := failing(1e6, of(kind, after)), time.Now()
				_, err := ask(retry.Wrap(m, retry.Options{}))
				took := time.Since(began)
				if llm.KindOf(err) != kind || took < time.Hour || took > time.Hour+11*time.Second || m.n > 500 {
					t.Errorf("%s after %v: %v after %v and %d tries", kind, after, err, took, m.n)
				}
				if pause := m.at[1].Sub(m.at[0]); pause < after {
					t.Errorf("%s after %v: it came back after %v", kind, after, pause)
				}
			})
		}
	}
}

// The time that a trouble is waited for is a setting, and so is the number of tries.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		o     retry.Options
		kind  llm.Kind
		tries int           // 0: any
		took  time.Duration // 0: any
	}{
		{retry.Options{Patience: -1}, llm.Overloaded, 1, 0},
		{retry.Options{Patience: 5 * time.Minute}, llm.Overloaded, 0, 5 * time.Minute},
		{retry.Options{Tries: 3}, llm.Overloaded, 3, 0},
		{retry.Options{Tries: 3}, llm.Limited, 3, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			began, m := time.Now(), failing(1e6, of(c.kind, 0))
			_, err := ask(retry.Wrap(m, c.o))
			took := time.Since(began)
			if llm.KindOf(err) != c.kind || c.tries > 0 && m.n != c.tries || c.took > 0 && took != c.took || c.o.Patience < 0 && took > 0 {
				t.Errorf("%+v: %v after %v and %d tries", c, err, took, m.n)
			}
		})
	}
}

// The wait before try n+1 is anything up to Min doubled n times, never above Max.
func TestBackoff(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		low := time.Duration(between(r, "min", 1, 5000)) * time.Millisecond
		high := low * time.Duration(between(r, "max", 1, 100))
		tries := between(r, "tries", 2, 70)
		synctest.Test(t, func(*testing.T) {
			m := failing(1000, of(llm.Incomplete, 0))
			if _, err := ask(retry.Wrap(m, retry.Options{Tries: tries, Min: low, Max: high})); err == nil {
				r.Fatal("it gave no error")
			}
			bound := low
			for i := 1; i < len(m.at); i++ {
				if d := m.at[i].Sub(m.at[i-1]); d < 0 || d > bound {
					r.Fatalf("wait %d is %v, more than %v", i, d, bound)
				}
				bound = min(2*bound, high)
			}
		})
	})
}

func between(t *rapid.T, label string, low, high int) int {
	return rapid.IntRange(low, high).Draw(t, label)
}

// A reply that makes no sense is asked for again once, whatever other troubles come in between.
func TestMalformedIsAskedForOnceMore(t *testing.T) {
	malformed := &llm.Error{Kind: llm.Incomplete, Malformed: true, Err: errors.New("no JSON")}
	for want, all := range map[int][]error{
		2: {malformed, nil},
		4: {of(llm.Overloaded, 0), malformed, of(llm.Incomplete, 0), malformed, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := &model{reply: func(_ context.Context, n int, _ func(llm.Delta)) error { return all[n-1] }}
			if _, err := ask(retry.Wrap(m, retry.Options{})); m.n != want || (err == nil) != (want == len(all)) {
				t.Errorf("%d tries, not %d: %v", m.n, want, err)
			}
		})
	}
}

func TestReturnedAtOnce(t *testing.T) {
	foreign := errors.New("foreign")
	for _, want := range []error{
		of(llm.ContextFull, 0), of(llm.BadRequest, 0), of(llm.Denied, 0), of(llm.Spent, 0), foreign,
	} {
		synctest.Test(t, func(t *testing.T) {
			m := failing(1, want)
			begin := time.Now()
			if _, err := ask(retry.Wrap(m, retry.Options{OnWait: func(time.Time,
				error) {
				t.Error("it waits")
			}})); !errors.Is(err, want) || m.n != 1 || !time.Now().Equal(begin) {
				t.Errorf("%v after %d tries: %v", want, m.n, err)
			}
		})
	}
}

// One is limited: all who share the limiter wait, and do not come back at one instant.
func TestLimitIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l retry.Limiter
		first := failing(1, of(llm.Limited, time.Minute))
		begin := time.Now()
		var g sync.WaitGroup
		g.Go(func() {
			if _, err := ask(retry.Wrap(first, retry.Options{Limiter: &l})); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		if until, err := l.Until(); !until.Equal(begin.Add(time.Minute)) || llm.KindOf(err) != llm.Limited {
			t.Errorf("until %v for %v", until, err)
		}
		var mu sync.Mutex
		at := map[time.Time]bool{first.at[0]: true}
		for range 20 {
			g.Go(func() {
				m := failing(0, nil)
				told := time.Time{}
				if _, err := ask(retry.Wrap(m, retry.Options{Limiter: &l,
					OnWait: func(u time.Time, err error) { told = u }})); err != nil {
					t.Error(err)
				}
				if d := m.at[0].Sub(begin); d < time.Minute || d > time.Minute+10*time.Second || !told.Equal(m.at[0]) {
					t.Errorf("asked after %v, told %v", d, told)
				}
				mu.Lock()
				at[m.at[0]] = true
				mu.Unlock()
			})
		}
		g.Wait()
		if d := first.at[1].Sub(begin); d < time.Minute {
			t.Errorf("the limited one came back after %v", d)
		}
		if len(at) < 15 {
			t.Errorf("21 came back at %d instants", len(at))
		}
		if until, err := l.Until(); !until.IsZero() || err != nil {
			t.Errorf("it still holds: %v %v", until, err)
		}
	})
}

// A trouble is told once for all who share the limiter, and again only after it has not been met for a while.
func TestATroubleIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l retry.Limiter
		var told []llm.Kind
		var mu sync.Mutex
		meet := func(kind llm.Kind, times int) {
			var g sync.WaitGroup
			for range 10 {
				g.Go(func() {
					if _, err := ask(retry.Wrap(failing(times, of(kind, 0)), retry.Options{Limiter: &l, OnTrouble: func(until time.Time, err error) {
						mu.Lock()
						defer mu.Unlock()
						if told = append(told, llm.KindOf(err)); until.Before(time.Now()) {
							t.Errorf("it is waited until %v", until)
						}
					}})); err != nil {
						t.Error(err)
					}
				})
			}
			g.Wait()
		}
		meet(llm.Overloaded, 9)
		meet(llm.Overloaded, 1)
		meet(llm.Limited, 3)
		if d := cmp.Diff([]llm.Kind{llm.Overloaded, llm.Limited}, told); d != "" {
			t.Error(d)
		}
		time.Sleep(10 * time.Minute)
		meet(llm.Overloaded, 1)
		if len(told) != 3 {
			t.Errorf("a new trouble is not told: %v", told)
		}
	})
}

// at is a model of an account.
type at struct {
	*model
	id string
}

// Account returns the account.
func (m at) Account() llm.Account { return llm.Account{ID: m.id} }

// The limit of one endpoint holds nobody of another back, and everybody of its own.
func TestOneLimiterForEachEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all retry.Limiters
		wait := func(m llm.Model) (d time.Duration) {
			began := time.Now()
			if _, err := ask(retry.Wrap(m, retry.Options{Limiter: all.Of(m)})); err != nil {
				t.Error(err)
			}
			return time.Since(began)
		}
		var g sync.WaitGroup
		g.Go(func() { wait(at{failing(1, of(llm.Limited, time.Minute)), "https://a"}) })
		synctest.Wait()
		g.Go(func() {
			if d := wait(at{failing(0, nil), "https://a"}); d < time.Minute {
				t.Errorf("the same endpoint is asked after %v", d)
			}
		})
		for _, m := range []llm.Model{at{failing(0, nil), "https://b"}, failing(0, nil)} {
			if d := wait(m); d > 0 {
				t.Errorf("another endpoint is asked after %v", d)
			}
		}
		g.Wait()
	})
}

// A limit that is moved while one sleeps is slept through to its new end, and never made shorter.
func TestLimitMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := retry.Options{Limiter: new(retry.Limiter)}
		begin := time.Now()
		var g sync.WaitGroup
		limited := func(answers, after time.Duration) {
			m := &model{reply: func(_ context.Context, n int, _ func(llm.Delta)) error {
				if n > 1 {
					return nil
				}
				time.Sleep(answers)
				return of(llm.Limited, after)
			}}
			g.Go(func() { _, _ = ask(retry.Wrap(m, o)) })
			synctest.Wait()
		}
		limited(40*time.Second, time.Hour)
		limited(50*time.Second, time.Second)
		limited(0, time.Minute)
		late := failing(0, nil)
		if _, err := ask(retry.Wrap(late, o)); err != nil || late.at[0].Sub(begin) < time.Hour+40*time.Second {
			t.Errorf("asked after %v: %v", late.at[0].Sub(begin), err)
		}
		g.Wait()
	})
}

// What was shown of a reply that failed is called void, once, before it is asked again.
func TestAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &model{reply: func(_ context.Context, n int, emit func(llm.Delta)) error {
			emit(llm.Delta{})
			emit(llm.Delta{Part: 2})
			switch n {
			case 1:
				emit(llm.Delta{Part: 1, Text: "half"})
				return of(llm.Incomplete, 0)
			case 2: // shows nothing
				return of(llm.Overloaded, 0)
			}
			emit(llm.Delta{Part: 1, Text: "whole"})
			return nil
		}}
		ds := require.Value(ask(retry.Wrap(m, retry.Options{})))(t)
		want := []llm.Delta{{Part: 1, Text: "half"}, {Again: true}, {Part: 1, Text: "whole"}}
		if d := cmp.Diff(want, ds); d != "" {
			t.Error(d)
		}
		m = failing(1, of(llm.Incomplete, 0))
		if _, err := retry.Wrap(m, retry.Options{}).Reply(t.Context(), llm.Request{}, nil); err != nil {
			t.Errorf("nobody listens: %v", err)
		}
	})
}

// A limit is held by the clock that nobody sets. A bubble's times have no such reading, so this one runs in none.
func TestLimitWhenTheClockIsSet(t *testing.T) {
	var l retry.Limiter
	ctx, cancel := context.WithCancel(t.Context())
	o := retry.Options{Limiter: &l, OnWait: func(time.Time, error) { cancel() }}
	if _, err := retry.Wrap(failing(1, of(llm.Limited, time.Hour)), o).Reply(ctx, llm.Request{}, nil); !errors.Is(err,
		context.Canceled) {
		t.Fatal(err)
	}
	if until, _ := l.Until(); until.IsZero() || until == until.Round(0) {
		t.Errorf("it holds until %v by the wall clock", until)
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	cause := errors.New("shutdown")
	for name, err := range map[string]error{"backoff": of(llm.Overloaded, time.Hour),
		"limit": of(llm.Limited, time.Hour)} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			time.AfterFunc(time.Minute, func() { cancel(cause) })
			begin := time.Now()
			_, got := retry.Wrap(failing(9, err), retry.Options{}).Reply(ctx, llm.Request{}, nil)
			if !errors.Is(got, cause) || time.Since(begin) != time.Minute {
				t.Errorf("%s: %v after %v", name, got, time.Since(begin))
			}
		})
	}
}

// A note of the model reaches those who want it, and is nothing to show.
func TestNotes(t *testing.T) {
	m := &model{reply: func(_ context.Context, _ int, emit func(llm.Delta)) error {
		emit(llm.Delta{Note: "less is affordable"})
		emit(llm.Delta{Text: "x"})
		return nil
	}}
	var notes []string
	shown, err := ask(retry.Wrap(m, retry.Options{OnNote: func(line string) { notes = append(notes, line) }}))
	if d := cmp.Diff([]llm.Delta{{Text: "x"}}, shown); d != "" || err != nil || len(notes) != 1 || notes[0] != "less is affordable" {
		t.Errorf("%v, told %q\n%s", err, notes, d)
	}
	if _, err := ask(retry.Wrap(m, retry.Options{})); err != nil {
		t.Error(err)
	}
}
