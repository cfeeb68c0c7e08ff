package retry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"muster/llm"
)

// gate is a stand-in with a limit on the requests and the tokens of any window. It counts refused requests against
// neither.
type gate struct {
	window           time.Duration
	requests, tokens int           // 0: no limit
	latency          time.Duration // of an answer, a refusal too
	reply            time.Duration // of a reply, after its answer
	says             bool          // its limits, with each answer
	after            bool          // when to come back, with a refusal

	mu      sync.Mutex
	arrived []arrival
}

// arrival is a request at the gate.
type arrival struct {
	at       time.Time
	tokens   int
	accepted bool
}

// arrive decides about a request.
func (g *gate) arrive(tokens int) (a llm.Answer, after time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	n, k, oldest := 0, 0, now
	for _, x := range g.arrived {
		if x.accepted && now.Sub(x.at) < g.window {
			if n++; n == 1 {
				oldest = x.at
			}
			k += x.tokens
		}
	}
	ok := (g.requests == 0 || n < g.requests) && (g.tokens == 0 || k+tokens <= g.tokens)
	g.arrived = append(g.arrived, arrival{now, tokens, ok})
	a.Status = http.StatusOK
	if ok {
		n, k = n+1, k+tokens
	} else {
		a.Status = http.StatusTooManyRequests
	}
	if after = g.window - now.Sub(oldest); g.says && g.requests > 0 {
		a.Requests = llm.Quota{Limit: g.requests, Remaining: g.requests - n, Reset: g.window}
	}
	if g.says && g.tokens > 0 {
		a.Tokens = llm.Quota{Limit: g.tokens, Remaining: g.tokens - k, Reset: g.window}
	}
	return a, after
}

// busiest returns the most requests, refused ones too, and the most accepted tokens of any window.
func (g *gate) busiest() (requests, tokens int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, first := range g.arrived {
		n, k := 0, 0
		for _, x := range g.arrived[i:] {
			if x.at.Sub(first.at) >= g.window {
				break
			}
			if n++; x.accepted {
				k += x.tokens
			}
		}
		requests, tokens = max(requests, n), max(tokens, k)
	}
	return requests, tokens
}

// counts returns how many requests were accepted and refused.
func (g *gate) counts() (accepted, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, x := range g.arrived {
		if x.accepted {
			accepted++
		} else {
			refused++
		}
	}
	return accepted, refused
}

// String says what was busiest, for a test's log.
func (g *gate) String() string {
	requests, tokens := g.busiest()
	accepted, refused := g.counts()
	return fmt.Sprintf("busiest window: %d requests, %d tokens; %d accepted, %d refused", requests, tokens, accepted, refused)
}

// caller is a model behind a gate.
type caller struct {
	*gate
	account llm.Account
	tokens  int // of each request
}

// Account implements what retry.Limiters asks.
func (c caller) Account() llm.Account { return c.account }

// Reply implements llm.Model. It runs in a bubble of synctest.
func (c caller) Reply(ctx context.Context, _ llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	a, after := c.arrive(c.tokens)
	time.Sleep(c.latency)
	emit(llm.Delta{Answer: &a})
	if a.Status == http.StatusTooManyRequests {
		e := &llm.Error{Kind: llm.Limited, Status: a.Status, Err: errors.New("too many requests")}
		if c.after {
			e.After = after
		}
		return llm.Reply{}, e
	}
	time.Sleep(c.reply)
	return llm.Reply{Stop: llm.StopEnd, Usage: llm.Usage{Input: c.tokens}}, ctx.Err()
}
