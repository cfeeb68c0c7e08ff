//go:build unix

package terminal

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// tmux is a real terminal with a shell in it.
type tmux struct {
	t      *testing.T
	socket string
	dir    string
}

const patience = 20 * time.Second

// shell starts a terminal of 80 by 24 with an interactive shell, in which the command talk starts the program.
func shell(t *testing.T) *tmux {
	t.Helper()
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("tmux is missing, and nothing else tests the terminal: apt-get install tmux")
		}
		t.Skip("TMUX IS MISSING: THE TERMINAL IS NOT TESTED HERE (Debian: apt-get install tmux)")
	}
	dir, err := os.MkdirTemp("", "mt") // short: a socket's path may have 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nMUSTER_TALK=${MUSTER_TALK:-yes} exec '%s'\n", me)
	if err := os.WriteFile(filepath.Join(dir, "talk"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "rc"), []byte("PS1='$ '\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	m := &tmux{t: t, socket: filepath.Join(dir, "s"), dir: dir}
	t.Cleanup(func() {
		_ = m.command("kill-server").Run()
		_ = os.RemoveAll(dir)
	})
	m.run("new-session", "-d", "-x", "80", "-y", "24", "exec sh -i")
	m.wait(`\$ $`)
	return m
}

// start is shell with the program running.
func start(t *testing.T) *tmux {
	t.Helper()
	m := shell(t)
	m.keys("talk", "Enter")
	m.wait(`(?s)ready.*bob.*> $`)
	return m
}

func (m *tmux) command(args ...string) *exec.Cmd {
	cmd := exec.Command("tmux", append([]string{"-u", "-S", m.socket, "-f", "/dev/null"}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "TMUX") && !strings.HasPrefix(v, "MUSTER_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "ENV="+filepath.Join(m.dir, "rc"), "PATH="+m.dir+":"+os.Getenv("PATH"),
		"LC_ALL=C.UTF-8", "TERM=xterm-256color", "MUSTER_TALK_END="+filepath.Join(m.dir, "end"))
	return cmd
}

func (m *tmux) run(args ...string) string {
	m.t.Helper()
	out, err := m.command(args...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %s: %v: %s", args, err, out)
	}
	return string(out)
}

func (m *tmux) keys(keys ...string) {
	m.t.Helper()
	m.run(append([]string{"send-keys"}, keys...)...)
}

func (m *tmux) paste(text string) {
	m.t.Helper()
	file := filepath.Join(m.dir, "paste")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.run("load-buffer", file)
	m.run("paste-buffer", "-p")
}

// screen is what is seen, history what has scrolled away and what is seen; both without blanks at the end.
func (m *tmux) screen() string { return m.captured() }

func (m *tmux) history() string { return m.captured("-S", "-") }

func (m *tmux) captured(args ...string) string {
	lines := strings.Split(m.run(append([]string{"capture-pane", "-p"}, args...)...), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(l, " ")
	}
	text := strings.TrimRight(strings.Join(lines, "\n"), "\n")
	if strings.HasSuffix(text, "\n>") || strings.HasSuffix(text, "$") {
		text += " " // the prompt's
	}
	return text
}

// wait waits until the screen fits a pattern, in which $ is the end of the screen.
func (m *tmux) wait(pattern string) string {
	m.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := m.screen()
		if strings.Contains(s, "DATA RACE") {
			m.t.Fatalf("%s", m.history())
		}
		if re.MatchString(s) {
			return s
		}
		if time.Now().After(deadline) {
			m.t.Fatalf("the screen never fitted %q:\n%s", pattern, m.history())
		}
	}
}

// cursor waits until the cursor is at a column.
func (m *tmux) cursor(column int) {
	m.t.Helper()
	got := ""
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if got = strings.TrimSpace(m.run("display-message", "-p", "#{cursor_x}")); got == strconv.Itoa(column) {
			return
		}
	}
	m.t.Fatalf("the cursor is in column %s, not %d:\n%s", got, column, m.screen())
}

// cooked makes sure that the shell has its terminal back as it was.
func (m *tmux) cooked() {
	m.t.Helper()
	m.wait(`\$ $`)
	m.keys("stty -a | tr ' ' '\\n' | grep -x -e icanon -e echo | tr '\\n' '+'; echo .", "Enter")
	m.wait(`icanon\+echo\+\.\n\$ $`)
}

