package proc

import (
	"errors"
	"io"
	"os"
	"time"
)

// stdio has both ends of what a program reads and writes.
type stdio struct {
	in, out *os.File   // the program's ends
	toClose []*os.File // those of them that are ours to close once it has started

	feed, drain *os.File // our ends, where there is a pipe
	copied      chan error
}

// openStdio opens what s needs. The caller ends it with abandon, or with begin and finish.
func openStdio(s Spec) (p *stdio, err error) {
	p = &stdio{}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	null := func(mode int) *os.File {
		if err != nil {
			return nil
		}
		var f *os.File
		if f, err = os.OpenFile(os.DevNull, mode, 0); err != nil {
			return nil
		}
		p.toClose = append(p.toClose, f)
		return f
	}
	switch f, isFile := s.Stdin.(*os.File); {
	case s.Stdin == nil || isFile && f == nil:
		p.in = null(os.O_RDONLY)
	case isFile:
		p.in = f
	default:
		if p.in, p.feed, err = os.Pipe(); err == nil {
			p.toClose = append(p.toClose, p.in)
		}
	}
	if err != nil {
		return nil, err
	}
	switch f, isFile := s.Out.(*os.File); {
	case s.Out == nil || isFile && f == nil:
		p.out = null(os.O_WRONLY)
	case isFile:
		p.out = f
	default:
		if p.drain, p.out, err = os.Pipe(); err == nil {
			p.toClose = append(p.toClose, p.out)
		}
	}
	return p, err
}

// begin starts to copy. The program has started and has its ends.
func (p *stdio) begin(s Spec) {
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
				_ = p.drain.Close() // the program learns it at its next write
			}
			p.copied <- err
		}()
	}
}

// finish is called when the tree is dead. It waits for the output to arrive, but not for ever: a process that could not
// be killed may still hold the pipe.
func (p *stdio) finish() (err error) {
	if p.feed != nil {
		_ = p.feed.Close()
	}
	if p.drain == nil {
		return nil
	}
	select {
	case err = <-p.copied:
	// A deadline ends the copy, and what has arrived until then is kept.
	case <-time.After(outputTimeout):
		_ = p.drain.SetReadDeadline(time.Now())
		select {
		case err = <-p.copied:
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil
			}
		case <-time.After(outputTimeout / 20):
			// Out.Write itself hangs; its goroutine ends when that returns.
		}
	}
	_ = p.drain.Close()
	return err
}

// abandon closes everything, because the program did not start.
func (p *stdio) abandon() {
	p.closeProgramEnds()
	for _, f := range []*os.File{p.feed, p.drain} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// closeProgramEnds closes the ends that the program has now.
func (p *stdio) closeProgramEnds() {
	for _, f := range p.toClose {
		_ = f.Close()
	}
	p.toClose = nil
}
