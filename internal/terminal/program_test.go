package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"
)

// TestMain runs the program that is talked to inside tmux when the test binary starts itself.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TALK") != "" {
		talk()
		return
	}
	os.Exit(m.Run())
}

func talk() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	// As muster does: both the kernel and the shell send a hangup, and the second must not end a program that is closing.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	t, err := Open(ctx, Options{
		In: os.Stdin, Out: os.Stdout, Colour: true,
		History:  []string{"first line", "second line", "go test ./..."},
		Complete: completeNames,
		Editor: func(file string) *exec.Cmd {
			return exec.Command("sh", "-c", `test -t 1 && grep -q fail "$0" && exit 3; echo more >> "$0"`, file)
		},
		Status: func(int) Status {
			if os.Getenv("MUSTER_TALK") == "panic" {
				panic("asked to")
			}
			return Status{Lines: []string{"\x1b[2malice\x1b[m  working  task 2", "bob    idle"}}
		},
	})
	if errors.Is(err, ErrNoTerminal) {
		fmt.Println("plain:", err)
		return
	} else if err != nil {
		fmt.Println("failed:", err)
		return
	}
	t.Print(fmt.Sprintf("ready %d.", os.Getpid()))
	ended := "the context"
	for e := range t.Events() {
		switch e := e.(type) {
		case Line:
			answer(t, e.Text)
			if e.Text != "/quit" {
				continue
			}
		case Interrupt:
			t.Print("interrupted")
			continue
		case Escape:
			t.Print(fmt.Sprintf("escape, empty: %v", e.IsEmpty))
			t.Edit("go test ./...")
			continue
		case Closed:
		}
		ended = fmt.Sprintf("%T", e)
		break
	}
	err = errors.Join(t.Close(), t.Close())
	stop()
	// bubbletea 2.0.9 does not wait for its reader after a panic
	if left := goleak.Find(); left != nil && os.Getenv("MUSTER_TALK") != "panic" {
		err = errors.Join(err, left)
	}
	if f := os.Getenv("MUSTER_TALK_END"); f != "" {
		_ = os.WriteFile(f, []byte(ended), 0o600)
	}
	fmt.Println("bye after", ended, err)
}

// completeNames completes three names behind an @, and anywhere when it is asked to, and commands, of which one needs
// more.
func completeNames(text string, cursor int, isAsked bool) Menu {
	m := Menu{From: strings.LastIndexByte(text[:cursor], ' ') + 1}
	word := text[m.From:cursor]
	add := func(choices ...Choice) {
		for _, c := range choices {
			if strings.HasPrefix(c.Text, word) {
				m.Choices = append(m.Choices, c)
			}
		}
	}
	switch {
	case m.From == 0 && strings.HasPrefix(word, "/"):
		add(Choice{"/print ", "/print N", "prints lines", false}, Choice{"/stream", "/stream", "streams", true})
	case strings.HasPrefix(word, "@"):
		for i := range 12 {
			add(Choice{Text: fmt.Sprintf("@dir/file%d ", i), Label: fmt.Sprintf("dir/file%d", i)})
		}
		m.More = 3
	case text[:m.From] == "/print ":
		m.IsOptional = true
		add(Choice{Text: "5 ", Label: "5"}, Choice{Text: "50 ", Label: "50"})
	case isAsked:
		add(Choice{Text: "alice", Label: "alice"}, Choice{Text: "alina", Label: "alina"}, Choice{Text: "bob"})
	}
	return m
}

const paragraph = "The counter holds its state in a file and the lock is taken before each write, so that no two of us write at the same moment."

// answer does what a line says; tests see the effect on the screen.
func answer(t *Terminal, text string) {
	word, rest, _ := strings.Cut(text, " ")
	n := 0
	_, _ = fmt.Sscan(rest, &n)
	switch word {
	case "/quit":
	case "/print": // from several goroutines' view the order is the caller's; here there is one
		for i := range n {
			t.Print(fmt.Sprintf("\x1b[32mevent %d\x1b[m of %d", i+1, n))
		}
	case "/stream": // byte by byte, with events in between
		for i := range len(paragraph) {
			t.Stream(paragraph[i : i+1])
			if i == 90 {
				t.Print("meanwhile")
			}
		}
		t.Stream("\n\n- one\r\n- two \x1b[31mnot red \x1b]0;title\a\u202eover\n\tfunc main() {}\nlast")
		t.Flush()
		t.Print("streamed")
	case "/grow":
		t.Stream("growing ")
		t.Stream("on")
		t.Print("late event")
	default:
		t.Print(fmt.Sprintf("got %d bytes in %d lines", len(text), strings.Count(text, "\n")+1))
	}
}
