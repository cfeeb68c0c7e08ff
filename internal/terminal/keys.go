package terminal

import (
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
)

// key does what a key says.
func (s *screen) key(k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if s.search.on && s.searchKey(k, name) {
		return nil
	}
	tabbed := s.tabbed
	s.tabbed = name == "tab"
	b := &s.input
	switch name {
	case "enter":
		s.enter()
	case "alt+enter", "ctrl+j", "shift+enter":
		b.insert("\n")
	case "ctrl+c":
		if b.empty() {
			s.event(Interrupt{})
		}
		b.set("")
		s.history.at = len(s.history.lines)
	case "ctrl+d":
		if b.empty() {
			s.event(Closed{})
			return nil
		}
		b.remove(b.cursor, min(b.cursor+1, len(b.text)))
	case "delete":
		b.remove(b.cursor, min(b.cursor+1, len(b.text)))
	case "backspace", "ctrl+h":
		b.remove(max(0, b.cursor-1), b.cursor)
	case "left", "ctrl+b":
		b.left()
	case "right", "ctrl+f":
		b.right()
	case "home", "ctrl+a":
		b.cursor = b.lineStart()
	case "end", "ctrl+e":
		b.cursor = b.lineEnd()
	case "alt+b", "ctrl+left", "alt+left":
		b.cursor = b.wordLeft()
	case "alt+f", "ctrl+right", "alt+right":
		b.cursor = b.wordRight()
	case "alt+<", "ctrl+home":
		b.cursor = 0
	case "alt+>", "ctrl+end":
		b.cursor = len(b.text)
	case "ctrl+k":
		b.kill(b.cursor, max(b.lineEnd(), min(b.cursor+1, b.lineEnd()+1, len(b.text))))
	case "ctrl+u":
		b.kill(b.lineStart(), b.cursor)
	case "ctrl+w":
		b.kill(b.blankLeft(), b.cursor)
	case "alt+backspace":
		b.kill(b.wordLeft(), b.cursor)
	case "alt+d":
		b.kill(b.cursor, b.wordRight())
	case "ctrl+y":
		b.yank()
	case "ctrl+t":
		b.transpose()
	case "up", "ctrl+p":
		s.vertical(-1)
	case "down", "ctrl+n":
		s.vertical(+1)
	case "ctrl+r":
		s.search = search{on: true, at: len(s.history.lines), before: *b}
	case "tab":
		if shown := s.complete(tabbed); shown != "" {
			s.queue.put(item{kind: echoed, text: shown})
		}
	case "ctrl+l":
		return s.clear()
	case "ctrl+z":
		if jobControl() {
			s.away = true // the shell gets a clean screen
			return tea.Suspend
		}
	default:
		if k.Text != "" && utf8.ValidString(k.Text) {
			b.insert(clean(k.Text))
		}
	}
	return nil
}

// enter submits the input, and shows it in the scrollback.
func (s *screen) enter() {
	text := s.input.value()
	if strings.TrimSpace(text) == "" {
		s.input.set("")
		return
	}
	lines := strings.Split(strings.TrimRight(s.input.display(), "\n"), "\n")
	echo := s.options.Prompt + strings.Join(lines, "\n"+strings.Repeat(" ", ansi.StringWidthWc(s.options.Prompt)))
	if s.options.Colour {
		echo = "\x1b[1m" + echo + "\x1b[m"
	}
	s.queue.put(item{kind: echoed, text: echo})
	s.history.add(text)
	s.input.set("")
	s.event(Line{Text: text})
}

// vertical moves by a row, and beyond the first or last row into the history.
func (s *screen) vertical(by int) {
	indent := ansi.StringWidthWc(s.options.Prompt)
	l := lay(&s.input, indent, s.width-1)
	if y := l.y + by; y >= 0 && y < len(l.rows) {
		s.input.cursor = l.at(&s.input, l.x, y)
		return
	}
	line, ok := "", false
	if by < 0 {
		line, ok = s.history.older(s.input.value())
	} else {
		line, ok = s.history.newer()
	}
	if ok {
		s.input.set(line)
	}
}

// searchKey is a key during Ctrl-R; false if the key ended the search and means what it always means.
func (s *screen) searchKey(k tea.KeyPressMsg, name string) bool {
	f := &s.search
	switch {
	case name == "ctrl+r":
		f.find(&s.history, f.at-1)
	case name == "backspace" || name == "ctrl+h":
		_, n := utf8.DecodeLastRuneInString(f.query)
		f.query = f.query[:len(f.query)-n]
		f.find(&s.history, len(s.history.lines)-1)
	case name == "ctrl+g" || name == "ctrl+c":
		s.input = f.before
		f.on = false
		return true
	case name == "esc":
		f.on = false
		return true
	case k.Text != "" && k.Mod&(tea.ModCtrl|tea.ModAlt) == 0:
		f.query += clean(k.Text)
		f.find(&s.history, f.at)
	default:
		s.leaveSearch()
		return false
	}
	s.input.set("")
	if f.query == "" {
		s.input.set(f.before.value())
	} else if f.at < len(s.history.lines) {
		line := s.history.lines[f.at]
		s.input.set(line)
		if i := strings.Index(line, f.query); i >= 0 && len(s.input.text) > 1 {
			s.input.cursor = min(len(clusters(line[:i])), len(s.input.text))
		}
	}
	return true
}

func (s *screen) leaveSearch() {
	if s.search.on {
		s.search.on = false
		if s.search.at < len(s.history.lines) {
			s.history.at = s.search.at
		}
	}
}

// clear is Ctrl-L. The view goes to the second row: tmux takes an erasure that begins in the first one for a screen
// to be kept in its history. bubbletea then moves up to where it thinks the view begins.
func (s *screen) clear() tea.Cmd {
	s.mu.Lock()
	y := s.drawn.y
	s.mu.Unlock()
	s.before(ansi.EraseEntireScreen + fmt.Sprintf("\x1b[%d;1H", y+2))
	return tea.ClearScreen
}

// rewraps says whether the terminal wraps its rows anew when it gets narrower; xterm, GNU screen and the Linux
// console cut them instead.
func rewraps() bool {
	name := os.Getenv("TERM")
	switch {
	case os.Getenv("TMUX") != "":
		return true
	case os.Getenv("XTERM_VERSION") != "", name == "linux", strings.HasPrefix(name, "screen"):
		return false
	}
	return true
}
