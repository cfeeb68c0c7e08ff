package proc

import (
	"errors"
	"io"
	"os"
	"time"
)

// stdio has both ends of what a program reads and writes.
type stdio struct {
	in, out, err *os.File   // the program's ends
	toClose      []*os.File // those of them that are ours to close once it has started

	// feed and drain are our ends, nil where there is no pipe. To close a nil file is an error and does nothing.
	feed, drain *os.File
	copied      chan error
}

// openStdio opens what s needs. The caller ends it with abandon, or with begin and finish.
func openStdio(s Spec) (p *stdio, err error) {
	p = &stdio{}
	if p.in, err = p.fileOf(s.Stdin); err == nil && p.in == nil {
		p.in, p.feed, err = os.Pipe()
		p.toClose = append(p.toClose, p.in)
	}
	if err == nil {
		p.out, err = p.fileOf(s.Out)
	}
	if err == nil && p.out == nil {
		p.drain, p.out, err = os.Pipe()
		p.toClose = append(p.toClose, p.out)
	}
	if p.err = s.Err; p.err == nil {
		p.err = p.out
	}
	if err != nil {
		p.abandon()
	}
	return p, err
}

// fileOf returns what the program gets for the reader or writer of its Spec where it needs no pipe: the file that it
// is, or the null device if there is none.
func (p *stdio) fileOf(end any) (*os.File, error) {
	f, isFile := end.(*os.File)
	if f != nil || end != nil && !isFile {
		return f, nil
	}
	f, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	p.toClose = append(p.toClose, f)
	return f, err
}

// begin starts to copy. The program has started and has its ends; kill ends it when its output cannot be taken.
func (p *stdio) begin(s Spec, kill func() error) {
	p.closeProgramEnds()
	if p.feed != nil {
		go func() {
			_, _ = io.Copy(p.feed, s.Stdin) // it fails when the program does not read all of it, which it need not
			_ = p.feed.Close()
		}()
	}
	if p.drain != nil {
		p.copied = make(chan error, 1)
		go func() {
			_, err := io.Copy(s.Out, p.drain)
			if err != nil {
				_ = p.drain.Close() // the program learns it at its next write, of which most programs die
				time.AfterFunc(brokenPipeGrace, func() { _ = kill() })
			}
			p.copied <- err
		}()
	}
}

// finish is called when the tree is dead. It waits for the output to arrive, but not for ever: a process that could not
// be killed may still hold the pipe.
func (p *stdio) finish() (err error) {
	_ = p.feed.Close()
	if p.drain == nil {
		return nil
	}
	// The deadline ends the copy, and what has arrived until then is kept.
	_ = p.drain.SetReadDeadline(time.Now().Add(outputTimeout))
	select {
	case err = <-p.copied:
	case <-time.After(outputTimeout + outputTimeout/20): // Out.Write itself hangs; its goroutine ends when that returns
	}
	_ = p.drain.Close()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// abandon closes everything, because the program did not start.
func (p *stdio) abandon() {
	p.closeProgramEnds()
	_ = p.feed.Close()
	_ = p.drain.Close()
}

// closeProgramEnds closes the ends that the program has now.
func (p *stdio) closeProgramEnds() {
	for _, f := range p.toClose {
		_ = f.Close()
	}
	p.toClose = nil
}
