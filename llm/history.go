package llm

import "slices"

// History builds a conversation in the form that every provider accepts, in whatever order its parts come
// in: roles alternate, no message is empty, and a reply with calls is followed by nothing, or by a user
// message that begins with all their results in the order of the calls. A history is only added to:
// messages that it has returned never change. The zero History is empty.
type History struct {
	msgs []Message

	// What becomes the user message that answers the last reply's calls. calls is empty unless some are
	// unanswered.
	calls   []Call
	results []*Result // by call
	rest    []Part    // what else came in; it goes after the results
}

// NewHistory returns a history that begins with messages, which must keep the rules already.
func NewHistory(begin []Message) *History { return &History{msgs: slices.Clone(begin)} }

// Say adds what the model is told. While calls are unanswered, it is held back until it can follow their
// results.
func (h *History) Say(parts ...Part) {
	if len(h.calls) > 0 {
		h.rest = append(h.rest, parts...)
		return
	}
	h.put(User, parts)
}

// Reply adds what the model said. Its calls wait for their results; those of the reply before must all have
// theirs (see Unanswered).
func (h *History) Reply(parts ...Part) {
	h.put(Assistant, parts)
	h.calls = Message{Parts: parts}.Calls()
	h.results, h.rest = make([]*Result, len(h.calls)), nil
}

// Answer adds the result of a call and reports whether one with its id waits for it. Some servers give two
// calls of one reply the same id: then the first of them gets it.
func (h *History) Answer(r Result) bool {
	i := h.open(r.ID)
	if i < 0 {
		return false
	}
	h.results[i] = &r
	if slices.Contains(h.results, nil) {
		return true
	}
	var parts []Part
	for _, r := range h.results {
		parts = append(parts, *r)
	}
	h.calls = nil
	h.put(User, append(parts, h.rest...))
	return true
}

// Unanswered returns the calls that wait for their results, in order.
func (h *History) Unanswered() (calls []Call) {
	for i, call := range h.calls {
		if h.results[i] == nil {
			calls = append(calls, call)
		}
	}
	return calls
}

// Answered reports whether the last reply's call with the id has its result.
func (h *History) Answered(id string) bool {
	if len(h.calls) > 0 {
		return h.open(id) < 0 && slices.ContainsFunc(h.calls, func(c Call) bool { return c.ID == id })
	}
	if n := len(h.msgs); n >= 1 {
		return slices.ContainsFunc(h.msgs[n-1].Parts,
			func(p Part) bool { r, ok := p.(Result); return ok && r.ID == id })
	}
	return false
}

// Messages returns the conversation so far, without what is held back for unanswered calls.
func (h *History) Messages() []Message { return slices.Clone(h.msgs) }

// Len returns how many messages there are.
func (h *History) Len() int { return len(h.msgs) }

// open returns the index of the first unanswered call with the id, or -1.
func (h *History) open(id string) int {
	for i, call := range h.calls {
		if call.ID == id && h.results[i] == nil {
			return i
		}
	}
	return -1
}

// put adds parts to the last message if it has the role, else a message.
func (h *History) put(role Role, parts []Part) {
	if len(parts) == 0 {
		return
	}
	if n := len(h.msgs) - 1; n >= 0 && h.msgs[n].Role == role {
		h.msgs[n].Parts = append(slices.Clip(h.msgs[n].Parts), parts...)
		return
	}
	h.msgs = append(h.msgs, Message{Role: role, Parts: slices.Clip(parts)})
}
