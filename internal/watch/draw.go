package watch

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/text"
	"muster/internal/view"
)

// bold and reverse are SGR codes that view has no tone for.
const (
	bold    = "1"
	reverse = "7"
)

// minTwoColumns is the width from which the right side stands beside the lists, and not in their place. Below it a plan
// would be wrapped at every third word.
const minTwoColumns = 72

// cell is a piece of a line in one colour: that of a tone, or of a name. Its text is safe already.
type cell struct {
	text string
	tone view.Tone
	who  string
}

// cells are a line.
type cells []cell

// painted returns the line in its colours, in exactly width columns. The selected line is reversed as a whole, because
// colours on a reversed line are hard to read on many terminals.
func (c cells) painted(p view.Paint, width int, selected bool) string {
	line, plain := "", ""
	for _, x := range c {
		plain += x.text
		if x.who != "" {
			line += p.Who(x.who, x.text)
		} else {
			line += p.In(x.tone, x.text)
		}
	}
	if selected {
		return sgr(p, reverse, fit(plain, width))
	}
	return fit(line, width)
}

// fit cuts or fills a line to exactly width columns. Colours take no room. Wide characters count as terminals count
// them that know nothing of grapheme clusters, because that is what bubbletea assumes of a terminal that was not asked.
func fit(s string, width int) string {
	n := ansi.StringWidthWc(s)
	if n > width {
		return ansi.TruncateWc(s, width, "")
	}
	return s + strings.Repeat(" ", width-n)
}

