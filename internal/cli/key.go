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

// readKey waits for one key on a terminal and returns it without an Enter. It is 0 for several keys at once, which are
// the beginning of a message that was typed before the question stood, and for a key that sends several bytes, such as
// an arrow. The error of Ctrl-C is muster.CauseUser, and the cause of ctx where that ends first.
func readKey(ctx context.Context, f *os.File) (key byte, err error) {
	keys, err := readBytes(ctx, f, 4096)
	if err != nil || len(bytes.TrimRight(keys[1:], "\r\n")) > 0 {
		return 0, err
	}
	return keys[0], nil
}

// readBytes is readKey for at most n bytes, and returns at least one. What follows them stays for the next reader.
func readBytes(ctx context.Context, f *os.File, n int) ([]byte, error) {
	state, err := term.MakeRaw(int(f.Fd()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = term.Restore(int(f.Fd()), state) }() // nothing can be done about it
	read, failed := make(chan []byte, 1), make(chan struct{})
	// Where ctx ends first the program ends, so the read that still waits does no harm.
	go func() {
		some := make([]byte, n)
		if n, err := f.Read(some); n > 0 && err == nil {
			read <- some[:n]
		} else {
			close(failed)
		}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-failed:
		return nil, errors.New("the question was not answered") // the terminal is gone
	case keys := <-read:
		if bytes.ContainsAny(keys, string([]byte{keyCtrlC, keyCtrlD})) {
			return nil, muster.CauseUser
		}
		return keys, nil
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