func (m *tmux) pid() int {
	m.t.Helper()
	found := regexp.MustCompile(`ready (\d+)\.`).FindStringSubmatch(m.history())
	if found == nil {
		m.t.Fatalf("no process id:\n%s", m.history())
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func TestTyping(t *testing.T) {
	m := start(t)
	m.keys("helo wrld", "Left", "Left", "Left", "o", "C-a", "M-f", "Left", "l", "C-e", "!")
	m.wait(`> hello world!$`)
	m.keys("Enter")
	m.wait(`> hello world!\ngot 12 bytes in 1 lines\nalice  working  task 2\nbob    idle\n> $`)
	m.keys("-l", "日本語 e\u0301 \U0001F44D x")
	m.wait("> 日本語 e\u0301 \U0001F44D x$")
	m.cursor(2 + 6 + 1 + 1 + 1 + 2 + 1 + 1)
	m.keys("Left", "Left", "Left", "Left", "Left")
	m.cursor(2 + 6 + 1)
	m.keys("C-h", "C-h")
	m.wait("> 日本e\u0301 \U0001F44D x$")
	m.cursor(2 + 4)
	m.keys("C-c", "one two", "C-w", "C-y", "C-y", "C-u", "three", "M-Enter", "four", "C-j", "five")
	m.wait(`> three\n  four\n  five$`)
	m.keys("Enter")
	m.wait(`> three\n  four\n  five\ngot 15 bytes in 3 lines\n`)
}

func TestPasting(t *testing.T) {
	m := start(t)
	m.keys("see ")
	m.paste("one\n\ttwo\nthree")
	m.wait(`> see one\n      two\n  three$`)
	m.keys("Enter")
	m.wait(`got 18 bytes in 3 lines`)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	m.keys("all: ")
	m.paste(b.String())
	m.wait(`> all: \[5000 lines pasted\]$`)
	m.keys("ok!", "Enter")
	m.wait(fmt.Sprintf(`> all: \[5000 lines pasted\]ok!\ngot %d bytes in 5001 lines`, b.Len()+8))
	var rows strings.Builder
	for i := range 8 {
		fmt.Fprintf(&rows, "row %d\n", i)
	}
	m.paste(rows.String() + "x") // nine lines fold, eight do not
	m.wait(`> \[9 lines pasted\]$`)
	m.keys("C-h")
	m.wait(`> $`)
}

func TestHistoryOnScreen(t *testing.T) {
	m := start(t)
	m.keys("draft", "Up", "Up")
	m.wait(`> second line$`)
	m.keys("Down", "Down")
	m.wait(`> draft$`)
	m.keys("C-r", "lin")
	m.wait(`\(search: lin\) second line$`)
	m.keys("C-r")
	m.wait(`\(search: lin\) first line$`)
	m.keys("C-r")
	m.wait(`\(no older match: lin\) first line$`)
	m.keys("C-g")
	m.wait(`> draft$`)
	m.keys("C-r", "sec", "Enter")
	m.wait(`> second line\ngot 11 bytes`)
}

func TestCompletion(t *testing.T) {
	m := start(t)
	m.keys("tell al", "Tab")
	m.wait(`> tell ali$`)
	m.keys("Tab")
	m.wait(`\nalice  alina\nalice  working  task 2\nbob    idle\n> tell ali$`)
	m.keys("c", "Tab")
	m.wait(`> tell alice$`)
}

func TestResizing(t *testing.T) {
	m := start(t)
	m.keys("/print 30", "Enter")
	m.wait(`event 30 of 30\nalice`)
	long := "a line that is being typed while the team reports, longer than the terminal is wide, so it wraps"
	m.keys("-l", long)
	m.wait(`so it wraps$`)
	for range 3 {
		m.run("resize-window", "-x", "60")
		m.wait(`> a line that is being typed while the team reports, longer\n  than the terminal is wide, so it wraps$`)
		m.run("resize-window", "-x", "80")
		m.wait(`> a line that is being typed while the team reports, longer than the terminal\n  is wide, so it wraps$`)
	}
	m.keys("C-c", "/print 5", "Enter")
	m.wait(`event 5 of 5\nalice  working  task 2\nbob    idle\n> $`)
	h := m.history()
	if n := strings.Count(h, "alice"); n != 1 {
		t.Errorf("the status is there %d times:\n%s", n, h)
	}
	if n := strings.Count(h, "being typed"); n != 0 {
		t.Errorf("the line that was taken back is still there %d times:\n%s", n, h)
	}
	for i := range 30 {
		if n := strings.Count(h, fmt.Sprintf("\nevent %d of 30\n", i+1)); n != 1 {
			t.Errorf("event %d is there %d times:\n%s", i+1, n, h)
		}
	}
}

func TestManyLines(t *testing.T) {
	m := start(t)
	m.keys("typed", "C-a", "/print 1000 ", "Enter", "meanwhile")
	m.wait(`event 1000 of 1000\nalice  working  task 2\nbob    idle\n> meanwhile$`)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&want, "\nevent %d of 1000", i+1)
	}
	if h := m.history(); !strings.Contains(h, want.String()+"\nalice") {
		t.Errorf("the scrollback has not the lines in their order, and only them:\n%s", h)
	}
}

