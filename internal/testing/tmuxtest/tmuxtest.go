//go:build unix

// Package tmuxtest is a real terminal for tests: tmux with a shell in it, into which a test types, and whose screen it
// reads. See tier.Needs for what happens without tmux.
package tmuxtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/charmbracelet/x/termios"

	"muster/internal/testing/tier"
)

// Screen is a terminal with a shell in it, whose prompt is "$ ".
type Screen struct {
	// Dir is a short-lived directory; it is in the shell's PATH.
	Dir string

	t      *testing.T
	socket string
	env    []string
}

const patience = time.Minute

// Start starts a terminal of 80 by 24. env is the shell's environment; dir is where it stands, "" for anywhere.
func Start(t *testing.T, dir string, env []string) *Screen {
	t.Helper()
	tier.Needs(t, "tmux")
	at, err := os.MkdirTemp("", "mt") // short: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	if dir == "" {
		dir = at
	}
	s := &Screen{Dir: at, t: t, socket: filepath.Join(at, "s")}
	path := os.Getenv("PATH")
	for _, v := range env {
		name, value, _ := strings.Cut(v, "=")
		switch {
		case name == "PATH":
			path = value
		case !strings.HasPrefix(name, "TMUX"):
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "ENV="+filepath.Join(at, "rc"), "PATH="+at+":"+path, "LC_ALL=C.UTF-8", "TERM=xterm-256color")
	if err := os.WriteFile(filepath.Join(at, "rc"), []byte("PS1='$ '\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	pid := ""
	t.Cleanup(func() {
		_ = s.command("kill-server").Run()
		for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if n, err := strconv.Atoi(pid); err != nil || syscall.Kill(n, 0) != nil {
				break
			}
		}
		_ = os.RemoveAll(at)
	})
	s.Tmux("new-session", "-d", "-c", dir, "-x", "80", "-y", "24", "exec sh -i")
	pid = strings.TrimSpace(s.Tmux("display-message", "-p", "#{pid}"))
	s.Wait(`\$ $`)
	return s
}

func (s *Screen) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", s.socket, "-f", "/dev/null"}, args...)...)
	cmd.Env = s.env
	return cmd
}

// Tmux runs a tmux command and returns what it prints.
func (s *Screen) Tmux(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

// Keys types: text, or names of keys such as Enter, C-c, Left.
func (s *Screen) Keys(keys ...string) {
	s.t.Helper()
	s.Tmux(append([]string{"send-keys"}, keys...)...)
}

// Paste pastes text in brackets, as terminals do.
func (s *Screen) Paste(text string) {
	s.t.Helper()
	file := filepath.Join(s.Dir, "paste")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.Tmux("load-buffer", file)
	s.Tmux("paste-buffer", "-p")
}

// Resize gives the terminal another width.
func (s *Screen) Resize(columns int) {
	s.t.Helper()
	s.Tmux("resize-window", "-x", strconv.Itoa(columns))
}

// Text is what is seen, without blanks at the end and Unframed.
func (s *Screen) Text() string { return s.captured() }

// History is what has scrolled away and what is seen.
func (s *Screen) History() string { return s.captured("-S", "-") }

func (s *Screen) captured(args ...string) string {
	lines := strings.Split(s.Tmux(append([]string{"capture-pane", "-p"}, args...)...), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	text := Unframed(strings.TrimRight(strings.Join(lines, "\n"), "\n"))
	if strings.HasSuffix(text, "\n>") || strings.HasSuffix(text, "$") {
		text += " " // the prompt's
	}
	return text
}

// Wait waits until the screen fits a pattern, in which $ is the end of the screen, and returns the screen.
func (s *Screen) Wait(pattern string) string {
	s.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text := s.Text()
		if strings.Contains(text, "DATA RACE") {
			s.t.Fatalf("%s", s.History())
		}
		if re.MatchString(text) {
			return text
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the screen never fitted %q:\n%s", pattern, s.History())
		}
	}
}

// Cursor waits until the cursor is at a column.
func (s *Screen) Cursor(column int) {
	s.t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = strings.TrimSpace(s.Tmux("display-message", "-p", "#{cursor_x}")); got == strconv.Itoa(column) {
			return
		}
	}
	s.t.Fatalf("the cursor is in column %s, not %d:\n%s", got, column, s.Text())
}

// Cooked makes sure that the shell has its terminal back as it was: lines, and what is typed is seen.
func (s *Screen) Cooked() {
	s.t.Helper()
	s.Wait(`\$ $`)
	tty, err := os.OpenFile(strings.TrimSpace(s.Tmux("display-message", "-p", "#{pane_tty}")),
		os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = tty.Close() }()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		modes, err := termios.GetTermios(int(tty.Fd()))
		if err != nil {
			s.t.Fatal(err)
		}
		if modes.Lflag&syscall.ICANON != 0 && modes.Lflag&syscall.ECHO != 0 {
			return
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the terminal was not put back: local modes %#x:\n%s", modes.Lflag, s.Text())
		}
	}
}
