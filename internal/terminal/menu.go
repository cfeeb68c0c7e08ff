package terminal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/text"
)

// maxMenuRows limits the choices that are shown at once. Further ones are counted, and come into sight with Down.
const maxMenuRows = 8

// Choice is one row of a menu.
type Choice struct {
	// Text takes the place of the word at the cursor.
	Text string
	// Label is what the row shows, and Note what there is to say about it.
	Label, Note string
	// Submits says that Enter on it enters the whole line. Otherwise Enter only puts in the text.
	Submits bool
}

// Menu has what may stand in place of the word at the cursor, best first.
type Menu struct {
	// From is where that word begins: a byte offset into the text.
	From    int
	Choices []Choice
	// More is how many choices there are beside these.
	More int
	// IsOptional says that nothing is selected at first, so that Enter enters the line as it was typed.
	IsOptional bool
}

// openMenu is the menu below the input, and what the user has done with it.
type openMenu struct {
	Menu
	// selected is an index into Choices, or -1.
	selected int
	// first is the choice in the first row that is shown.
	first int
	// isWanted says that the text was changed by typing last. Only then a menu opens: one that opened on the way
	// through the history would take over Up and Down.
	isWanted bool
	// closedAt is From+1 of the menu that the user has closed. It stays closed as long as its word is typed at.
	closedAt int
}

// isMenuOpen reports whether a menu is shown. A terminal without a row for it has none.
func (s *screen) isMenuOpen() bool { return len(s.menu.Choices) > 0 && s.maxViewHeight() > 1 }

// close removes the menu until the next change of the text.
func (m *openMenu) close() { *m = openMenu{closedAt: m.closedAt} }

// offerMenu asks the caller what may stand at the cursor, and opens, changes or closes the menu. isAsked says that the
// user has pressed Tab.
func (s *screen) offerMenu(isAsked bool) {
	s.menu.close()
	if s.options.Complete == nil {
		return
	}
	text, cursor := s.input.Value(), s.input.CursorOffset()
	m := s.options.Complete(text, cursor, isAsked)
	if m.From < 0 || m.From > cursor {
		m = Menu{}
	}
	if isAsked || len(m.Choices) == 0 || m.From+1 != s.menu.closedAt {
		s.menu.closedAt = 0
	}
	s.menu.isWanted = !isAsked
	if s.menu.closedAt > 0 {
		return
	}
	// Tab goes as far as the choices agree. Only where they part at once the menu shows them. A single choice is put in
	// even where it is not longer than the word: it may differ in case.
	if common := commonText(m.Choices); isAsked && (len(m.Choices) == 1 || len(common) > cursor-m.From) {
		s.input.ReplaceWord(m.From, common)
		return
	}
	s.menu.Menu = m
	if m.IsOptional {
		s.menu.selected = -1
	}
}

// refreshMenu asks for the choices again, because the caller knows more by now. What the user has selected stays so.
func (s *screen) refreshMenu() {
	if !s.menu.isWanted {
		return
	}
	chosen := ""
	if s.menu.selected > 0 {
		chosen = s.menu.Choices[s.menu.selected].Text
	}
	s.offerMenu(false)
	if i := slices.IndexFunc(s.menu.Choices, func(c Choice) bool { return c.Text == chosen }); i >= 0 {
		s.menu.selected = i
	}
}

// menuAfterEdit offers a menu where a key has changed the text, and closes it where the key has only moved the cursor.
func (s *screen) menuAfterEdit(before string) {
	if s.input.Value() == before {
		s.menu.close()
		return
	}
	s.offerMenu(false)
}

// commonText returns what the texts of all choices begin with.
func commonText(choices []Choice) (common string) {
	for i, c := range choices {
		if i == 0 {
			common = c.Text
		}
		common = commonPrefix(common, c.Text)
	}
	return common
}

// handleMenuKey does what a key means to an open menu. It returns false for a key that means nothing to it.
func (s *screen) handleMenuKey(name string) bool {
	m, n := &s.menu, len(s.menu.Choices)
	switch name {
	case "up", "ctrl+p":
		m.selected = (max(m.selected, 0) + n - 1) % n
	case "down", "ctrl+n":
		m.selected = (m.selected + 1) % n
	case "esc":
		m.closedAt = m.From + 1
		s.menu.close()
	case "tab":
		s.takeChoice(max(m.selected, 0))
	case "enter":
		if m.selected < 0 {
			return false
		}
		// The text of the choice is complete, so the line can be entered as it is then.
		submits := m.Choices[m.selected].Submits
		if s.takeChoice(m.selected); submits {
			s.menu.close()
			s.enter()
		}
	default:
		return false
	}
	return true
}

// takeChoice puts a choice in the place of the word. What comes next may have a menu, too.
func (s *screen) takeChoice(i int) {
	from, text := s.menu.From, s.menu.Choices[i].Text
	s.input.ReplaceWord(from, text)
	s.offerMenu(false)
}

// menuRows returns the rows of the menu, at most room of them. The last one counts the choices that are not shown.
func (s *screen) menuRows(room int) []string {
	m := &s.menu
	if !s.isMenuOpen() || room < 1 {
		return nil
	}
	high := min(len(m.Choices), maxMenuRows, room)
	more := len(m.Choices) - high + m.More
	// The row that counts the others must fit too.
	if more > 0 && high == room && room > 1 {
		high, more = high-1, more+1
	}
	at := max(m.selected, 0)
	m.first = min(max(m.first, at-high+1), at, len(m.Choices)-high)
	widest := 0
	for _, c := range m.Choices {
		if c.Note != "" {
			widest = max(widest, ansi.StringWidthWc(c.Label))
		}
	}
	widest = min(widest, s.width/2)
	var rows []string
	for i, c := range m.Choices[m.first : m.first+high] {
		rows = append(rows, menuRow(c, m.first+i == m.selected, widest, s.width-1, s.options.Colour))
	}
	if more > 0 && len(rows) < room {
		rows = append(rows, fmt.Sprintf("  %d more", more))
	}
	return rows
}

// menuRow returns one row of at most width columns; notes begin behind widest columns of label. A star marks the
// selected row, because not every terminal has colours. A label without a note, such as a path, may take the whole row,
// and shows its end where that is too short.
func menuRow(c Choice, isSelected bool, widest, width int, colour bool) string {
	mark := "  "
	if isSelected {
		mark = "* "
	}
	label := text.OneLine(c.Label)
	if c.Note == "" {
		if over := ansi.StringWidthWc(label) - (width - len(mark)); over > 0 {
			label = ansi.TruncateLeftWc(label, over+len("..."), "...")
		}
	} else {
		label = text.CutColumns(label, widest)
		label += strings.Repeat(" ", max(0, widest-ansi.StringWidthWc(label))) + "  " +
			text.OneLine(c.Note)
	}
	row := ansi.TruncateWc(mark+label, width, "")
	if isSelected && colour {
		row = "\x1b[1m" + row + "\x1b[m"
	}
	return row
}

// commonPrefix returns the longest common prefix, cut at a whole character: half of one would be shown as a broken
// character.
func commonPrefix(a, b string) string {
	end := 0
	for i, r := range a {
		if !strings.HasPrefix(b[min(i, len(b)):], string(r)) {
			break
		}
		end = i + len(string(r))
	}
	return a[:min(end, len(a))]
}
