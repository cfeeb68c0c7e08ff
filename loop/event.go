package loop

import "muster/llm"

// Event is something that a user interface may show while an agent works: TurnStarted, TextDelta, ThinkingDelta,
// ReplyDiscarded, TurnEnded, ToolStarted, ToolProgress or ToolEnded. The set is closed; it may grow, so a switch over
// it has a default. Events are for display only: what happened is in the Conversation.
type Event interface{ event() }

type (
	// TurnStarted says that the model is asked. Turn counts the turns of this run, from 1.
	TurnStarted struct{ Turn int }

	// TextDelta is more of a text that streams in. Part says which part of the reply it belongs to; it only rises.
	TextDelta struct {
		Part int
		Text string
	}

	// ThinkingDelta is more of the model's thinking, as far as the model shows it. Part is as in TextDelta.
	ThinkingDelta struct {
		Part int
		Text string
	}

	// ReplyDiscarded says that the text and the thinking of this turn so far are void: the model is asked again.
	ReplyDiscarded struct{}

	// TurnEnded has the finished reply, with what it cost. The conversation has kept it.
	TurnEnded struct {
		Turn  int
		Reply llm.Reply
	}

	// ToolStarted says that a tool begins to run.
	ToolStarted struct{ Call llm.Call }

	// ToolProgress is a line of what a running tool does.
	ToolProgress struct {
		Call llm.Call
		Text string
	}

	// ToolEnded has the answer to a call. The conversation has kept it, unless Err says why not. Err is also set when
	// the runtime failed or was cancelled while the tool ran. A call that could not be started has no ToolStarted.
	ToolEnded struct {
		Call   llm.Call
		Result llm.Result
		Err    error
	}
)

func (TurnStarted) event()    {}
func (TextDelta) event()      {}
func (ThinkingDelta) event()  {}
func (ReplyDiscarded) event() {}
func (TurnEnded) event()      {}
func (ToolStarted) event()    {}
func (ToolProgress) event()   {}
func (ToolEnded) event()      {}

// emitDelta makes events of what streams in. An empty delta, by which a model says that it is at work, makes none.
func (a Agent) emitDelta(d llm.Delta) {
	if d.Again {
		a.Emit(ReplyDiscarded{})
	}
	if d.Think != "" {
		a.Emit(ThinkingDelta{Part: d.Part, Text: d.Think})
	}
	if d.Text != "" {
		a.Emit(TextDelta{Part: d.Part, Text: d.Text})
	}
}
