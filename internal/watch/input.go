package watch

import (
	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/lineedit"
	"muster/internal/text"
)

// input is a line that is being typed at the bottom of the screen: an answer, a mail or the filter of the board. The
// text has one line: the line breaks of a longer one that is pasted become blanks, as a paste must not send the half of
// an answer.
//
// What Esc leaves is lost on purpose. An answer that was begun for one question must not be sent for another.
type input struct {
	lineedit.Buffer
	prompt string
	// key is the only key that confirms, where one does and all others cancel; "": a text is typed.
	key string
	// isBelow says that it is drawn below the mark on the right side, and not at the bottom.
	isBelow bool
	// changed is called after each change, and may be nil; done with the whole text at Enter. The input is closed then,
	// unless done opens it again.
	changed func(text string)
	done    func(text string) tea.Cmd
	// cancelled is called at Esc, and may be nil.
	cancelled func()
}

// insert puts a text in at the cursor, and says so.
func (i *input) insert(s string) {
	i.Insert(text.OneLine(s))
	if i.changed != nil {
		i.changed(i.Value())
	}
}

// press applies a key. It returns false for Enter and Esc, which end the input. Keys without a text of their own, such
// as those of functions, insert nothing.
func (i *input) press(k tea.KeyPressMsg) (goesOn bool) {
	before, name := i.Value(), k.String()
	switch name {
	case "enter", "esc", "ctrl+c":
		return false
	case "alt+enter", "shift+enter", "ctrl+j": // it has one line
		return true
	}
	if !i.Press(name) {
		i.Insert(text.Clean(k.Text))
	}
	if i.changed != nil && i.Value() != before {
		i.changed(i.Value())
	}
	return true
}

// draw returns the line, and the column of the cursor. Where the text is longer than the line, the part before the
// cursor is seen. The prompt gets at most half of the line, and the last column stays free for the cursor.
func (i *input) draw(width int) (line string, cursor int) {
	most := width / 2
	if i.key != "" { // nothing is typed behind it
		most = width - 1
	}
	prompt := ansi.TruncateWc(i.prompt, most, "")
	before := text.Columns(prompt)
	room, from := max(width-before-1, 1), 0
	for text.Columns(lineedit.Shown(i.Text[from:i.Cursor])) > room {
		from++
	}
	return prompt + ansi.TruncateWc(lineedit.Shown(i.Text[from:]), room, ""),
		before + text.Columns(lineedit.Shown(i.Text[from:i.Cursor]))
}
