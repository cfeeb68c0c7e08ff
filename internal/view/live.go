package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/text"
)

const (
	// boardInterval is how often the board is read at most: it may have many tasks, and events come in bursts.
	boardInterval = time.Second
	// leastMembers and mostMembers are how many members are shown where the terminal is low, and at most.
	leastMembers, mostMembers = 2, 12
)

// isLive reports whether rows are drawn below the lines here.
func (p *Progress) isLive() bool {
	return p.options.Width > 0 && !p.options.OnlyLines && p.drawer == nil
}

// DrawnBy has another one print the lines and draw the rows, which it gets from Rows, and answer questions by one key.
// nil takes both back.
func (p *Progress) DrawnBy(print func(text string)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.repaint("", nil) // nothing of it stays on the terminal
	p.drawer = print
}

// print writes a text to the terminal.
func (p *Progress) print(text string) {
	if p.drawer != nil {
		p.drawer(text)
		return
	}
	p.options.Print(text)
}

// measure asks for the size of the terminal, and reports whether its width is another one than before.
func (p *Progress) measure() (isResized bool) {
	if p.options.Size == nil || !p.isLive() {
		return false
	}
	// A terminal that does not say its size keeps the one that it had.
	width, height := p.options.Size()
	isResized = width > 0 && width != p.options.Width
	if width > 0 {
		p.options.Width, p.height = width, height
	}
	return isResized
}

// redraw shows the members, the board, and what waits for the user as they are now. The user may have resized the
// terminal meanwhile.
func (p *Progress) redraw(now time.Time) {
	p.measure()
	rows := p.liveRows(now)
	if len(rows) > 0 {
		rows = append([]string{""}, rows...) // a blank row separates them from what happened
	}
	// Unchanged rows are not written again, or a recording of the terminal would grow.
	if !slices.Equal(rows, p.drawn) {
		p.drawnAt = now
		p.repaint("", rows)
	}
}

// liveRows returns what stands below the lines, in less columns than the terminal has. They are never so many that the
// first of them scrolls away, because it could not be reached any more.
func (p *Progress) liveRows(now time.Time) []string {
	below := p.boardRows(now, max(p.height-3, 0))
	// The rows below them say what waits, so they stay, and members give way.
	most := mostMembers
	if p.height > 0 {
		most = min(max(p.height-len(below)-5, leastMembers), mostMembers)
	}
	return append(p.presence.rows(p.options.Paint, now, p.options.Width, most, p.subject), below...)
}

// repaint writes text above the live rows, where it stays, and then the rows. All of it is one write in brackets, which
// a terminal with synchronized output shows at once; others ignore the brackets. Rows that stay as they are are
// skipped. The old rows are found by their number, so drawn must always be what stands on the terminal.
func (p *Progress) repaint(above string, rows []string) {
	if len(p.drawn)+len(rows) == 0 {
		if above != "" {
			p.print(above)
		}
		return
	}
	b := new(strings.Builder)
	b.WriteString(ansi.SetModeSynchronizedOutput)
	high := p.drawnHeight()
	if high > 0 {
		fmt.Fprintf(b, "\x1b[%dA\r", high)
	}
	// Where the terminal has wrapped the rows anew, none of them stands where it was.
	// A line above moves them all, too.
	old := p.drawn
	// So it is where the rows above them were wrapped anew, because terminals differ in how these move.
	if above != "" || high != len(old) || p.drawnWidth != p.options.Width {
		b.WriteString("\x1b[J" + above)
		old = nil
	}
	// A row that stays is passed over by moving the cursor. It does not scroll, because the row stands there already.
	skipped := 0
	for i, r := range rows {
		if i < len(old) && old[i] == r {
			skipped++
			continue
		}
		if skipped > 0 {
			fmt.Fprintf(b, "\x1b[%dB", skipped)
			skipped = 0
		}
		b.WriteString(r + "\x1b[K\n")
	}
	if skipped > 0 {
		fmt.Fprintf(b, "\x1b[%dB", skipped)
	}
	// The cursor is in the first column below the last row, where the next call expects it.
	if len(rows) < len(old) {
		b.WriteString("\x1b[J")
	}
	b.WriteString(ansi.ResetModeSynchronizedOutput)
	p.drawn, p.drawnWidth = rows, p.options.Width
	p.print(b.String())
}

// drawnHeight is how many rows of the terminal the live rows take. Terminals that wrap rows anew when they get narrower
// need more of them.
func (p *Progress) drawnHeight() int {
	// Where rows are cut instead of wrapped, each of them still takes one.
	high := len(p.drawn)
	for _, r := range p.drawn {
		if p.options.Rewraps {
			high += max(text.Columns(r)-1, 0) / p.options.Width
		}
	}
	return high
}

// matters returns the members that are shown where not all can be: the lead, then those that do something, then those
// that are idle. They keep the order in which they joined. rest says how many there are of the others, by what they do.
func (l *Presence) matters(most int) (shown []*Activity, rest string) {
	if len(l.members) <= most {
		return l.members, ""
	}
	// The members themselves keep their order: rows that changed places at each event could not be read.
	ranked := slices.Clone(l.members)
	rank := func(m *Activity) int {
		switch {
		case m.name == muster.Lead, m.state == LookNeedsYou:
			return 0
		case m.state == LookIdle || m.worksFor != "":
			return 2
		}
		return 1
	}
	slices.SortStableFunc(ranked, func(a, b *Activity) int { return rank(a) - rank(b) })
	// What the others do is said in numbers, so that nobody has to guess whether they are stuck.
	states := map[Look]int{}
	for _, m := range ranked[most:] {
		states[m.state]++
	}
	isShown := func(m *Activity) bool { return slices.Contains(ranked[:most], m) }
	for _, m := range l.members {
		if isShown(m) {
			shown = append(shown, m)
		}
	}
	rest = fmt.Sprintf("... and %d more: ", len(l.members)-most)
	return shown, rest + formatCounts(states, LookNeedsYou, LookWorking, LookLanding, LookWaiting, LookIdle)
}
