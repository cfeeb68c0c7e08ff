package chat

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/charmbracelet/x/ansi"

	"muster/internal/text"
)

const (
	// maxShellRows is how many lines of a command's output are shown.
	maxShellRows = 200
	// maxShellEnd is how many bytes of the beginning, and of the end, of an output the lead gets.
	maxShellEnd = 6 << 10
	// maxShellTotal is how many bytes of commands and outputs the lead gets with one message; the last ones count.
	maxShellTotal = 32 << 10
)

// errStopped is why a command of the user's ended that the user has stopped.
var errStopped = errors.New("you stopped it")

// shell has the command that the user runs, and what the lead is told of those that are over.
type shell struct {
	running sync.WaitGroup

	mu    sync.Mutex
	stop  context.CancelCauseFunc // of the command that runs; nil: none does
	heard []string                // what the lead is told with the next message
}

// runShell runs a command of the user's shell and shows its output.
func (s *Session) runShell(ctx context.Context, command string) {
	if command == "" { // a mark alone is a question of what it is for
		s.Face.Print("!COMMAND runs a command in your shell, and the lead reads what it printed with your next message")
		return
	}
	s.runAside(ctx, func(ctx context.Context) {
		heard := s.finishShell(ctx, command)
		s.shell.mu.Lock()
		defer s.shell.mu.Unlock()
		s.shell.heard = append(s.shell.heard, heard)
	})
}

// runAside runs a command while the user can go on typing. There is one at a time, and Ctrl-C stops it.
func (s *Session) runAside(ctx context.Context, do func(context.Context)) {
	sh := &s.shell
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.stop != nil {
		s.Face.Print("a command runs already: Ctrl-C stops it")
		return
	}
	ctx, stop := context.WithCancelCause(ctx)
	sh.stop = stop
	sh.running.Go(func() {
		do(ctx)
		sh.mu.Lock()
		defer sh.mu.Unlock()
		// The command counts as running until here, so that nothing is printed behind the next one's first line.
		stop(nil)
		sh.stop = nil
	})
}

// finishShell runs a command to its end, and returns what the lead hears of it.
func (s *Session) finishShell(ctx context.Context, command string) (heard string) {
	out := &shellOutput{print: s.Face.Print}
	code, err := s.Shell(ctx, command, out)
	out.end()
	// A command that ends well says nothing of its end, as in a shell.
	how := ""
	if err != nil {
		how = err.Error()
	} else if code != 0 {
		how = fmt.Sprintf("exit %d", code)
	}
	if how != "" {
		s.Face.Print("! " + how)
		how = "(" + how + ")\n"
	}
	return "$ " + command + "\n" + out.text() + how
}

// stopShell stops the command that the user runs, and reports whether there is one.
func (s *Session) stopShell() bool {
	s.shell.mu.Lock()
	defer s.shell.mu.Unlock()
	if s.shell.stop == nil {
		return false
	}
	s.shell.stop(errStopped)
	return true
}

// endShell stops the command that the user runs, and waits for its end.
func (s *Session) endShell() {
	s.stopShell()
	s.shell.running.Wait()
}

// withShell returns a message with the commands that the user has run since the last one, and forgets them.
func (s *Session) withShell(text string) string {
	s.shell.mu.Lock()
	defer s.shell.mu.Unlock()
	heard := ""
	for i := len(s.shell.heard) - 1; i >= 0; i-- { // the last ones are what the message is most likely about
		if len(heard)+len(s.shell.heard[i]) > maxShellTotal {
			heard = fmt.Sprintf("(%d before are left out)\n", i+1) + heard
			break
		}
		heard = s.shell.heard[i] + heard
	}
	// Said once: the next message is about what comes after it.
	s.shell.heard = nil
	if heard == "" {
		return text
	}
	return text + "\n\nBefore this I ran, in my shell:\n" + strings.TrimRight(heard, "\n")
}

// shellOutput shows the output of a command line by line, and keeps its beginning and its end.
type shellOutput struct {
	print func(string)

	line       []byte // that has not ended yet
	rows       int    // that have ended
	head, tail []byte
	size       int
}

// Write takes a piece of the output. It never fails, so a command whose output is long ends as it would in a shell.
func (o *shellOutput) Write(p []byte) (int, error) {
	o.size += len(p)
	// The beginning tells what was run on, the end how it came out: what is between them is left out first.
	n := min(len(p), maxShellEnd-len(o.head))
	o.head = append(o.head, p[:n]...)
	if o.tail = append(o.tail, p[n:]...); len(o.tail) > 2*maxShellEnd { // cut now and then, not with each piece
		o.tail = bytes.Clone(o.tail[len(o.tail)-maxShellEnd:])
	}
	o.line = append(o.line, p...)
	if end := bytes.LastIndexByte(o.line, '\n'); end >= 0 {
		o.show(string(o.line[:end]))
		o.line = o.line[end+1:]
	}
	if over := len(o.line) - maxShellEnd; over > 0 { // a line without an end
		o.line = o.line[over:]
	}
	return len(p), nil
}

// show shows lines, as long as there are not too many.
func (o *shellOutput) show(text string) {
	lines := strings.Split(text, "\n")
	if n := min(len(lines), maxShellRows-o.rows); n > 0 {
		for i, line := range lines[:n] {
			lines[i] = withoutOverwritten(line)
		}
		o.print(strings.Join(lines[:n], "\n"))
	}
	o.rows += len(lines)
}

// withoutOverwritten returns what is seen of a line that was written over, as progress bars are.
func withoutOverwritten(line string) string {
	line = strings.TrimSuffix(line, "\r")
	return line[strings.LastIndexByte(line, '\r')+1:]
}

// end shows what was not shown, and how many lines are left out.
func (o *shellOutput) end() {
	if len(o.line) > 0 {
		o.show(string(o.line))
	}
	if more := o.rows - maxShellRows; more > 0 {
		o.print(fmt.Sprintf("... %d more lines", more))
	}
}

// text returns the output as the lead reads it, ended by a newline.
func (o *shellOutput) text() string {
	if o.size == 0 {
		return ""
	}
	tail := o.tail[max(0, len(o.tail)-maxShellEnd):]
	between := ""
	if left := o.size - len(o.head) - len(tail); left > 0 {
		between = fmt.Sprintf("\n... %d bytes are left out ...\n", left)
	}
	all := strings.ToValidUTF8(string(o.head)+between+string(tail), "\uFFFD")
	lines := strings.Split(strings.TrimRight(all, "\n"), "\n")
	for i, line := range lines {
		lines[i] = withoutOverwritten(line)
	}
	return text.Clean(ansi.Strip(strings.Join(lines, "\n"))) + "\n"
}
