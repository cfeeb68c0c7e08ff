package team

import (
	"reflect"
	"testing"

	"muster/llm"
	"muster/loop"
)

// TestPiecesAreEvents: what streams in another process is the event that it was, without what only that process knows.
func TestPiecesAreEvents(t *testing.T) {
	for _, e := range []loop.Event{loop.TextDelta{Part: 2, Text: "a"}, loop.ThinkingDelta{Part: 1, Text: "b"}, loop.ReplyDiscarded{}, loop.TurnEnded{},
		loop.ToolProgress{Text: "c"}} {
		p, ok := pieceOf(TurnEvent{Member: "alice", Event: e})
		if !ok {
			t.Errorf("%T streams not", e)
			continue
		}
		if got := eventOf(p); !reflect.DeepEqual(got, e) {
			t.Errorf("%+v has become %+v", e, got)
		}
	}
	if p, ok := pieceOf(TurnEvent{Event: loop.ToolStarted{Call: llm.Call{}}}); ok {
		t.Errorf("the beginning of a call is %+v", p)
	}
}
