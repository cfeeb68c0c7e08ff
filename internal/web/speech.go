package web

import (
	"context"

	"muster"
	"muster/loop"
	"muster/team"
)

// piece is a piece of what a member says while it streams in, or of what its tool prints. It is for the eye only: some
// may be missing, and the transcript has all a moment later.
type piece struct {
	// Kind is "text", "think" (the model's thinking), "again" (the words so far are void), "end" (the transcript has
	// the reply) or "progress".
	Kind string `json:"kind"`
	Part int    `json:"part,omitempty"` // of the reply, which only rises
	Text string `json:"text,omitempty"`
}

// followSpeech sends what one member says, until ctx ends. The members never wait for it: who is too slow misses words.
func (s *Server) followSpeech(ctx context.Context, name muster.Name, spoken chan<- piece) {
	// The subscription has to be read to its end, which comes with ctx.
	for e := range s.team.Subscribe(ctx) {
		turn, ok := e.(team.TurnEvent)
		if !ok || turn.Member != name {
			continue
		}
		var p piece
		switch e := turn.Event.(type) {
		case loop.TextDelta:
			p = piece{"text", e.Part, e.Text}
		case loop.ThinkingDelta:
			p = piece{"think", e.Part, e.Text}
		case loop.ReplyDiscarded:
			p = piece{Kind: "again"}
		case loop.TurnEnded:
			p = piece{Kind: "end"}
		case loop.ToolProgress:
			p = piece{Kind: "progress", Text: e.Text}
		default:
			continue
		}
		// Where the page is slow this waits, and the subscription drops words meanwhile: the team goes on.
		select {
		case spoken <- p:
		case <-ctx.Done():
			// The loop ends when the channel is closed.
		}
	}
}
