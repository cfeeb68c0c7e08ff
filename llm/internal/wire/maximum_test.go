package wire

import (
	"context"
	"errors"
	"slices"
	"testing"

	"muster/llm"
)

func TestNamedMaximum(t *testing.T) {
	for _, c := range []struct {
		message string
		want    int
	}{
		{"max_tokens is too large: 50000. This model supports at most 16384 completion tokens, whereas you provided 50000.", 16384},
		{"max_tokens: 50000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet-20241022", 8192},
		{"Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192},
		{"<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 32,768]", 32768},
		{"`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens`", 8192},
		{"Invalid 'max_output_tokens': integer above maximum value. Expected a value <= 4096, but got 50000 instead.", 4096},
		{"max_tokens must be at least 1", 0},
		{"messages[4096]: role is wrong", 0},
		{"max_tokens: 50000 is refused", 0},
	} {
		err := &llm.Error{Kind: llm.BadRequest, Status: 400, Err: errors.New("127.0.0.1:41234 refuses: " + c.message)}
		m := Maximum{Host: "127.0.0.1:41234"}
		if ok := m.Learn(err, 50000); ok != (c.want > 0) || ok && m.Bound(50000) != c.want {
			t.Errorf("%s: %v, %d, want %d", c.message, ok, m.Bound(50000), c.want)
		}
		if m.Bound(0) != 0 || m.Bound(300) != 300 {
			t.Errorf("%s: a smaller limit is changed", c.message)
		}
		err.Kind = llm.ContextFull
		if new(Maximum).Learn(err, 50000) {
			t.Errorf("%s: a full window is taken for a limit", c.message)
		}
	}
}

// A message about prompt and reply together names how long the reply may be.
func TestNamedRoom(t *testing.T) {
	for _, c := range []struct {
		message string
		limit   int
		want    int
	}{
		{"input length and `max_tokens` exceed context limit: 190012 + 20000 > 200000, decrease input length or `max_tokens` and try again", 20000, 9988},
		{"This model's maximum context length is 32768 tokens. However, you requested 37000 tokens (5000 in the messages, 32000 in the completion). Please reduce the length of the messages or completion.", 32000, 27768},
		{"`inputs` tokens + `max_new_tokens` must be <= 16384. Given: 6000 `inputs` tokens and 32000 `max_new_tokens`", 32000, 10384},
		{"This model's maximum context length is 131072 tokens. However, you requested 140225 tokens (136129 in the messages, 4096 in the completion).", 4096, 0},
		{"prompt is too long: 208310 tokens > 200000 maximum", 32000, 0},
		{"prompt is too long: 32000 tokens > 16000 maximum", 32000, 0},
		{"`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 4000 `inputs` tokens and 512 `max_new_tokens`", 512, 0},
	} {
		if got := namedRoom(c.message, c.limit); got != c.want {
			t.Errorf("%s: %d, want %d", c.message, got, c.want)
		}
	}
}

// What gateways say of an account that cannot pay for a reply as long as it was asked for.
func TestNamedAffordable(t *testing.T) {
	for _, c := range []struct {
		message     string
		limit, want int
	}{
		{"This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 29891. To increase, visit https://openrouter.ai/settings/credits and upgrade to a paid account", 64000, 29891},
		{"This request requires more credits, or fewer max_tokens. You requested up to 64000 tokens, but can only afford 29891.", 0, 29891},
		{"More credits or a smaller max_tokens are needed: 64000 tokens were asked for, and you can only afford 29891.", 0, 29891},
		{"Insufficient credits: you can afford at most 12,345 output tokens", 0, 12345},
		{"You cannot afford 64000 tokens; your balance covers 3000 tokens.", 0, 3000},
		{"You can't afford a reply of 64000 tokens, only 3000 tokens", 64000, 3000},
		{"Insufficient balance. Affordable max_tokens: 4096", 0, 4096},
		{"insufficient credit; affordable tokens=8000 (requested 32000)", 32000, 8000},
		{"Payment required: the balance allows 5000 tokens, 32000 were requested", 32000, 5000},
		{"402: you have 7000 tokens remaining on this key", 32000, 7000},
		{"only 1500 tokens can be afforded", 32000, 1500},
		{"you can only afford 29891 tokens", 4000, 0}, // no trouble of the limit
		{"you can only afford 12 tokens", 64000, 0},
		{"you can only afford $0.50 of this request", 64000, 0},
		{"you can only afford 512.75 of this request", 64000, 0},
		{"Insufficient Balance", 64000, 0},
		{"Prompt tokens limit exceeded: 5121 > 3902. To increase, visit https://openrouter.ai/settings/credits", 64000, 0},
		{"Your credit balance is too low to access the Anthropic API.", 64000, 0},
	} {
		if got := namedAffordable(c.message, c.limit); got != c.want {
			t.Errorf("%s: %d, want %d", c.message, got, c.want)
		}
	}
}

// A reply that is cut is asked for again with twice as much, as far as there is more.
func TestAsk(t *testing.T) {
	// server allows so many tokens of a reply, and ends one that may have so many.
	server := func(allows, ends int) func(limit int) (llm.Reply, bool, error) {
		return func(limit int) (llm.Reply, bool, error) {
			if limit > allows {
				return llm.Reply{}, false, &llm.Error{Kind: llm.BadRequest, Status: 400,
					Err: errors.New("max_tokens is too large, at most 40000")}
			}
			n := ends
			if limit == 0 {
				limit = 4096
			}
			n = min(n, limit)
			return llm.Reply{Usage: llm.Usage{Output: n}}, n < ends, nil
		}
	}
	for name, c := range map[string]struct {
		limit, most int
		ask         func(limit int) (llm.Reply, bool, error)
		asked       []int
		cost        int
	}{
		"not cut":               {32000, 128000, server(1e6, 10), []int{32000}, 10},
		"doubled":               {32000, 128000, server(1e6, 100000), []int{32000, 64000, 128000}, 32000 + 64000 + 100000},
		"never enough":          {32000, 100000, server(1e6, 1e6), []int{32000, 64000, 100000}, 196000},
		"the longest already":   {64000, 64000, server(1e6, 1e6), []int{64000}, 64000},
		"a limit of the user":   {900, 900, server(1e6, 1e6), []int{900}, 900},
		"no limit was sent":     {0, 128000, server(1e6, 20000), []int{0, 32000}, 4096 + 20000},
		"too much, and named":   {32000, 128000, server(40000, 1e6), []int{32000, 64000, 40000}, 72000},
		"nothing more is taken": {40000, 128000, server(40000, 1e6), []int{40000, 80000}, 40000},
		"refused at first":      {64000, 128000, server(40000, 10), []int{64000, 40000}, 10},
	} {
		var m Maximum
		var asked []int
		voids := 0
		r, err := m.Ask(c.limit, c.most, func(d llm.Delta) {
			if d.Again {
				voids++
			}
		}, func(limit int) (llm.Reply, bool, error) {
			asked = append(asked, limit)
			return c.ask(limit)
		})
		if err != nil || !slices.Equal(asked, c.asked) || r.Usage.Output != c.cost {
			t.Errorf("%s: asked for %v at a cost of %d: %v", name, asked, r.Usage.Output, err)
		}
		if name == "doubled" && voids != 2 {
			t.Errorf("%d replies were void", voids)
		}
	}
	// A longer reply that cannot be had takes nothing away; the user's own word does.
	for cause, want := range map[error]error{
		error(llm.Errorf(llm.Overloaded, "later")): nil, context.Canceled: context.Canceled,
	} {
		r, err := new(Maximum).Ask(100, 1000, nil, func(limit int) (llm.Reply, bool, error) {
			if limit > 100 {
				return llm.Reply{}, false, cause
			}
			return llm.Reply{Stop: llm.StopMax}, true, nil
		})
		if !errors.Is(err, want) || err == nil && r.Stop != llm.StopMax {
			t.Errorf("%v: %+v, %v", cause, r, err)
		}
	}
}
