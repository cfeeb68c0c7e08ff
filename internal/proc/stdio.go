package proc

import (
	"errors"
	"io"
	"os"
	"time"
)

// stdio are the two ends of what a program reads and writes.
type stdio struct {
	in, out *os.File   // the program's ends
	lent    []*os.File // those of them that are ours to close once it has started

	feed, drain *os.File // our ends, where there is a pipe
	copied      chan error
}

// plumb opens what s needs. The caller ends it with abandon, or with begin and finish.
func plumb(s Spec) (p *stdio, err error) {
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
		p.lent = append(p.lent, f)
		return f
	}
	switch f, isFile := s.Stdin.(*os.File); {
	case s.Stdin == nil || isFile && f == nil:
		p.in = null(os.O_RDONLY)
	case isFile:
		p.in = f
	default:
		if p.in, p.feed, err = os.Pipe(); err == nil {
			p.lent = append(p.lent, p.in)
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
			p.lent = append(p.lent, p.out)
		}
	}
	return p, err
}

// begin starts copying: the program has its ends.
func (p *stdio) begin(s Spec) {
	p.returnLent()
	if p.feed != nil {
		go func() {
			_, _ = io.Copy(p.feed, s.Stdin) // it fails when the program does not read it all: its right
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

// finish is called when the tree is dead: it waits for the output to arrive, but not for ever. A process that could
// not be killed may still hold the pipe.
func (p *stdio) finish() (err error) {
	if p.feed != nil {
		_ = p.feed.Close()
	}
	if p.drain == nil {
		return nil
	}
	select {
	case err = <-p.copied:
	case <-time.After(linger):
		_ = p.drain.SetReadDeadline(time.Now())
		select {
		case err = <-p.copied:
			if errors.Is(err, os.ErrDeadlineExceeded) {
				err = nil
			}
		case <-time.After(linger / 20):
			// Out.Write itself hangs; its goroutine ends when that returns.
		}
	}
	_ = p.drain.Close()
	return err
}

// abandon closes everything: the program did not start.
func (p *stdio) abandon() {
	p.returnLent()
	for _, f := range []*os.File{p.feed, p.drain} {
		if f != nil {
			_ = f.Close()
		}
	}
}

func (p *stdio) returnLent() {
	for _, f := range p.lent {
		_ = f.Close()
	}
	p.lent = nil
}
