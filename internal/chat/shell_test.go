package chat

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"muster/internal/terminal"
)

// fakeShell runs commands that are known: it prints, or waits until it is stopped.
func fakeShell(ctx context.Context, command string, out io.Writer) (int, error) {
	switch command {
	case "ls":
		_, _ = io.WriteString(out, "a.go\nb.go")
	case "false":
		return 1, nil
	case "wait":
		_, _ = io.WriteString(out, "began\n")
		<-ctx.Done()
		return 0, context.Cause(ctx)
	case "big":
		for i := range 5000 {
			_, _ = fmt.Fprintf(out, "line %d\n", i+1)
		}
	}
	return 0, nil
}

func TestShell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(s *Session) { s.Shell = fakeShell })
		b.types("!ls", "! false", "!wait")
		b.types("!ls") // while one runs
		b.events <- terminal.Interrupt{}
		synctest.Wait()
		b.events <- terminal.Interrupt{} // only stopped a command before, so this one does not leave
		synctest.Wait()
		if got, want := b.paper.String(), "a.go\nb.go\n! exit 1\nbegan\na command runs already: Ctrl-C stops it\n! you stopped it\n"+
			"nothing runs yet (Ctrl-C again leaves)\n"; got != want {
			t.Errorf("shown %q, want %q", got, want)
		}
		b.types("fix these", "and more", "!wait", "/quit")
		<-b.ended // the command is stopped with it
		want := "fix these\n\nBefore this I ran, in my shell:\n$ ls\na.go\nb.go\n$ false\n(exit 1)\n$ wait\nbegan\n(you stopped it)"
		if len(b.begun) != 1 || b.begun[0] != want {
			t.Errorf("said %q, want %q", b.begun, want)
		}
		if len(b.heard) != 1 || b.heard[0] != "and more" {
			t.Errorf("and then %q", b.heard)
		}
	})
}

func TestLongOutput(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, func(s *Session) { s.Shell = fakeShell })
		b.types("!big")
		got := strings.Split(b.paper.String(), "\n")
		if len(got) != maxShellRows+2 || got[0] != "line 1" || got[maxShellRows] != "... 4800 more lines" {
			t.Errorf("%d lines, the last %q", len(got), got[len(got)-2:])
		}
		b.types("!big", "!big", "!ls", "why?", "/quit")
		<-b.ended
		said := b.begun[0]
		if len(said) > maxShellTotal+1000 || !strings.Contains(said, "\nline 1\n") || !strings.Contains(said, "bytes are left out ...\n") ||
			!strings.HasSuffix(said, "line 5000\n$ ls\na.go\nb.go") || !strings.Contains(said, "(1 before are left out)\n$ big") {
			t.Errorf("%d bytes: %.300q ... %q", len(said), said, said[len(said)-100:])
		}
	})
}

func TestShellOutputIsPlain(t *testing.T) {
	o := &shellOutput{print: func(string) {}}
	for _, piece := range []string{"\x1b[3", "1mred\x1b[m\r\n", " 10%\r 100%\n", "日本"[:4], "日本"[4:], "\x1b]0;t\a\n\n"} {
		_, _ = io.WriteString(o, piece)
	}
	if got, want := o.text(), "red\n 100%\n日本\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
