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

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
)

// tmux is a terminal in which the command talk starts the program.
type tmux struct {
	*tmuxtest.Screen
	t   *testing.T
	end string // the file in which the program says how it ended
}

// shell starts a terminal.
func shell(t *testing.T) *tmux {
	t.Helper()
	me := require.Value(os.Executable())(t)
	end := filepath.Join(t.TempDir(), "end")
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "MUSTER_") {
			env = append(env, v)
		}
	}
	m := &tmux{tmuxtest.Start(t, "", append(env, "MUSTER_TALK_END="+end)), t, end}
	script := fmt.Sprintf("#!/bin/sh\nMUSTER_TALK=${MUSTER_TALK:-yes} exec '%s'\n", me)
	require.NoError(t, os.WriteFile(filepath.Join(m.Dir, "talk"), []byte(script), 0o700))
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

// TestInATerminal is the witness of the first tier: what a person does in a conversation, in a real terminal.
func TestInATerminal(t *testing.T) {
	t.Parallel()
	m := start(t)
	m.Keys("helo wrld", "Left", "Left", "Left", "o", "C-a", "M-f", "Left", "l", "C-e", "!")
	m.Wait(`> hello world!$`)
	m.Keys("Enter")
	m.Wait(`> hello world!\n\ngot 12 bytes in 1 lines\nalice  working  task 2\nbob    idle\n> $`)
	m.Keys("-l", "日本語 e\u0301 \U0001F44D x")
	m.Wait("> 日本語 e\u0301 \U0001F44D x$")
	m.Cursor(4 + 6 + 1 + 1 + 1 + 2 + 1 + 1)
	m.Keys("Left", "Left", "Left", "Left", "Left")
	m.Cursor(4 + 6 + 1)
	m.Keys("C-u", "C-k", "see ")
	m.Paste("one\n\ttwo\nthree")
	m.Wait(`> see one\n      two\n  three$`)
	m.Keys("Enter")
	m.Wait(`got 18 bytes in 3 lines`)
	m.Keys("clear", "C-l")
	m.Wait(`^\nalice  working  task 2\nbob    idle\n> clear$`)

	m.Keys("C-u", "/stream", "Enter", "typed")
	// What is typed while a block grows stays where it is when the block has ended, below blank rows.
	s := m.Wait(`streamed\n+alice  working  task 2\nbob    idle\n> typed$`)
	want := "> /stream\n\n" +
		"The counter holds its state in a file and the lock is taken before each write,\n" +
		"so that no two of us write at the same moment.\n" +
		"\nmeanwhile\n\n- one\n- two [31mnot red ]0;titleover\n  func main() {}\n  last\n\nstreamed\n"
	if !strings.Contains(s, want) {
		t.Errorf("the screen is\n%s\nbut should have\n%s", s, want)
	}

	m.Keys("C-z")
	m.Wait(`\n\[1\].*(Stopped|Suspended)(.|\n)*\$ $`)
	m.Cooked()
	m.Keys("clear; fg", "Enter")
	m.Wait(`alice  working  task 2\nbob    idle\n> typed$`)
	m.Keys("C-c")
	m.Wait(`\n> $`)
	m.Keys("C-c")
	m.Wait(`interrupted\nalice  working  task 2\nbob    idle\n> $`)
	m.Keys("one two", "M-b", "x") // Esc and an Alt key begin with the same byte
	m.Wait(`> one xtwo$`)
	m.Keys("Escape")
	m.Wait(`escape, empty: false\n(.|\n)*> go test ./\.\.\.$`)
	m.Keys("C-u", "edited ", "C-g")
	m.Wait(`\n> edited more$`)
	m.Keys("C-u", "fail", "C-g")
	m.Wait(`the editor failed \(exit status 3\), and the message is as it was; the draft:\s+\S+message.md\n(.|\n)*> fail$`)
	m.Keys("C-u", "/grow", "Enter")
	m.Wait(`(?s)late event\n\ngrowing on\nalice`) // the event does not wait for ever
	m.Keys("C-d")
	m.Wait(`growing on\nbye after terminal.Leave <nil>\n\$ $`)
	m.Cooked()
}

func TestResizing(t *testing.T) {
	tier.All(t)
	t.Parallel()
	m := start(t)
	m.Keys("/print 30", "Enter")
	m.Wait(`event 30 of 30\nalice`)
	long := "a line that is being typed while the team reports, longer than the terminal is wide, so it wraps"
	m.Keys("-l", long)
	m.Wait(`so it wraps$`)
	for range 2 {
		m.Tmux("resize-window", "-x", "60")
		m.Wait(`> a line that is being typed while the team reports,\n  longer than the terminal is wide, so it wraps$`)
		m.Tmux("resize-window", "-x", "80")
		m.Wait(`> a line that is being typed while the team reports, longer than the\n  terminal is wide, so it wraps$`)
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

// TestEnding checks the ends that the witness does not have: SIGTERM, and a terminal that goes away.
func TestEnding(t *testing.T) {
	tier.All(t)
	t.Parallel()
	m := start(t)
	m.Keys("half a line", "M-Enter", "and more")
	m.Wait(`and more$`)
	require.NoError(t, syscall.Kill(m.pid(), syscall.SIGTERM))
	m.Wait(`^\$ talk\nready \d+\.\nbye after the context <nil>\n\$ $|^ready \d+\.\nbye after the context <nil>\n\$ $`)
	m.Cooked()
	require.NoError(t, os.Remove(m.end))
	m.Keys("clear; talk", "Enter")
	m.Wait(`(?s)^ready.*bob.*> $`)
	pid := m.pid()
	m.Tmux("kill-server")
	wait.Within(t, time.Minute, "the process ends without its terminal", func() bool { return syscall.Kill(pid, 0) != nil })
	if got, err := os.ReadFile(m.end); err != nil || string(got) != "terminal.Closed" {
		t.Errorf("it ended with %q, %v", got, err)
	}
}

// A terminal that does not know a query would print it, or its late answer would be typed into the prompt.
func TestNothingIsAskedOfTheTerminal(t *testing.T) {
	tier.All(t)
	for _, name := range []string{"screen", "xterm-256color", "linux", "vt100"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := shell(t)
			raw := filepath.Join(m.Dir, "raw")
			m.Tmux("pipe-pane", "cat > "+raw)
			m.Keys("TERM="+name+" talk", "Enter")
			m.Wait(`bob    idle\n> $`)
			m.Keys("abc", "Enter", "C-d")
			m.Wait(`> abc\n\ngot 3 bytes in 1 lines\nbye after terminal.Leave <nil>\n\$ $`)
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

func TestPanicRestoresTheTerminal(t *testing.T) {
	tier.All(t)
	t.Parallel()
	m := shell(t)
	m.Keys("MUSTER_TALK=panic talk 2>"+filepath.Join(m.Dir, "stderr"), "Enter")
	m.Wait(`bye after terminal.Closed (.|\n)*panic(.|\n)*\$ $`)
	m.Cooked()
	if said, _ := os.ReadFile(filepath.Join(m.Dir, "stderr")); !strings.Contains(string(said),
		"the status function: asked to") {
		t.Errorf("stderr has %q", said)
	}
}
