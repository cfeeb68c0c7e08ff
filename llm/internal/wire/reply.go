package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"muster/internal/text"
	"muster/llm"
)

// Finish returns the reply with these parts, the calls among them as the server sent them. Calls count only
// if the reply ended by itself: in a reply that was cut or refused a call may be incomplete, and an
// incomplete call must never run.
//
// Of calls with the same id only one is kept if they are the same call. A call without an id, or with that of another
// one in the conversation, gets one made from its place in it. It is the same when the request is sent again, and
// different from that of any other call. What the server wants back with the call names the call by its own id, so it
// is dropped then.
//
// A call without a name gets one that no tool has, and the model reads so in its result.
//
// A reply with more calls than MaxCalls, or with a call that is too large to run, is taken for one that was cut at its
// length limit: its model is told to go on in smaller steps.
func (x *Exchange) Finish(r llm.Reply, parts []llm.Part) (llm.Reply, bool, error) {
	r.Message.Role, r.Model = llm.Assistant, cmp.Or(text.FirstBytes(r.Model, maxModelName), x.Model)
	r.Usage = clampUsage(r.Usage)
	calls := callList{messages: len(x.request.Messages), seen: map[string]llm.Call{}}
	for _, m := range x.request.Messages {
		for _, c := range m.Calls() {
			calls.seen[c.ID] = llm.Call{}
		}
	}
	canRun := r.Stop == llm.StopEnd
	for _, p := range parts {
		if c, ok := p.(llm.Call); ok {
			if !canRun {
				continue
			}
			if c.Name == "" && len(bytes.TrimSpace(c.Input)) == 0 {
				continue // nothing was called
			}
			c.Name = cmp.Or(c.Name, nameless)
			if problem := tooLarge(c); problem != "" {
				return x.withoutCalls(r, "a call that "+problem), true, nil
			}
			input, err := llm.Input(c.Input)
			if err != nil { // whoever runs the calls repairs it, or tells the model: asking again is no use
				input, c.Malformed = json.RawMessage("{}"), string(c.Input)
			}
			if c.Input = input; !calls.add(&c) {
				continue
			}
			if calls.n > MaxCalls {
				return x.withoutCalls(r, fmt.Sprintf("more than %d calls", MaxCalls)), true, nil
			}
			r.Stop = llm.StopTools
			p = c
		}
		r.Message.Parts = append(r.Message.Parts, p)
	}
	return r, true, nil
}

// nameless is the name of a call that came without one. No tool has it, so the model is told which there are.
const nameless = "call_without_a_name"

// callList gives the calls of a reply their ids.
type callList struct {
	messages int // of the request
	n        int // calls so far
	seen     map[string]llm.Call
}

// add gives c an id that no other call of the conversation has. ok is false if c is a call of this reply once more.
func (l *callList) add(c *llm.Call) (ok bool) {
	before, isTaken := l.seen[c.ID]
	if isTaken && c.ID != "" && before.Name == c.Name && bytes.Equal(before.Input, c.Input) &&
		before.Malformed == c.Malformed {
		return false
	}
	l.n++
	called := *c
	for i := l.n; c.ID == "" || isTaken; i++ {
		c.ID, c.Opaque = fmt.Sprintf("call_%d_%d", l.messages, i), nil
		_, isTaken = l.seen[c.ID]
	}
	l.seen[c.ID] = called
	return true
}

// tooLarge returns in what respect a call is too large to run, or "".
func tooLarge(c llm.Call) string {
	switch {
	case len(c.Input) > MaxInput:
		return "has more than " + formatSize(MaxInput)
	case max(len(c.ID), len(c.Name)) > maxID:
		return fmt.Sprintf("has a name of more than %d bytes", maxID)
	}
	return checkJSON(c.Input)
}

// withoutCalls returns a reply that was cut at its length limit. Its model reads why.
func (x *Exchange) withoutCalls(r llm.Reply, has string) llm.Reply {
	r.Stop, x.isOverfull = llm.StopMax, true
	r.Message.Parts = slices.DeleteFunc(r.Message.Parts, func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	why := "[This reply had " + has + ", and none may. It was cut here.]"
	r.Message.Parts = append(r.Message.Parts, llm.Text{Text: why})
	return r
}

// IsCut reports whether the server has cut a reply of this exchange at its limit. A longer one may do then.
func (x *Exchange) IsCut(r llm.Reply) bool { return r.Stop == llm.StopMax && !x.isOverfull }

// clampUsage returns numbers that can be added up: a server may report any.
func clampUsage(u llm.Usage) llm.Usage {
	clamp := func(n int) int { return min(max(n, 0), maxTokens) }
	return llm.Usage{Input: clamp(u.Input), Output: clamp(u.Output), CacheRead: clamp(u.CacheRead),
		CacheWrite: clamp(u.CacheWrite), CacheWriteLong: clamp(u.CacheWriteLong)}
}
