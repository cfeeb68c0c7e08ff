package terminal

import (
	"slices"

	"github.com/charmbracelet/x/ansi"
)

// Answer is the key with which the user has answered a question of Ask, by the name that bubbletea gives it.
type Answer struct{ Key string }

// Leave is Ctrl-D on an empty line: the user wants to leave, and the terminal is still there.
type Leave struct{}

func (Answer) event() {}
func (Leave) event()  {}

// askMsg asks the question.
type askMsg struct{ question question }

// question stands in the place of the input until one of its keys is pressed.
type question struct {
	text string
	keys []string
}

// Ask shows a text in the place of the input until the user presses one of the keys, and then sends an Answer. What was
// typed comes back after that.
func (t *Terminal) Ask(text string, keys ...string) {
	go t.program.Send(askMsg{question{clean(text), keys}}) // the caller does not wait for the terminal
}

// answer takes a key while a question is asked.
func (s *screen) answer(key string) {
	if slices.Contains(s.question.keys, key) {
		s.question = question{}
		s.emit(Answer{Key: key})
	}
}

// questionRows returns the question wrapped to the width, and the column behind its end. It has at most height rows.
func (s *screen) questionRows(height int) (rows []string, column int) {
	rows = layOutLines(s.question.text, s.width-1, false)
	rows = rows[:min(len(rows), height)]
	last := rows[len(rows)-1]
	return rows, min(ansi.StringWidthWc(last)+1, s.width-1)
}
