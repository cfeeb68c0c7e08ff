package retry_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster/llm"
	"muster/llm/retry"
)

// named is a model that says who it is.
type named struct {
	name  string
	n     atomic.Int32
	reply func(n int) error
}

// Reply implements llm.Model.
func (m *named) Reply(_ context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	if err := m.reply(int(m.n.Add(1))); err != nil {
		emit(llm.Delta{Text: "half"})
		return llm.Reply{}, err
	}
	return llm.Reply{Stop: llm.StopEnd, Model: m.name}, nil
}

// candidate is a model that Fallback may ask.
func candidate(name string, m llm.Model) retry.Candidate {
	return retry.Candidate{Name: name, Patient: retry.Wrap(m, retry.Options{}),
		Quick: retry.Wrap(m, retry.Options{Overload: retry.OverloadPatience})}
}

// While the first model is out, the second answers for all, one request at a time tries the first again, and it is told
// once what happens.
func TestFallback(t *testing.T) {
	for _, kind := range []llm.Kind{llm.Overloaded, llm.Unreachable} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			first := &named{name: "first", reply: func(int) error {
				if time.Since(began) < 12*time.Minute {
					return of(kind, 0)
				}
				return nil
			}}
			second := &named{name: "second", reply: func(int) error { return nil }}
			var outages retry.Outages
			var mu sync.Mutex
			var lines []string
			tell := func(line string) {
				mu.Lock()
				defer mu.Unlock()
				lines = append(lines, line)
			}
			var g sync.WaitGroup
			for range 4 {
				g.Go(func() {
					m := retry.Fallback(&outages, tell, candidate("first", first), candidate("second", second))
					for time.Since(began) < 30*time.Minute {
						r, err := m.Reply(t.Context(), llm.Request{}, nil)
						if err != nil {
							t.Error(err)
						}
						if since := time.Since(began); since > 18*time.Minute && r.Model != "first" ||
							since > 2*time.Minute && since < 12*time.Minute && r.Model != "second" {
							t.Errorf("%s answers after %v", r.Model, since)
						}
						time.Sleep(7 * time.Second)
					}
				})
			}
			g.Wait()
			if n := second.n.Load(); n < 4*80 {
				t.Errorf("the second was asked %d times", n)
			}
			if len(lines) != 2 || !strings.HasPrefix(lines[0], "first does not answer, so second is asked") ||
				lines[1] != "first answers again, and is asked again" {
				t.Errorf("told: %q", lines)
			}
		})
	}
}

// Nothing but an outage makes another model answer, and what is shown of a reply that broke off is void.
func TestFallbackOnlyForOutages(t *testing.T) {
	for _, kind := range []llm.Kind{llm.Denied, llm.BadRequest, llm.ContextFull, llm.Spent, llm.BadHistory} {
		synctest.Test(t, func(t *testing.T) {
			first := &named{reply: func(int) error { return of(kind, 0) }}
			second := &named{reply: func(int) error { t.Error("it is asked"); return nil }}
			_, err := ask(retry.Fallback(new(retry.Outages), func(string) { t.Error("it is told") }, candidate("1", first),
				candidate("2", second)))
			if llm.KindOf(err) != kind || first.n.Load() != 1 {
				t.Errorf("%s: %v", kind, err)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		first := &named{name: "first", reply: func(int) error {
			if time.Since(began) < 20*time.Minute {
				return of(llm.Overloaded, 2*time.Minute)
			}
			return nil
		}}
		second := &named{reply: func(int) error { return of(llm.Denied, 0) }}
		m := retry.Fallback(new(retry.Outages), func(string) {}, candidate("1", first), candidate("2", second))
		ds, err := ask(m)
		if err != nil || second.n.Load() != 1 || time.Since(began) < 20*time.Minute {
			t.Errorf("%v after %v; the second was asked %d times", err, time.Since(began), second.n.Load())
		}
		if r, err := retry.Fallback(nil, nil, candidate("1", first)).Reply(t.Context(), llm.Request{}, nil); err != nil || r.Model != "first" {
			t.Errorf("alone: %+v, %v", r, err)
		}
		if d := cmp.Diff([]llm.Delta{{Text: "half"}, {Again: true}, {Text: "half"}, {Again: true}}, ds[:4]); d != "" {
			t.Error(d)
		}
	})
}
