package retry_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/llm"
	"muster/llm/retry"
)

// prompt is a request of about so many tokens.
func prompt(tokens int) llm.Request {
	return llm.Request{System: []string{strings.Repeat("word", tokens)}}
}

// play lets 8 agents of each of some processes ask for a while, as fast as they may.
func play(t *testing.T, processes int, g *gate, account llm.Account, tokens int, during time.Duration) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), during)
		defer cancel()
		var agents sync.WaitGroup
		for range processes {
			var all retry.Limiters
			c := caller{g, account, tokens}
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
		}
		agents.Wait()
	})
	t.Log(g)
}

// A limit that the server says is kept, and used. What other processes use of it is counted in, as far as the answers
// tell in time: some more are refused then.
func TestTheServersLimitIsKept(t *testing.T) {
	for _, c := range []struct{ processes, requests, tokens, refused int }{
		{1, 60, 0, 10}, {1, 20, 0, 10}, {2, 60, 0, 40}, {1, 1000, 30_000, 10}} { // refused of 100 accepted, at most
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			g := &gate{window: time.Minute, requests: c.requests, tokens: c.tokens, latency: 50 * time.Millisecond,
				says: true, after: true}
			play(t, c.processes, g, llm.Account{ID: "a", Model: "m"}, 500, 10*time.Minute)
			_, tokens := g.busiest()
			accepted, refused := g.counts()
			if c.tokens == 0 && accepted < 8*c.requests || tokens < c.tokens*8/10 {
				t.Errorf("only %d requests were accepted, with %d tokens in the busiest minute", accepted, tokens)
			}
			if refused > accepted*c.refused/100 {
				t.Errorf("%d were refused, and %d accepted", refused, accepted)
			}
		})
	}
}

// What the user allows is never passed, by a server without a limit too.
func TestTheUsersLimitIsKept(t *testing.T) {
	for _, n := range []int{1, 7, 40} {
		g := &gate{window: time.Minute, latency: 10 * time.Millisecond}
		play(t, 1, g, llm.Account{ID: "a", Model: "m", Requests: n}, 10, 5*time.Minute)
		if most, _ := g.busiest(); most > n || most < n*8/10 {
			t.Errorf("%d requests in a minute, of %d: %v", most, n, g)
		}
	}
	g := &gate{window: time.Minute, latency: 10 * time.Millisecond}
	play(t, 1, g, llm.Account{ID: "a", Model: "m", Tokens: 10_000}, 1500, 5*time.Minute)
	if _, tokens := g.busiest(); tokens > 11_000 || tokens < 7_000 { // the first requests are estimates
		t.Errorf("%d tokens in a minute: %v", tokens, g)
	}
}
