package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/term"

	"muster"
	"muster/internal/terminal"
	"muster/internal/view"
)

const keyCtrlC, keyCtrlD = 3, 4

// readKey waits for one key on a terminal and returns it without an Enter. A key that sends several bytes, such as an
// arrow, is its first. The error of Ctrl-C is muster.CauseUser, and the cause of ctx where that ends first.
func readKey(ctx context.Context, f *os.File) (key byte, err error) {
	return readBytes(ctx, f, 16) // several may come at once
}

// readBytes is readKey for at most n bytes. What follows them stays for the next reader.
func readBytes(ctx context.Context, f *os.File, n int) (first byte, err error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return 0, err
	}
	defer func() { _ = term.Restore(int(f.Fd()), state) }() // nothing can be done about it
	read := make(chan error, 1)
	keys := make([]byte, n)
	// Where ctx ends first the program ends, so the read that still waits does no harm.
	go func() {
		n, err := f.Read(keys)
		if n == 0 && err == nil {
			err = io.EOF
		}
		keys = keys[:n]
		read <- err
	}()
	select {
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case err := <-read:
		switch {
		case err != nil:
			return 0, errors.New("the question was not answered") // the terminal is gone
		case bytes.ContainsAny(keys, string([]byte{keyCtrlC, keyCtrlD})):
			return 0, muster.CauseUser
		}
		return keys[0], nil
	}
}

// hasTyped reports whether a terminal has unread input, with or without an Enter. The input of a terminal in whose
// background this process is belongs to others.
func hasTyped(f *os.File) bool {
	if !terminal.IsForeground(f) {
		return true
	}
	state, err := term.MakeRaw(int(f.Fd())) // a line without its end is not there to be read otherwise
	if err != nil {
		return false
	}
	defer func() { _ = term.Restore(int(f.Fd()), state) }() // as above
	return terminal.HasInput(f)
}

func isTerminal(w io.Writer) bool {
	_, is := view.TerminalWidth(w)
	return is
}
