package proc

import (
	"cmp"
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
func openStdio(s Spec) (*stdio, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	p := &stdio{in: null, out: null, toClose: []*os.File{null}}
	if file, isFile := s.Stdin.(*os.File); isFile {
		p.in = file
	} else if s.Stdin != nil {
		p.in, p.feed, err = os.Pipe()
		p.toClose = append(p.toClose, p.in)
	}
	if file, isFile := s.Out.(*os.File); isFile {
		p.out = file
	} else if s.Out != nil && err == nil {
		p.drain, p.out, err = os.Pipe()
		p.toClose = append(p.toClose, p.out)
	}
	p.err = cmp.Or(s.Err, p.out)
	if err != nil {
		p.abandon()
	}
	return p, err
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

func (p *stdio) abandon() {
	p.closeProgramEnds()
	_ = p.feed.Close()
	_ = p.drain.Close()
}

func (p *stdio) closeProgramEnds() {
	for _, f := range p.toClose {
		_ = f.Close()
	}
	p.toClose = nil
}
