package transcript

import (
	"slices"

	"muster/llm"
)

// What stands where an entry could not be read.
const (
	lostStart  = "(The beginning of this conversation cannot be read any more.)"
	lostResult = "The record of this result cannot be read any more; the outcome is unknown: check first."
)

// conversation builds, entry by entry, what is sent to a model. It keeps three rules whatever the entries are: it
// starts with the user, roles alternate, and an assistant message with calls is followed by nothing, or by a user message
// that begins with all their results in the order of the calls. What was in it never changes and is only added to.
type conversation struct {
	msgs  []llm.Message
	round *round // the last reply's calls, while some are unanswered
}

// round is the user message that answers a reply's calls, while it is made.
type round struct {
	calls   []llm.Call
	results []*llm.Result // by call
	rest    []llm.Part    // what else came in; it stands after the results
}

func (c *conversation) add(e Entry) {
	switch e.Kind {
	case KindFresh:
		*c = conversation{}
	case KindUser:
		if c.round != nil {
			c.round.rest = append(c.round.rest, e.Message.Parts...)
			return
		}
		c.put(llm.User, e.Message.Parts)
	case KindReply:
		c.reply(e)
	case KindResult:
		r, _ := e.result()
		if i := c.open(r.ID); i >= 0 {
			c.round.results[i] = &r
			c.close()
		}
	}
}

func (c *conversation) reply(e Entry) {
	if c.round != nil { // an entry between was lost
		for i, call := range c.round.calls {
			if c.round.results[i] == nil {
				r := llm.Sorry(lostResult)
				r.ID = call.ID
				c.round.results[i] = &r
			}
		}
		c.close()
	}
	if len(c.msgs) == 0 {
		c.put(llm.User, []llm.Part{llm.Text{Text: lostStart}})
	}
	m := *e.Message
	if e.Stop == llm.StopMax { // its last call may be cut, and none of them is run
		m.Parts = slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	c.put(llm.Assistant, m.Parts)
	if calls := m.Calls(); len(calls) > 0 {
		c.round = &round{calls: calls, results: make([]*llm.Result, len(calls))}
	}
}

// open is the first unanswered call with the id, or -1. Some servers give two calls of one reply the same id.
func (c *conversation) open(id string) int {
	if c.round == nil {
		return -1
	}
	for i, call := range c.round.calls {
		if call.ID == id && c.round.results[i] == nil {
			return i
		}
	}
	return -1
}

// close ends the round if all is answered.
func (c *conversation) close() {
	if slices.Contains(c.round.results, nil) {
		return
	}
	var parts []llm.Part
	for _, r := range c.round.results {
		parts = append(parts, *r)
	}
	parts = append(parts, c.round.rest...)
	c.round = nil
	c.put(llm.User, parts)
}

// put adds parts to the last message if it has the role, else a message. Slices handed out before stay as they are.
func (c *conversation) put(role llm.Role, parts []llm.Part) {
	if len(parts) == 0 {
		return // no provider takes an empty message
	}
	if n := len(c.msgs) - 1; n >= 0 && c.msgs[n].Role == role {
		c.msgs[n].Parts = append(slices.Clip(c.msgs[n].Parts), parts...)
		return
	}
	c.msgs = append(c.msgs, llm.Message{Role: role, Parts: slices.Clip(parts)})
}

func (c *conversation) unanswered() (calls []llm.Call) {
	if c.round == nil {
		return nil
	}
	for i, call := range c.round.calls {
		if c.round.results[i] == nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// answered reports whether the last reply's call with the id has its result.
func (c *conversation) answered(id string) bool {
	if c.round != nil {
		return c.open(id) < 0 && slices.ContainsFunc(c.round.calls, func(k llm.Call) bool { return k.ID == id })
	}
	if n := len(c.msgs); n >= 1 {
		for _, p := range c.msgs[n-1].Parts {
			if r, ok := p.(llm.Result); ok && r.ID == id {
				return true
			}
		}
	}
	return false
}
