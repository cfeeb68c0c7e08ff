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
		s.print("no file can be made for the editor: " + clean(err.Error()))
		return nil
	}
	file := filepath.Join(dir, draftName)
	if err := os.WriteFile(file, []byte(s.input.Value()), 0o600); err != nil {
		_ = os.RemoveAll(dir)
		s.print("no file can be made for the editor: " + clean(err.Error()))
		return nil
	}
	s.suspended = true
	s.isEditing.Store(true)
	return tea.ExecProcess(s.editor(file), func(err error) tea.Msg { return editedMsg{dir, err} })
}

// editor returns the user's editor on the terminal itself, not on what is drawn with.
func (s *screen) editor(file string) *exec.Cmd {
	c := s.options.Editor(file)
	c.Stdin, c.Stdout, c.Stderr = s.options.In, s.options.Out, s.options.Out
	return c
}

// takeEdited puts what was edited into the input. Where the editor fails, the input stays, and so does the draft.
func (s *screen) takeEdited(m editedMsg) {
	s.suspended = false
	defer s.isEditing.Store(false)
	file := filepath.Join(m.dir, draftName)
	if m.err != nil {
		s.print("the editor failed (" + clean(m.err.Error()) + "), and the message is as it was; the draft: " + file)
		return
	}
	data, err := os.ReadFile(file)
	_ = os.RemoveAll(m.dir)
	if err != nil {
		s.print("the draft cannot be read: " + clean(err.Error()))
		return
	}
	text := clean(strings.TrimRight(strings.ReplaceAll(string(data), "\r\n", "\n"), "\n"))
	s.input.Set(text)
	s.queue.nudge()
}

// print inserts lines, also while the terminal closes.
func (s *screen) print(lines string) {
	s.apply(item{kind: printed, text: lines})
	s.queue.nudge()
}