func TestStreaming(t *testing.T) {
	m := start(t)
	m.keys("/stream", "Enter", "typed")
	s := m.wait(`streamed\nalice  working  task 2\nbob    idle\n> typed$`)
	want := "> /stream\n" +
		"The counter holds its state in a file and the lock is taken before each write,\n" +
		"so that no two of us write at the same moment.\n" +
		"meanwhile\n\n- one\n- two [31mnot red ]0;titleover\n    func main() {}\nlast\nstreamed\n"
	if !strings.Contains(s, want) {
		t.Errorf("the screen is\n%s\nbut should have\n%s", s, want)
	}
	m.keys("C-u", "/grow", "Enter")
	m.wait(`(?s)late event\ngrowing on\nalice`) // the event does not wait for ever
	m.keys("/quit", "Enter")
	m.wait(`> /quit\ngrowing on\nbye after terminal.Line <nil>\n\$ $`)
}

func TestEnding(t *testing.T) {
	m := start(t)
	m.keys("some text", "C-c")
	m.wait(`\n> $`)
	m.keys("C-c")
	m.wait(`interrupted\nalice  working  task 2\nbob    idle\n> $`)
	m.keys("x", "C-a", "C-d", "C-d")
	m.wait(`interrupted\nbye after terminal.Closed <nil>\n\$ $`)
	m.cooked()
	if err := os.Remove(filepath.Join(m.dir, "end")); err != nil {
		t.Fatal(err)
	}
	m.keys("clear; talk", "Enter")
	m.wait(`(?s)ready.*bob.*> $`)
	m.keys("half a line", "M-Enter", "and more")
	m.wait(`and more$`)
	if err := syscall.Kill(m.pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.wait(`^\$ clear; talk\nready \d+\.\nbye after the context <nil>\n\$ $|^ready \d+\.\nbye after the context <nil>\n\$ $`)
	m.cooked()
}

func TestHangup(t *testing.T) {
	m := start(t)
	pid := m.pid()
	m.run("kill-server")
	for deadline := time.Now().Add(patience); syscall.Kill(pid, 0) == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d lives on without its terminal", pid)
		}
	}
	if got, err := os.ReadFile(filepath.Join(m.dir, "end")); err != nil || string(got) != "terminal.Closed" {
		t.Errorf("it ended with %q, %v", got, err)
	}
}

func TestSuspending(t *testing.T) {
	m := start(t)
	m.keys("before", "C-z")
	m.wait(`\n\[1\].*(Stopped|Suspended)(.|\n)*\$ $`)
	m.cooked()
	if h := m.history(); strings.Contains(h, "alice") {
		t.Errorf("the shell got parts of the view:\n%s", h)
	}
	m.keys("clear; fg", "Enter")
	m.wait(`alice  working  task 2\nbob    idle\n> before$`)
	m.keys(" and after", "Enter")
	m.wait(`> before and after\ngot 16 bytes`)
}

func TestClearingTheScreen(t *testing.T) {
	m := start(t)
	m.keys("/print 5", "Enter")
	m.wait(`event 5 of 5\n`)
	m.keys("typed", "C-l")
	m.wait(`^\nalice  working  task 2\nbob    idle\n> typed$`)
	m.keys("M-Enter", "C-j", "C-c", "/print 2", "Enter")
	m.wait(`^\n> /print 2\nevent 1 of 2\nevent 2 of 2\nalice  working  task 2\nbob    idle\n> $`)
}

// A terminal that does not know a query would print it, or its late answer would be typed into the prompt.
func TestNothingIsAskedOfTheTerminal(t *testing.T) {
	for _, name := range []string{"screen", "xterm-256color", "linux", "vt100"} {
		t.Run(name, func(t *testing.T) {
			m := shell(t)
			raw := filepath.Join(m.dir, "raw")
			m.run("pipe-pane", "cat > "+raw)
			m.keys("TERM="+name+" talk", "Enter")
			m.wait(`bob    idle\n> $`)
			m.keys("abc", "Enter", "C-d")
			m.wait(`> abc\ngot 3 bytes in 1 lines\nbye after terminal.Closed <nil>\n\$ $`)
			m.cooked()
			out, err := os.ReadFile(raw)
			if err != nil || len(out) == 0 {
				t.Fatalf("%d bytes, %v", len(out), err)
			}
			asks := regexp.MustCompile("\x1b\\[[?>=]?[0-9;]*(\\$p|c|n|u|q|t)|\x1b\\[>|\x1b[P\\]]")
			if found := asks.FindAll(out, -1); found != nil {
				t.Errorf("written: %q", found)
			}
		})
	}
}

func TestNoTerminal(t *testing.T) {
	m := shell(t)
	m.keys("TERM=dumb talk; talk </dev/null; talk | cat", "Enter")
	m.wait(`plain: TERM is "dumb": no(.|\n)*plain: the input(.|\n)*plain: the input(.|\n)*\$ $`)
}

func TestPanicRestoresTheTerminal(t *testing.T) {
	m := shell(t)
	m.keys("MUSTER_TALK=panic talk 2>"+filepath.Join(m.dir, "stderr"), "Enter")
	m.wait(`bye after terminal.Closed (.|\n)*panic(.|\n)*\$ $`)
	m.cooked()
	if said, _ := os.ReadFile(filepath.Join(m.dir, "stderr")); !strings.Contains(string(said), "the status function: asked to") {
		t.Errorf("stderr has %q", said)
	}
}
