package watch

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// input is a line that is being typed at the bottom of the screen: an answer, a mail or the filter of the board. It
// knows the keys of a shell's line editor that people use without thinking. Text has one line: a longer one is pasted,
// and its line breaks become blanks, as a paste must not send the half of an answer.
//
// What Esc leaves is lost on purpose. An answer that was begun for one question must not be sent for another.
type input struct {
	prompt string
	// key is the only key that confirms, where one does and all others cancel; "": a text is typed.
	key  string
	text []rune
	at   int // the cursor
	// isBelow says that it is drawn below the mark on the right side, and not at the bottom.
	isBelow bool
	// changed is called after each change, and may be nil; done with the whole text at Enter. The input is closed then,
	// unless done opens it again.
	changed func(text string)
	done    func(text string) tea.Cmd
	// cancelled is called at Esc, and may be nil.
	cancelled func()
}

// insert puts text where the cursor is.
func (i *input) insert(s string) {
	r := []rune(s)
	i.text = slices.Insert(i.text, i.at, r...)
	i.at += len(r)
}

// paste inserts a text that was not typed.
func (i *input) paste(s string) {
	before := string(i.text)
	i.insert(s)
	i.notify(before)
}

// notify says that the text is another one than before.
func (i *input) notify(before string) {
	if text := string(i.text); i.changed != nil && text != before {
		i.changed(text)
	}
}

// press applies a key. It returns false for Enter and Esc, which end the input. Keys without a text of their own, such
// as those of functions, insert nothing.
func (i *input) press(k tea.KeyPressMsg) (goesOn bool) {
	before := string(i.text)
	switch k.String() {
	case "enter", "esc", "ctrl+c":
		return false
	case "left":
		i.at = max(i.at-1, 0)
	case "right":
		i.at = min(i.at+1, len(i.text))
	case "home", "ctrl+a":
		i.at = 0
	case "end", "ctrl+e":
		i.at = len(i.text)
	case "backspace":
		i.erase(max(i.at-1, 0), i.at)
	case "delete":
		i.erase(i.at, min(i.at+1, len(i.text)))
	case "ctrl+u":
		i.erase(0, i.at)
	case "ctrl+w":
		before := strings.TrimRight(string(i.text[:i.at]), " ")
		i.erase(len([]rune(before[:strings.LastIndexByte(before, ' ')+1])), i.at)
	default:
		i.insert(k.Text)
	}
	i.notify(before)
	return true
}

// erase removes a part of the text, and leaves the cursor there.
func (i *input) erase(from, to int) {
	i.text = slices.Delete(i.text, from, to)
	i.at = from
}

// draw returns the line, and the column of the cursor. Where the text is longer than the line, the part before the
// cursor is seen. The prompt gets at most half of the line, and the last column stays free for the cursor.
func (i *input) draw(width int) (line string, cursor int) {
	most := width / 2
	if i.key != "" { // nothing is typed behind it
		most = width - 1
	}
	prompt := ansi.TruncateWc(i.prompt, most, "")
	room := max(width-ansi.StringWidthWc(prompt)-1, 1)
	from := 0
	for ansi.StringWidthWc(string(i.text[from:i.at])) > room {
		from++
	}
	shown := string(i.text[from:i.at])
	return prompt + ansi.TruncateWc(string(i.text[from:]), room, ""), ansi.StringWidthWc(prompt + shown)
}
