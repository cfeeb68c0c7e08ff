package watch

import (
	"context"
	"maps"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/text"
	"muster/loop"
	"muster/team"
)

const (
	// wordsInterval is the shortest time between two messages about words that stream in. Models are faster than that,
	// and a frame for each word would be drawn for nobody.
	wordsInterval = 100 * time.Millisecond
	// maxWords is how many bytes of a member's words are kept while they stream. Of a reply that is longer the
	// beginning is seen when the transcript has it.
	maxWords = 16 << 10
)

// words are what a member says while it streams in, and what its tool prints. They are for the eye only: some of them
// may be missing, and the transcript has all of them a moment later.
type words struct {
	text     string
	part     int
	progress []string // the last lines, at most shortOutput
	hasEnded bool     // the next word begins another reply
}

// wordsMsg has the words of all members.
type wordsMsg map[muster.Name]words

// follow returns the words after another event of a turn. The words of a reply stay when it has ended, until the next
// one begins, because the transcript may be a moment later. A reply that is asked for again begins anew.
func (w words) follow(e loop.Event) words {
	switch e := e.(type) {
	case loop.TextDelta:
		if w.hasEnded {
			w = words{}
		}
		if w.text != "" && e.Part != w.part {
			w.text += "\n"
		}
		w.part, w.text = e.Part, w.text+e.Text
		w.text = text.LastBytes(w.text, maxWords)
	case loop.ReplyDiscarded:
		return words{}
	case loop.TurnEnded:
		w.hasEnded, w.progress = true, nil
	case loop.ToolProgress:
		// A new slice, because the screen may still draw the old one.
		w.progress = append(slices.Clone(w.progress[max(len(w.progress)-shortOutput+1, 0):]), e.Text)
	}
	return w
}

// sendWords sends the model what members say while it streams in, until ctx ends. Each message has all words, and the
// screen draws those of the member that it shows.
func sendWords(ctx context.Context, t *team.Team, send func(tea.Msg)) {
	all, isNew := map[muster.Name]words{}, false
	tick := time.NewTimer(0)
	defer tick.Stop()
	// due is nil while nothing is new, and then nothing wakes up.
	var due <-chan time.Time
	events := t.Subscribe(ctx)
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			if turn, ok := e.(team.TurnEvent); ok {
				all[turn.Member] = all[turn.Member].follow(turn.Event)
				isNew = true
			}
		case <-due:
			send(wordsMsg(maps.Clone(all)))
			isNew, due = false, nil
		}
		if isNew && due == nil {
			tick.Reset(wordsInterval)
			due = tick.C
		}
	}
}
