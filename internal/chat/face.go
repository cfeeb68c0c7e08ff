package chat

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"

	"muster/internal/terminal"
	"muster/internal/text"
)

// Pipe is a conversation without a terminal. Each line of the input is one message; the lead's words go to Out, and
// the events of the team to Progress.
type Pipe struct {
	Out, Progress io.Writer

	events  chan terminal.Event
	mu      sync.Mutex
	midLine bool // the last byte of Out was no newline
}

// NewPipe returns a pipe that reads lines from in until its end.
func NewPipe(in io.Reader, out, beside io.Writer) *Pipe {
	p := &Pipe{Out: out, Progress: beside, events: make(chan terminal.Event)}
	go func() {
		defer close(p.events)
		lines := bufio.NewReader(in)
		for {
			line, err := lines.ReadString('\n')
			// The last line may have no newline, so it is sent before the error is looked at.
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

// Events returns the lines. It is closed at the end of the input.
func (p *Pipe) Events() <-chan terminal.Event { return p.events }

// Print writes what happens in the team.
func (p *Pipe) Print(lines string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintln(p.Progress, lines) // nobody may read it any more, and the run goes on
}

// Echo writes what the user has said.
func (p *Pipe) Echo(words string) { p.Print("> " + text.Clean(words)) }

// Stream writes the lead's words.
func (p *Pipe) Stream(text string) {
	if text == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = io.WriteString(p.Out, text)
	// Words arrive in pieces, and only the last piece of a reply is followed by a newline of ours.
	p.midLine = !strings.HasSuffix(text, "\n")
}

// Think does nothing: a script reads what the lead says.
func (p *Pipe) Think(string) {}

// Flush ends the line of the lead's words.
func (p *Pipe) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.midLine {
		_, _ = io.WriteString(p.Out, "\n")
	}
	p.midLine = false
}

// Refresh does nothing, because a pipe has no status lines.
func (p *Pipe) Refresh() {}

// Ask does nothing, because nobody could press a key.
func (p *Pipe) Ask(terminal.Question) {}
