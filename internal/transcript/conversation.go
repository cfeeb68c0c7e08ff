package transcript

import (
	"slices"

	"muster/llm"
)

// What stands where an entry could not be read.
const (
	// These texts stand where an entry could not be read.
	lostStartText  = "(The beginning of this conversation cannot be read any more.)"
	lostResultText = "The record of this result cannot be read any more; the outcome is unknown: check first."
)

// conversation builds what is sent to a model, entry by entry. The history is always one that a model accepts,
// whatever entries were lost.
type conversation struct{ llm.History }

// add appends what an entry says.
func (c *conversation) add(e Entry) {
	switch e.Kind {
	case KindFresh:
		*c = conversation{}
		if e.Message != nil { // an older muster wrote the words after it
			c.Say(e.Message.Parts...)
		}
	case KindUser:
		c.Say(e.Message.Parts...)
	case KindReply:
		c.reply(e)
	case KindResult:
		r, _ := e.result()
		c.Answer(r)
	}
}

// reply appends a reply of the model. Where entries before it were lost, it first closes the gap: open calls are
// answered, and a history never begins with a reply. Calls of a reply that was cut off are dropped, because the last
// one may be incomplete and none of them was run.
func (c *conversation) reply(e Entry) {
	for _, call := range c.Unanswered() { // an entry between was lost
		r := llm.ErrorResult(lostResultText)
		r.ID = call.ID
		c.Answer(r)
	}
	if c.Len() == 0 {
		c.Say(llm.Text{Text: lostStartText})
	}
	parts := e.Message.Parts
	if e.Stop == llm.StopMax { // its last call may be cut, and none of them is run
		parts = slices.DeleteFunc(slices.Clone(parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	c.Reply(parts...)
}