// sgr colours text by an SGR code, where colours are wanted. Each piece ends with a reset, so that no colour reaches
// into what stands beside it.
func sgr(p view.Paint, code, s string) string {
	if !p.IsOn() || code == "" || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// layout is where things are on the screen: the headline in the first row, then the body, then the bottom.
type layout struct {
	// left and right are the widths of the two sides. One that is not there has the width 0.
	left, right int
	// heights are those of the lists, each with its title. A list without a row has none.
	heights [paneDetail]int
	// body is how many rows there are between the headline and the bottom.
	body int
}

// layout divides the screen. On a narrow one the right side takes the place of the lists. It is derived anew whenever
// it is needed, from the size and the numbers of rows alone, so that a resize needs no code of its own and a click is
// judged by the same layout as the last frame.
func (m *model) layout() layout {
	l := layout{left: m.width, body: max(m.height-1-len(m.bottom()), 1)}
	switch {
	case m.width >= minTwoColumns && m.hasTeam:
		l.left = max(min(m.width*2/5, 64), 30)
		l.right = m.width - l.left - 3
	case m.focus == paneDetail || m.goTo != nil:
		l.left, l.right = 0, m.width
	}
	// What waits for the user is always seen, with two rows at the least. The members get up to half of what is left,
	// and the board the rest.
	rest := l.body
	if n := m.lists[paneNeeds].all; n > 0 {
		l.heights[paneNeeds] = 1 + min(n, max(rest/4, 2))
		rest -= l.heights[paneNeeds]
	}
	members, tasks := len(m.lists[paneMembers].rows)+1, len(m.lists[paneBoard].rows)+1
	l.heights[paneMembers] = max(min(members, max(rest/2, rest-tasks)), 0)
	l.heights[paneBoard] = max(rest-l.heights[paneMembers], 0)
	return l
}

// right0 is the column in which the right side begins.
func (l layout) right0() int {
	if l.left == 0 {
		return 0
	}
	return l.left + 3
}

// detailRows is how many rows of the right side are seen, below its title.
func (l layout) detailRows() int { return max(l.body-1, 1) }

// frame is one drawing of the screen.
type frame struct {
	*model
	layout
}

// View draws the screen. bubbletea compares the result with the last frame and writes only the cells that differ, so
// an unchanged screen costs no output. Only the rows that are seen are coloured, which keeps a frame independent of the
// length of a conversation or of the board.
func (m *model) View() tea.View {
	l, bottom := m.layout(), m.bottom()
	f := frame{m, l}
	rows := []string{f.headline()}
	var left, right []string
	if l.left > 0 {
		left = f.leftSide()
	}
	switch {
	case l.right > 0 && m.goTo != nil:
		right = f.goTo()
	case l.right > 0:
		right = f.rightSide()
	}
	for i := range l.body {
		switch {
		case l.right == 0:
			rows = append(rows, at(left, i))
		case l.left == 0:
			rows = append(rows, at(right, i))
		default:
			rows = append(rows, fit(at(left, i), l.left)+" "+m.paint.In(view.Faint, "│")+" "+at(right, i))
		}
	}
	v := tea.NewView(strings.Join(append(rows, bottom...), "\n"))
	v.AltScreen = true
	if m.hasMouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	if m.input != nil && m.input.isBelow {
		v.Cursor = tea.NewCursor(m.cursor.X, m.cursor.Y)
	} else if m.input != nil {
		_, x := m.input.draw(m.width)
		v.Cursor = tea.NewCursor(x, len(rows)+len(bottom)-1)
	}
	return v
}

// at returns a row, or nothing behind the last one.
func at(rows []string, i int) string {
	if i < len(rows) {
		return rows[i]
	}
	return ""
}

// headline is the team and its goal. Where the lists are not seen, it says how much waits for the user, because that is
// always in sight.
func (f frame) headline() string {
	m := f.model
	if !m.hasTeam {
		return sgr(m.paint, bold, fit("muster watch", m.width))
	}
	needs := ""
	if n := m.lists[paneNeeds].all; n > 0 && m.width < minTwoColumns && m.focus == paneDetail {
		needs = m.paint.In(view.Yours, fmt.Sprintf("NEEDS YOU %d", n)) + "  "
	}
	return fit(needs+m.o.Headline(view.Screen{Paint: m.paint, Width: max(m.width, 60)}), m.width)
}

// leftSide draws the panes on the left, each with a title that counts its rows. The title says which rows are seen
// where not all are.
func (f frame) leftSide() (rows []string) {
	m := f.model
	if !m.hasTeam {
		how := "start one in another terminal: muster, or muster run \"goal\""
		if m.canStart {
			how = "press N to start one, or in another terminal: muster, or muster run \"goal\""
		}
		return wrapped(f.left, "no team has worked here yet", how, "it is shown here as soon as it is there")
	}
	titles := [...]string{"NEEDS YOU", "MEMBERS", "BOARD"}
	if m.board.isTree {
		titles[paneBoard] = "TREE"
	}
	draws := [...]func(row, int) cells{m.drawNeed, m.drawMember, m.drawTask}
	for pane := range m.lists {
		height := f.heights[pane]
		if height == 0 {
			continue
		}
		list := &m.lists[pane]
		seen, top := list.seen(height - 1)
		title := fmt.Sprintf("%s %d", titles[pane], list.all)
		if list.filter != "" {
			title = fmt.Sprintf("%s %d of %d with %q", titles[pane], len(list.rows), list.all, list.filter)
		}
		if len(list.rows) > height-1 {
			title += fmt.Sprintf("   %d-%d", min(top+1, top+len(seen)), top+len(seen))
		}
		rows = append(rows, sgr(m.paint, titleColour(pane, m.focus), fit(title, f.left)))
		for i, r := range seen {
			// A mark says what is selected without a colour too: > in the pane that has the focus.
			mark, selected := "  ", pane == m.last && top+i == list.at && (r.key == m.detail.key || m.focus == pane)
			if selected && m.focus == pane {
				mark = "> "
			} else if selected {
				mark = "- "
			}
			line := append(cells{{text: mark}}, draws[pane](r, f.left-2)...)
			rows = append(rows, line.painted(m.paint, f.left, selected && m.focus == pane))
		}
		for i := len(seen); i < height-1; i++ {
			rows = append(rows, "")
		}
	}
	return rows
}

// titleColour is the SGR code of a pane's title. What waits for the user is amber. The title of the pane that has the
// focus is underlined; without colours the mark at a row or before the title says the same.
func titleColour(pane, focus int) string {
	code := bold
	if pane == paneNeeds {
		code += ";" + view.Amber
	}
	if pane == focus {
		code += ";4"
	}
	return code
}

// bottom is what stands at the bottom: what the user was told last, then the input or the keys. A message is wrapped,
// because the end of an error says what to do, but it gets at most a third of the screen. It goes at the next key. That
// the team cannot be read stays until it can be.
func (m *model) bottom() (rows []string) {
	if m.problem != "" {
		rows = wrapped(m.width, m.paint.In(view.Bad, m.problem))
	}
	if m.message.text != "" {
		tone := view.Good
		if m.message.bad {
			tone = view.Bad
		}
		for _, row := range wrapped(m.width, m.message.text) {
			rows = append(rows, m.paint.In(tone, row))
		}
	}
	rows = rows[:min(len(rows), max(m.height/3, 1))]
	switch {
	case m.input != nil && m.input.isBelow:
		return append(rows, m.paint.In(view.Faint, fit("Enter send  Esc close", m.width)))
	case m.input != nil:
		line, _ := m.input.draw(m.width)
		return append(rows, line)
	}
	return append(rows, m.paint.In(view.Faint, m.help(m.width)))
}

// wrapped returns texts as rows of at most width columns.
func wrapped(width int, texts ...string) []string {
	return text.WrapColoured(strings.Join(texts, "\n"), max(width, 1), true)
}
