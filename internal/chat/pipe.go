package chat

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"

	"muster/internal/terminal"
)

// Pipe is a conversation without a terminal: one message a line comes in, the lead's words go out, and what happens is
// told beside them.
type Pipe struct {
	Out, Beside io.Writer

	events chan terminal.Event
	mu     sync.Mutex
	mid    bool // the last byte of Out was no newline
}

// NewPipe reads lines from in until its end.
func NewPipe(in io.Reader, out, beside io.Writer) *Pipe {
	p := &Pipe{Out: out, Beside: beside, events: make(chan terminal.Event)}
	go func() {
		defer close(p.events)
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			if line = strings.TrimRight(line, "\r\n"); line != "" {
				p.events <- terminal.Line{Text: line}
			}
			if err != nil {
				return
			}
		}
	}()
	return p
}

// Events are the lines, and their end.
func (p *Pipe) Events() <-chan terminal.Event { return p.events }

// Print tells what happens.
func (p *Pipe) Print(lines string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprintln(p.Beside, lines)
}

// Stream writes the lead's words.
func (p *Pipe) Stream(text string) {
	if text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	io.WriteString(p.Out, text)
	p.mid = !strings.HasSuffix(text, "\n")
}

// Flush ends the line.
func (p *Pipe) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mid {
		io.WriteString(p.Out, "\n")
	}
	p.mid = false
}

// Refresh has nothing to draw.
func (p *Pipe) Refresh() {}
