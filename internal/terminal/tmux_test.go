//go:build unix

package terminal

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
)

// tmux is a terminal in which the command talk starts the program.
type tmux struct {
	*tmuxtest.Screen
	t   *testing.T
	end string // the file in which the program says how it ended
}

const patience = 20 * time.Second

// shell starts a terminal.
func shell(t *testing.T) *tmux {
	t.Helper()
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	end := filepath.Join(t.TempDir(), "end")
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MUSTER_") {
			env = append(env, v)
		}
	}
	m := &tmux{tmuxtest.Start(t, "", append(env, "MUSTER_TALK_END="+end)), t, end}
	script := fmt.Sprintf("#!/bin/sh\nMUSTER_TALK=${MUSTER_TALK:-yes} exec '%s'\n", me)
	if err := os.WriteFile(filepath.Join(m.Dir, "talk"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

// start is shell with the program running.
func start(t *testing.T) *tmux {
	t.Helper()
	m := shell(t)
	m.Keys("talk", "Enter")
	m.Wait(`(?s)ready.*bob.*> $`)
	return m
}

func (m *tmux) pid() int {
	m.t.Helper()
	found := regexp.MustCompile(`ready (\d+)\.`).FindStringSubmatch(m.History())
	if found == nil {
		m.t.Fatalf("no process id:\n%s", m.History())
	}
	n, _ := strconv.Atoi(found[1])
	return n
}

func TestTyping(t *testing.T) {
	m := start(t)
	m.Keys("helo wrld", "Left", "Left", "Left", "o", "C-a", "M-f", "Left", "l", "C-e", "!")
	m.Wait(`> hello world!$`)
	m.Keys("Enter")
	m.Wait(`> hello world!\ngot 12 bytes in 1 lines\nalice  working  task 2\nbob    idle\n> $`)
	m.Keys("-l", "日本語 e\u0301 \U0001F44D x")
	m.Wait("> 日本語 e\u0301 \U0001F44D x$")
	m.Cursor(2 + 6 + 1 + 1 + 1 + 2 + 1 + 1)
	m.Keys("Left", "Left", "Left", "Left", "Left")
	m.Cursor(2 + 6 + 1)
	m.Keys("C-h", "C-h")
	m.Wait("> 日本e\u0301 \U0001F44D x$")
	m.Cursor(2 + 4)
	m.Keys("C-c", "one two", "C-w", "C-y", "C-y", "C-u", "three", "M-Enter", "four", "C-j", "five")
	m.Wait(`> three\n  four\n  five$`)
	m.Keys("Enter")
	m.Wait(`> three\n  four\n  five\ngot 15 bytes in 3 lines\n`)
}

func TestPasting(t *testing.T) {
	m := start(t)
	m.Keys("see ")
	m.Paste("one\n\ttwo\nthree")
	m.Wait(`> see one\n      two\n  three$`)
	m.Keys("Enter")
	m.Wait(`got 18 bytes in 3 lines`)
	var b strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	m.Keys("all: ")
	m.Paste(b.String())
	m.Wait(`> all: \[5000 lines pasted\]$`)
	m.Keys("ok!", "Enter")
	m.Wait(fmt.Sprintf(`> all: \[5000 lines pasted\]ok!\ngot %d bytes in 5001 lines`, b.Len()+8))
	var rows strings.Builder
	for i := range 8 {
		fmt.Fprintf(&rows, "row %d\n", i)
	}
	m.Paste(rows.String() + "x") // nine lines fold, eight do not
	m.Wait(`> \[9 lines pasted\]$`)
	m.Keys("C-h")
	m.Wait(`> $`)
}

func TestHistoryOnScreen(t *testing.T) {
	m := start(t)
	m.Keys("draft", "Up", "Up")
	m.Wait(`> second line$`)
	m.Keys("Down", "Down")
	m.Wait(`> draft$`)
	m.Keys("C-r", "lin")
	m.Wait(`\(search: lin\) second line$`)
	m.Keys("C-r")
	m.Wait(`\(search: lin\) first line$`)
	m.Keys("C-r")
	m.Wait(`\(no older match: lin\) first line$`)
	m.Keys("C-g")
	m.Wait(`> draft$`)
	m.Keys("C-r", "sec", "Enter")
	m.Wait(`> second line\ngot 11 bytes`)
}

// Esc and an Alt key begin with the same byte.
func TestEscape(t *testing.T) {
	m := start(t)
	m.Keys("one two", "M-b", "x")
	m.Wait(`> one xtwo$`)
	m.Keys("Escape")
	m.Wait(`escape, empty: false\n(.|\n)*> go test ./\.\.\.$`)
	m.Keys("Down")
	m.Wait(`> one xtwo$`)
}

func TestCompletion(t *testing.T) {
	m := start(t)
	m.Keys("tell al", "Tab")
	m.Wait(`> tell ali$`)
	m.Keys("Tab")
	m.Wait(`bob    idle\n> tell ali\n\* alice\n  alina$`)
	m.Cursor(10)
	m.Keys("c")
	m.Wait(`> tell alic$`)
	m.Keys("Tab")
	m.Wait(`> tell alice$`)
}

func TestResizing(t *testing.T) {
	m := start(t)
	m.Keys("/print 30", "Enter")
	m.Wait(`event 30 of 30\nalice`)
	long := "a line that is being typed while the team reports, longer than the terminal is wide, so it wraps"
	m.Keys("-l", long)
	m.Wait(`so it wraps$`)
	for range 3 {
		m.Tmux("resize-window", "-x", "60")
		m.Wait(`> a line that is being typed while the team reports, longer\n  than the terminal is wide, so it wraps$`)
		m.Tmux("resize-window", "-x", "80")
		m.Wait(`> a line that is being typed while the team reports, longer than the terminal\n  is wide, so it wraps$`)
	}
	m.Keys("C-c", "/print 5", "Enter")
	m.Wait(`event 5 of 5\nalice  working  task 2\nbob    idle\n> $`)
	h := m.History()
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
	m.Keys("typed", "C-a", "/print 1000 ", "Enter", "meanwhile")
	m.Wait(`event 1000 of 1000\nalice  working  task 2\nbob    idle\n> meanwhile$`)
	var want strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&want, "\nevent %d of 1000", i+1)
	}
	if h := m.History(); !strings.Contains(h, want.String()+"\nalice") {
		t.Errorf("the scrollback has not the lines in their order, and only them:\n%s", h)
	}
}

