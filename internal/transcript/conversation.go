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

// conversation builds, entry by entry, what is sent to a model: a history that starts with the user, whatever entries
// were lost.
type conversation struct{ llm.History }

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

func (c *conversation) reply(e Entry) {
	for _, call := range c.Unanswered() { // an entry between was lost
		r := llm.ErrorResult(lostResult)
		r.ID = call.ID
		c.Answer(r)
	}
	if c.Len() == 0 {
		c.Say(llm.Text{Text: lostStart})
	}
	parts := e.Message.Parts
	if e.Stop == llm.StopMax { // its last call may be cut, and none of them is run
		parts = slices.DeleteFunc(slices.Clone(parts), func(p llm.Part) bool { _, is := p.(llm.Call); return is })
	}
	c.Reply(parts...)
}
