package terminal

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// editedMsg says that the user's editor has ended.
type editedMsg struct {
	dir string // of the file
	err error
}

// draftName is the file in which the input is edited.
const draftName = "message.md"

// openEditor is Ctrl-G: the user edits the input in an editor, which has the terminal meanwhile.
func (s *screen) openEditor() tea.Cmd {
	if s.options.Editor == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "muster-edit-")
	if err != nil {
		return func() tea.Msg { return editedMsg{err: err} }
	}
	file := filepath.Join(dir, draftName)
	if err := os.WriteFile(file, []byte(s.input.value()), 0o600); err != nil {
		return func() tea.Msg { return editedMsg{dir, err} }
	}
	s.suspended = true
	return tea.ExecProcess(s.editor(file), func(err error) tea.Msg { return editedMsg{dir, err} })
}

// editor returns the user's editor on the terminal itself, not on what is drawn with.
func (s *screen) editor(file string) *exec.Cmd {
	c := s.options.Editor(file)
	c.Stdin, c.Stdout, c.Stderr = s.options.In, s.options.Out, s.options.Out
	return c
}

// takeEdited puts what was edited into the input. Where the editor fails the input stays.
func (s *screen) takeEdited(m editedMsg) {
	s.suspended = false
	data, err := os.ReadFile(filepath.Join(m.dir, draftName))
	if m.err != nil {
		err = m.err
	}
	_ = os.RemoveAll(m.dir)
	if err != nil {
		s.queue.put(item{kind: printed, text: "the editor failed, and the message is as it was: " + clean(err.Error())})
		return
	}
	s.input.set(clean(strings.TrimRight(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n")))
}