func TestStreaming(t *testing.T) {
	m := start(t)
	m.Keys("/stream", "Enter", "typed")
	s := m.Wait(`streamed\nalice  working  task 2\nbob    idle\n> typed$`)
	want := "> /stream\n" +
		"The counter holds its state in a file and the lock is taken before each write,\n" +
		"so that no two of us write at the same moment.\n" +
		"meanwhile\n\n- one\n- two [31mnot red ]0;titleover\n    func main() {}\nlast\nstreamed\n"
	if !strings.Contains(s, want) {
		t.Errorf("the screen is\n%s\nbut should have\n%s", s, want)
	}
	m.Keys("C-u", "/grow", "Enter")
	m.Wait(`(?s)late event\ngrowing on\nalice`) // the event does not wait for ever
	m.Keys("/quit", "Enter")
	m.Wait(`> /quit\ngrowing on\nbye after terminal.Line <nil>\n\$ $`)
}

func TestEnding(t *testing.T) {
	m := start(t)
	m.Keys("some text", "C-c")
	m.Wait(`\n> $`)
	m.Keys("C-c")
	m.Wait(`interrupted\nalice  working  task 2\nbob    idle\n> $`)
	m.Keys("x", "C-a", "C-d", "C-d")
	m.Wait(`interrupted\nbye after terminal.Leave <nil>\n\$ $`)
	m.Cooked()
	if err := os.Remove(m.end); err != nil {
		t.Fatal(err)
	}
	m.Keys("clear; talk", "Enter")
	m.Wait(`(?s)ready.*bob.*> $`)
	m.Keys("half a line", "M-Enter", "and more")
	m.Wait(`and more$`)
	if err := syscall.Kill(m.pid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	m.Wait(`^\$ clear; talk\nready \d+\.\nbye after the context <nil>\n\$ $|^ready \d+\.\nbye after the context <nil>\n\$ $`)
	m.Cooked()
}

func TestHangup(t *testing.T) {
	m := start(t)
	pid := m.pid()
	m.Tmux("kill-server")
	wait.Within(t, patience, "the process ends without its terminal", func() bool { return syscall.Kill(pid, 0) != nil })
	if got, err := os.ReadFile(m.end); err != nil || string(got) != "terminal.Closed" {
		t.Errorf("it ended with %q, %v", got, err)
	}
}

func TestSuspending(t *testing.T) {
	m := start(t)
	m.Keys("before", "C-z")
	m.Wait(`\n\[1\].*(Stopped|Suspended)(.|\n)*\$ $`)
	m.Cooked()
	if h := m.History(); strings.Contains(h, "alice") {
		t.Errorf("the shell got parts of the view:\n%s", h)
	}
	m.Keys("clear; fg", "Enter")
	m.Wait(`alice  working  task 2\nbob    idle\n> before$`)
	m.Keys(" and after", "Enter")
	m.Wait(`> before and after\ngot 16 bytes`)
}

func TestClearingTheScreen(t *testing.T) {
	m := start(t)
	m.Keys("/print 5", "Enter")
	m.Wait(`event 5 of 5\nalice  working  task 2\nbob    idle\n> $`)
	m.Keys("typed")
	m.Wait(`\n> typed$`)
	m.Keys("C-l")
	m.Wait(`^\nalice  working  task 2\nbob    idle\n> typed$`)
	m.Keys("M-Enter", "C-j", "C-c", "/print 2", "Enter")
	m.Wait(`^\n> /print 2\nevent 1 of 2\nevent 2 of 2\nalice  working  task 2\nbob    idle\n> $`)
}

// A terminal that does not know a query would print it, or its late answer would be typed into the prompt.
func TestNothingIsAskedOfTheTerminal(t *testing.T) {
	for _, name := range []string{"screen", "xterm-256color", "linux", "vt100"} {
		t.Run(name, func(t *testing.T) {
			m := shell(t)
			raw := filepath.Join(m.Dir, "raw")
			m.Tmux("pipe-pane", "cat > "+raw)
			m.Keys("TERM="+name+" talk", "Enter")
			m.Wait(`bob    idle\n> $`)
			m.Keys("abc", "Enter", "C-d")
			m.Wait(`> abc\ngot 3 bytes in 1 lines\nbye after terminal.Leave <nil>\n\$ $`)
			m.Cooked()
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
	m.Keys("TERM=dumb talk; talk </dev/null; talk | cat", "Enter")
	m.Wait(`plain: TERM is "dumb": no(.|\n)*plain: the input(.|\n)*plain: the input(.|\n)*\$ $`)
}

func TestPanicRestoresTheTerminal(t *testing.T) {
	m := shell(t)
	m.Keys("MUSTER_TALK=panic talk 2>"+filepath.Join(m.Dir, "stderr"), "Enter")
	m.Wait(`bye after terminal.Closed (.|\n)*panic(.|\n)*\$ $`)
	m.Cooked()
	if said, _ := os.ReadFile(filepath.Join(m.Dir, "stderr")); !strings.Contains(string(said),
		"the status function: asked to") {
		t.Errorf("stderr has %q", said)
	}
}
