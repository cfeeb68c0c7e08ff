package view

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// redraw replaces the rows of the living members if they have changed. Unchanged rows are not written again, or the
// terminal would flicker and a recording of it would grow.
func (p *Progress) redraw(now time.Time) {
	rows := p.presence.Rows(p.options.Paint, now, p.options.Width, p.subject)
	if len(rows) > 0 {
		rows = append([]string{""}, rows...) // a blank row separates them from what happened
	}
	if slices.Equal(rows, p.drawn) {
		return
	}
	// The old rows are erased by their number, so drawn must always be what stands on the terminal.
	p.erase()
	p.drawn, p.drawnAt = rows, now
	if len(rows) > 0 {
		p.options.Print(strings.Join(rows, "\n") + "\n")
	}
}

// erase removes the living members from the terminal: it moves the cursor up to their first row and clears the rest of
// the screen.
func (p *Progress) erase() {
	if len(p.drawn) > 0 {
		p.options.Print(fmt.Sprintf("\x1b[%dA\r\x1b[J", len(p.drawn)))
	}
	p.drawn = nil
}
