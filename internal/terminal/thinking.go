package terminal

import (
	"fmt"
	"time"

	"muster/internal/text"
)

// maxThinkingRows limits the rows that are shown while the model thinks.
const maxThinkingRows = 4

// thinking is what the model thinks. It is shown while it streams, and then folds to one row.
type thinking struct {
	text  string
	since time.Time
	// last is what was folded last.
	last string
}

// add appends a piece.
func (t *thinking) add(piece string) {
	if t.text == "" {
		t.since = time.Now()
	}
	t.text += piece
}

// fold ends the thinking and returns the row that takes its place, or "" where there was none.
func (t *thinking) fold() string {
	if t.text == "" {
		return ""
	}
	took := time.Since(t.since).Round(time.Second)
	t.last, t.text = clean(t.text), ""
	return fmt.Sprintf("thought for %d s (Ctrl-O shows it)", max(int(took.Seconds()), 1))
}

// growingRows returns the last rows of what the model thinks now, at most limit.
func (t *thinking) growingRows(width, limit int) []string {
	if t.text == "" || limit <= 0 {
		return nil
	}
	const enough = 8 << 10 // bytes of which the last rows are made, so that a long text costs no more
	rows := text.WrapColoured(clean(text.WholeRunes(text.LastBytes(t.text, enough))), width, false)
	return rows[max(0, len(rows)-min(limit, maxThinkingRows)):]
}

// showThinking prints what was folded last.
func (s *screen) showThinking() {
	if s.thinking.last != "" {
		s.queue.put(item{kind: printed, text: s.paint(faint, s.thinking.last)})
	}
}
