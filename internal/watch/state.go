package watch

import (
	"fmt"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// teamState is how the team stands, as the newest overview has it, and in which words that is shown.
type teamState struct {
	o       view.Overview
	hasTeam bool // an overview has come
	isLeft  bool // the run has open tasks; asked for each key on each frame, so it is kept with the overview
	subject func(muster.TaskID) string
	hide    func(string) string // removes secrets
}

// task returns a task of the board, or nil.
func (s *teamState) task(id muster.TaskID) *muster.Task {
	for i := range s.o.Tasks {
		if s.o.Tasks[i].ID == id && id != 0 {
			return &s.o.Tasks[i]
		}
	}
	return nil
}

// clean makes a text of a model or a file fit for the screen: without secrets and control characters, and with blanks
// in place of tabs.
func (s *teamState) clean(words string) string {
	words = text.Clean(s.hide(strings.ReplaceAll(words, "\r\n", "\n")))
	return strings.ReplaceAll(words, "\t", "    ")
}

// oneLine is clean for texts of one line.
func (s *teamState) oneLine(words string) string { return text.OneLine(s.hide(words)) }

// taskName is a task in one line.
func (s *teamState) taskName(id muster.TaskID) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", id, s.oneLine(s.subject(id))))
}
