package terminal

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster/internal/lineedit"
)

// handleKey does what a key means. A key that no table knows is typed text. The names of keys are those of bubbletea,
// and what they mean is what they mean to readline, where it has them.
func (s *screen) handleKey(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if isDone, cmd := s.handleQuestionKey(name); isDone {
		return cmd
	}
	if s.search.active && s.handleSearchKey(k, name) || s.isMenuOpen() && s.handleMenuKey(name) {
		return nil
	}
	before := s.input.Value()
	if s.input.Press(name) {
		s.menuAfterEdit(before)
		return nil
	}
	s.menu.close()
	switch name {
	case "enter":
		s.enter()
	case "ctrl+c": // discards the line; without one it is the caller's
		if s.input.IsEmpty() {
			s.emit(Interrupt{})
		}
		s.clearInput()
		s.history.position = len(s.history.lines)
	case "ctrl+d": // as in a shell: it ends the input, or deletes to the right
		if s.input.IsEmpty() {
			s.emit(Leave{})
		} else {
			s.input.DeleteRight()
		}
	case "esc":
		s.emit(Escape{IsEmpty: s.input.IsEmpty()})
	case "up", "ctrl+p":
		s.moveVertically(-1)
	case "down", "ctrl+n":
		s.moveVertically(+1)
	case "ctrl+r":
		s.search = search{active: true, match: len(s.history.lines), savedInput: s.input}
	case "tab":
		s.offerMenu(true)
	case "ctrl+v":
		return readClipboard(s)
	case "ctrl+g":
		return s.openEditor()
	case "ctrl+o":
		s.showThinking()
	case "ctrl+l":
		return s.clearScreen()
	case "ctrl+z":
		if hasJobControl() {
			s.suspended = true // the shell gets a clean screen
			return tea.Suspend
		}
	default:
		if k.Text != "" && utf8.ValidString(k.Text) {
			s.input.Insert(clean(k.Text))
			s.menuAfterEdit(before)
		}
	}
	return nil
}

// enter submits the input and shows it in the scrollback, under the prompt and with pastes folded. A blank input is
// dropped.
func (s *screen) enter() {
	text := s.input.Value()
	if strings.TrimSpace(text) == "" {
		s.clearInput()
		return
	}
	s.queue.put(item{kind: echoed, text: lineedit.Shown(s.input.Text)})
	s.history.add(text)
	isEdit := s.isEdit
	s.clearInput()
	s.emit(Line{text, isEdit})
}

// clearInput lets another line begin. A menu that was closed for the last one may open again.
func (s *screen) clearInput() {
	s.input.Set("")
	s.menu, s.isEdit = openMenu{}, false
}

// moveVertically moves the cursor by one row of the screen, in the same column as far as the row has it. Beyond the
// first and the last row it goes through the history.
func (s *screen) moveVertically(by int) {
	l := lineedit.NewLayout(&s.input, len(inputPrompt), s.inputWidth())
	if y := l.Y + by; y >= 0 && y < len(l.Rows) {
		s.input.Cursor = l.ClusterAt(&s.input, l.X, y)
		return
	}
	if line, ok := s.history.move(by, s.input.Value()); ok {
		s.clearInput()
		s.input.Set(line)
	}
}

// handleSearchKey handles a key during Ctrl-R. It returns false if the key ends the search and is to be handled as
// usual.
func (s *screen) handleSearchKey(k tea.KeyPressMsg, name string) bool {
	f := &s.search
	switch {
	case name == "ctrl+r":
		f.findFrom(&s.history, f.match-1)
	case name == "backspace" || name == "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(f.query)
		f.query = f.query[:len(f.query)-n]
		f.findFrom(&s.history, len(s.history.lines)-1)
	case name == "ctrl+g" || name == "ctrl+c" || name == "esc": // ends the search; esc keeps the match
		if name != "esc" {
			s.input = f.savedInput
		}
		f.active = false
		return true
	case k.Text != "" && k.Mod&(tea.ModCtrl|tea.ModAlt) == 0:
		f.query += clean(k.Text)
		f.findFrom(&s.history, f.match)
	default:
		s.endSearch()
		return false
	}
	// Without a query the input is as it was; without a match it is empty.
	s.input.Set("")
	if f.query == "" {
		s.input.Set(f.savedInput.Value())
	} else if f.match < len(s.history.lines) {
		line := s.history.lines[f.match]
		s.input.Set(line)
		s.input.MoveTo(max(strings.Index(line, f.query), 0))
	}
	return true
}

// endSearch ends Ctrl-R and leaves the match in the input. Up continues from there.
func (s *screen) endSearch() {
	if s.search.active {
		s.search.active = false
		if s.search.match < len(s.history.lines) {
			s.history.position = s.search.match
		}
	}
}

// readClipboard is Ctrl-V. What is typed meanwhile stays: the text comes to where the cursor is then.
func readClipboard(s *screen) tea.Cmd {
	if s.options.Clipboard == nil || s.readsClipboard {
		return nil
	}
	s.readsClipboard = true
	return func() tea.Msg {
		text, said := s.options.Clipboard()
		return clipboardMsg{text, said}
	}
}

// clearScreen is Ctrl-L. It first moves the view to the second row: an erasure that begins in the first row makes tmux
// keep the screen in its history. bubbletea then moves up to where it believes the view begins.
func (s *screen) clearScreen() tea.Cmd {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drawnView.prefix = ansi.EraseEntireScreen + fmt.Sprintf("\x1b[%d;1H", s.drawnView.y+2)
	return tea.ClearScreen
}

// HasTitles reports whether a terminal, by its TERM, takes a title for its window. Others print the sequence.
func HasTitles(name string) bool {
	known := []string{"xterm", "screen", "tmux", "rxvt", "alacritty", "foot", "kitty", "wezterm", "ghostty", "st-"}
	return slices.ContainsFunc(known, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// Rewraps reports whether the terminal wraps its rows anew when it gets narrower. xterm and the Linux console cut them
// instead. GNU screen and tmux wrap them, also where only TERM tells of tmux, as behind ssh.
func Rewraps() bool {
	// A multiplexer that was started in xterm has its variable, too.
	name := os.Getenv("TERM")
	return os.Getenv("TMUX") != "" || os.Getenv("STY") != "" || strings.HasPrefix(name, "screen") ||
		os.Getenv("XTERM_VERSION") == "" && name != "linux"
}
