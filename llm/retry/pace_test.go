package retry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/llm"
	"muster/llm/retry"
)

// prompt is a request of about so many tokens.
func prompt(tokens int) llm.Request {
	return llm.Request{System: []string{strings.Repeat("word", tokens)}}
}

// play lets 8 agents of each of two processes ask for a while, one process beginning a little later, as fast as they
// may. Each process is a Limiters of its own, on one directory.
func play(t *testing.T, dir string, g *gate, account llm.Account, tokens int, during time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), during)
		defer cancel()
		var agents sync.WaitGroup
		for p := range 2 {
			all := &retry.Limiters{Dir: dir}
			c := caller{g, account, fmt.Sprint("process ", p), tokens}
			for range 8 {
				agents.Go(func() {
					// A wrapper such as what counts the cost does not know the account.
					m := retry.Wrap(struct{ llm.Model }{c}, retry.Options{Limiter: all.Of(c), Account: retry.AccountOf(c)})
					for ctx.Err() == nil {
						if _, err := m.Reply(ctx, prompt(tokens), nil); err != nil && ctx.Err() == nil {
							t.Error(err)
							return
						}
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
		}
		agents.Wait()
	})
}

// Two processes with one key pass no limit by more than 5%, use what they may, and share it. Whether the server says
// its limit, when to come back, or nothing at all makes no difference.
func TestTwoProcessesKeepALimit(t *testing.T) {
	n := -1
	type shape struct {
		limit          int
		latency, reply time.Duration
	}
	for _, s := range []shape{{60, time.Millisecond, 0}, {60, 200 * time.Millisecond, time.Second}, {30, time.Second, 2 * time.Second},
		{120, 20 * time.Millisecond, 100 * time.Millisecond}, {20, 50 * time.Millisecond, 0}} {
		minutes := max(3, 240/s.limit) // with fewer requests chance alone would favour one of the two
		for _, says := range []string{"nothing", "when to come back", "its limit"} {
			if n++; n >= tier.Amount(3, 15) {
				continue
			}
			t.Run(fmt.Sprint(s, " says ", says), func(t *testing.T) {
				g := &gate{window: time.Minute, requests: s.limit, latency: s.latency, reply: s.reply,
					says: says == "its limit", after: says != "nothing"}
				play(t, t.TempDir(), g, llm.Account{ID: "a", Model: "m"}, 10, time.Duration(minutes)*time.Minute)
				t.Log(g)
				most, _ := g.busiest()
				if most*20 > s.limit*21 {
					t.Errorf("%d requests in a minute, with a limit of %d", most, s.limit)
				}
				a := g.accepted()
				one, other := a["process 0"], a["process 1"]
				if (one+other)*100 < s.limit*minutes*80 {
					t.Errorf("only %d of %d requests", one+other, s.limit*minutes)
				}
				if 3*min(one, other) < 2*max(one, other) {
					t.Errorf("one process had %d requests, the other %d", one, other)
				}
			})
		}
	}
}

// A limit on tokens is kept as well.
func TestTwoProcessesKeepALimitOfTokens(t *testing.T) {
	g := &gate{window: time.Minute, requests: 1000, tokens: 30_000, latency: 50 * time.Millisecond, says: true, after: true}
	play(t, t.TempDir(), g, llm.Account{ID: "a", Model: "m"}, 500, 5*time.Minute)
	t.Log(g)
	refused := 0
	for _, x := range g.arrived {
		if !x.accepted {
			refused++
		}
	}
	if _, tokens := g.busiest(); tokens < 25_000 || refused > len(g.arrived)/20 {
		t.Errorf("%d tokens a minute; %d of %d requests were refused", tokens, refused, len(g.arrived))
	}
}

// What the user allows is obeyed exactly, by a server without a limit too.
func TestTheUsersLimitIsKept(t *testing.T) {
	g := &gate{window: time.Minute, latency: 10 * time.Millisecond}
	play(t, t.TempDir(), g, llm.Account{ID: "a", Model: "m", Requests: 40}, 10, 5*time.Minute)
	if most, _ := g.busiest(); most != 40 {
		t.Errorf("%d requests in a minute: %v", most, g)
	}
}

// A process that is alone asks without a pause as long as all it has asked is accepted; and as soon as another one asks
// as well, the two take turns.
func TestAProcessAloneDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{window: time.Minute, requests: 1000}
		dir, account := t.TempDir(), llm.Account{ID: "a", Model: "m"}
		ask := func(all *retry.Limiters, from string) time.Duration {
			c := caller{g, account, from, 10}
			m := retry.Wrap(struct{ llm.Model }{c}, retry.Options{Limiter: all.Of(c), Account: retry.AccountOf(c)})
			began := time.Now()
			require.Value(m.Reply(t.Context(), prompt(10), nil))(t)
			return time.Since(began)
		}
		one, other := &retry.Limiters{Dir: dir}, &retry.Limiters{Dir: dir}
		for i := range 100 {
			if d := ask(one, "one"); d != 0 {
				t.Fatalf("request %d waits for %v", i, d)
			}
		}
		if ask(other, "other") == 0 || ask(one, "one") == 0 {
			t.Error("two processes ask without a pause")
		}
	})
}
