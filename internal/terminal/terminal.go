// Package terminal is the terminal side of a conversation. It shows a line editor at the bottom of an ordinary
// scrolling terminal. Callers print text above it at any moment: whole lines, and one piece of text that streams in
// and grows. Between the two stand a few status lines. What has scrolled stays in the terminal's own history.
//
// Terminal is what callers see. The other types work for it:
//
//   - queue: the texts that wait to be printed, and the events that wait to be read
//   - screen: the bubbletea model; it turns messages and keys into frames
//   - history, search, openMenu: what the line editor has beside a lineedit.Buffer
//   - output: holds back inserted text until its frame, and removes sequences that bubbletea writes unasked
//
// Two invariants hold. Text from models and foreign programs never steers the terminal, because only colour sequences
// pass. And no caller ever waits for the terminal, or the terminal for a caller.
//
// The package knows nothing of teams, members or commands.
package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

// ErrNoTerminal is returned by Open, wrapped, where no line editor can work: In or Out is not a terminal, or TERM is
// unset or dumb. The caller then falls back to plain lines.
var ErrNoTerminal = errors.New("no terminal that can be edited on")

// Options say what to talk to. In, Out and Status are required; everything else may be left out.
type Options struct {
	In, Out *os.File
	// History is what was entered before, oldest first. Keeping what Line returns is up to the caller.
	History []string
	// Complete returns what may stand at the cursor, which is a byte offset into text: when the text was changed by
	// typing, and with isAsked when the user has pressed Tab. It must not block, because keys wait for it; where it has
	// to read first, it returns what it has, and CompleteAgain is called later.
	Complete func(text string, cursor int, isAsked bool) Menu
	// Paste returns what a pasted text is put in as; nil: as it is. It must not block either.
	Paste func(text string) string
	// Clipboard returns what Ctrl-V puts in, or what is printed where there is nothing to put in; nil: the key does
	// nothing. It may take its time: a goroutine of its own calls it, once at a time.
	Clipboard func() (text, said string)
	// Editor returns the command with which the user edits a file, for Ctrl-G; nil: the key does nothing.
	Editor func(file string) *exec.Cmd
	// Status returns what stands above the prompt. One goroutine of the terminal calls it once a second and after
	// Refresh, at most ten times a second.
	Status func(width int) Status
	// Hint stands in the lower edge of the frame around an empty input.
	Hint string
	// HasTitle says that Status returns titles for the window. The one before comes back at the end.
	HasTitle bool
	// Accent is the SGR code of the colour of what waits for the user, such as "33".
	Accent string
	// OnGround is called when the terminal says whether its ground is light; nil: nothing is.
	OnGround func(isLight bool)
	// Colour allows colour. Without it, colour sequences in Print and Status are removed.
	Colour bool
}

// Status is what stands above the prompt. Lines longer than the terminal is wide are cut.
type Status struct {
	Lines []string
	// Questions wait for the user, the oldest first.
	Questions []Question
	// Title is that of the terminal's window; "" leaves it.
	Title string
	// Empty stands in the input while that is empty.
	Empty string
}

// Event is what the user did: Line, Interrupt, Escape, Leave, Answer or Closed.
type Event interface{ event() }

// Line is a text that the user entered. It may contain newlines and is never blank.
type Line struct {
	Text string
	// IsEdit says that it was made of the text that Edit has put into the input.
	IsEdit bool
}

// Interrupt is Ctrl-C on an empty line.
type Interrupt struct{}

// Escape is Esc where it closes no menu and ends no search. What is typed stays.
type Escape struct{ IsEmpty bool } // nothing is typed

// Closed is the end of the terminal. It is sent at most once.
type Closed struct{}

// The types of events. No other package can add one, so a switch over them is complete.
func (Line) event()      {}
func (Interrupt) event() {}
func (Escape) event()    {}
func (Closed) event()    {}

const (
	// watchFrames is how many frames a second muster watch draws at most. bubbletea wakes up for each of them, also
	// while nothing changes, which is most of the CPU that an idle screen takes. A conversation has bubbletea's 60, so
	// that the prompt and what is typed are seen sooner.
	watchFrames = 24
	// statusInterval is how often the status is asked for.
	statusInterval = time.Second
	// minStatusInterval is the shortest time between two calls of Options.Status.
	minStatusInterval = 100 * time.Millisecond
	// closeTimeout is how long Close waits for a terminal that takes no output.
	closeTimeout = 2 * time.Second
)

// These keep the title of the window and bring it back. Terminals without that ignore them.
const (
	pushTitle = "\x1b[22;2t"
	popTitle  = "\x1b[23;2t"
)

// Terminal is an open terminal. Its methods may be called from any goroutine.
type Terminal struct {
	program *tea.Program
	screen  *screen
	// queue has the texts of callers that the screen has not taken yet. It is closed by Close.
	queue *queue[item]
	// emitted has the events that are on their way to events, which callers read.
	emitted *queue[Event]
	events  chan Event
	out     *output
	in      *os.File
	state   *term.State   // the mode of the terminal before Open
	refresh chan struct{} // holds a token when the status is to be asked for at once
	// done is closed when bubbletea has ended and the terminal is restored.
	done chan struct{}
	// statusDone is closed after the last call of Options.Status, which follows done.
	statusDone chan struct{}

	closedEvent sync.Once // Closed is sent at most once
	runErr      error     // of bubbletea, set before done is closed
	// closeOnce runs close the first time, and always returns what that returned.
	closeOnce func() error
}

// Open puts the terminal into raw mode and shows the prompt. When ctx ends, the terminal closes itself.
func Open(ctx context.Context, o Options) (*Terminal, error) {
	if err := checkTerminal(o); err != nil {
		return nil, err
	}
	state, err := term.GetState(o.In.Fd())
	if err != nil {
		return nil, fmt.Errorf("read the terminal's mode: %w", err)
	}
	width, height, err := term.GetSize(o.Out.Fd())
	if err != nil {
		return nil, fmt.Errorf("read the terminal's size: %w", err)
	}
	t := &Terminal{queue: newQueue[item](), emitted: newQueue[Event](), events: make(chan Event, keptEvents),
		in: o.In, state: state, refresh: make(chan struct{}, 1), done: make(chan struct{}),
		statusDone: make(chan struct{})}
	t.closeOnce = sync.OnceValue(t.close)
	t.out = newOutput(o.Out, t.queue.nudge)
	t.screen = newScreen(o, t.queue, t.out, t.emit)
	t.screen.resize(width, height)
	profile := colorprofile.Ascii
	if o.Colour {
		profile = max(colorprofile.Detect(o.Out, os.Environ()), colorprofile.ANSI)
	}
	t.program = tea.NewProgram(t.screen,
		tea.WithInput(&input{File: o.In, onError: func() { t.emit(Closed{}) }}),
		tea.WithOutput(t.out),
		tea.WithFilter(t.screen.filter),
		tea.WithColorProfile(profile),
		tea.WithoutSignalHandler(), // SIGINT and SIGTERM are the caller's; Ctrl-C comes as a key
	)
	go ansi.StringWidthWc("─") // the first call makes a table, which takes some milliseconds
	if o.HasTitle {
		_, _ = o.Out.WriteString(pushTitle)
	}
	go deliverEvents(t.emitted, t.events, t.done)
	go t.run()
	go t.printLoop()
	go t.statusLoop(o.Status)
	go t.closeWithContext(ctx)
	return t, nil
}

// checkTerminal returns an error that wraps ErrNoTerminal where no line editor can work.
func checkTerminal(o Options) error {
	if name := os.Getenv("TERM"); name == "" || name == "dumb" {
		return fmt.Errorf("TERM is %q: %w", name, ErrNoTerminal)
	}
	if o.In == nil || o.Out == nil || !term.IsTerminal(o.In.Fd()) || !term.IsTerminal(o.Out.Fd()) {
		return fmt.Errorf("the input or the output is not a terminal: %w", ErrNoTerminal)
	}
	return nil
}

// run drives bubbletea until it ends, and then restores the terminal's mode. An end that nobody has asked for is one of
// the terminal, and is reported as such.
func (t *Terminal) run() {
	_, err := t.program.Run()
	t.out.flush()
	if t.screen.options.HasTitle {
		t.out.ring(popTitle)
	}
	_ = term.Restore(t.in.Fd(), t.state) // bubbletea does so too; twice is harmless, never is not
	t.runErr = err
	if _, closed := t.queue.take(); !closed {
		t.emit(Closed{}) // the terminal went away
	}
	close(t.done)
	t.emitted.close()
}

// printLoop tells the model that text waits to be printed. Only this goroutine does so, which keeps the order.
func (t *Terminal) printLoop() {
	for {
		select {
		case <-t.done:
			return
		case <-t.queue.ready:
			t.program.Send(printMsg{})
		}
	}
}

// statusLoop asks for the status lines every statusInterval and after Refresh, with minStatusInterval between.
func (t *Terminal) statusLoop(ask func(int) Status) {
	defer close(t.statusDone)
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	for {
		t.program.Send(statusFrom(ask, int(t.screen.columns.Load())))
		select {
		case <-t.done:
			return
		case <-time.After(minStatusInterval):
		}
		select {
		case <-t.done:
			return
		case <-t.refresh:
		case <-tick.C:
		}
	}
}

// statusFrom calls the caller's status function. It carries a panic of that function over to bubbletea's goroutine,
// which restores the terminal before it reports the panic.
func statusFrom(ask func(int) Status, width int) (m statusMsg) {
	defer func() { m.panicked = recover() }()
	return statusMsg{Status: ask(width)}
}

// closeWithContext closes the terminal when ctx ends, and reports a hangup signal as the end of the terminal.
func (t *Terminal) closeWithContext(ctx context.Context) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-t.done:
			return
		case <-ctx.Done():
			_ = t.Close()
			return
		case <-hup:
			t.emit(Closed{}) // the terminal went away
		}
	}
}

// emit queues an event for the caller. It never blocks.
func (t *Terminal) emit(e Event) {
	if _, ok := e.(Closed); ok {
		t.closedEvent.Do(func() { t.emitted.put(e) })
		return
	}
	t.emitted.put(e)
}

// Events returns the channel of what the user did, in order. The channel is closed after Close.
func (t *Terminal) Events() <-chan Event { return t.events }

// Print puts whole lines above the prompt, wrapped to the width. They may carry SGR colour; other control sequences
// are removed. While a streamed line is growing they wait for its end, at most about a second. After Close, Print does
// nothing.
func (t *Terminal) Print(lines string) { t.queue.put(item{kind: printed, text: lines}) }

// Echo shows a text as one that the user has entered.
func (t *Terminal) Echo(text string) { t.queue.put(item{kind: echoed, text: clean(text)}) }

// Stream shows a piece of a model's text, which is Markdown. Its blocks grow above the prompt, and go into the
// scrollback when they have ended. Control characters (except newline and tab) and bidirectional overrides are removed.
func (t *Terminal) Stream(text string) { t.queue.put(item{kind: streamed, text: text}) }

// Think shows a piece of what the model thinks. It is shown until the next Stream or Flush, and then folds to one line,
// which Ctrl-O opens.
func (t *Terminal) Think(text string) { t.queue.put(item{kind: thought, text: text}) }

// Flush says that the streamed text is complete.
func (t *Terminal) Flush() { t.queue.put(item{kind: flushed}) }

// Ring writes a sequence that rings the bell, or shows something on the desktop. It must move no cursor and draw
// nothing, so it can stand between any two frames.
func (t *Terminal) Ring(sequence string) { go t.out.ring(sequence) } // the caller does not wait for the terminal

// HasDraft reports whether something is typed that was not entered.
func (t *Terminal) HasDraft() bool { return t.screen.hasDraft.Load() }

// SinceKey returns how long ago a key was pressed last.
func (t *Terminal) SinceKey() time.Duration { return time.Since(time.Unix(0, t.screen.lastKey.Load())) }

// Refresh says that the status lines have changed. It does not wait until they are asked for.
func (t *Terminal) Refresh() {
	select {
	case t.refresh <- struct{}{}:
	default:
	}
}

// CompleteAgain asks Complete again, where a menu may be open.
func (t *Terminal) CompleteAgain() { go t.program.Send(menuMsg{}) } // the caller does not wait for the terminal

// Edit puts a text that was entered before into the input. Down brings back what was typed instead.
func (t *Terminal) Edit(text string) { go t.program.Send(editMsg{text, true}) } // the caller does not wait

// Fill puts the beginning of a text into the input.
func (t *Terminal) Fill(text string) { go t.program.Send(editMsg{text, false}) } // as above

// Close prints what still waits, removes the prompt, and restores the terminal's mode, with the cursor on a fresh
// line. Closing twice is harmless. An error means that a callback panicked or the terminal failed.
func (t *Terminal) Close() error { return t.closeOnce() }

// close is Close the first time.
func (t *Terminal) close() error {
	t.queue.close()
	for mayWait := true; mayWait; {
		mayWait = t.screen.isEditing.Load() // the user's editor has the terminal
		select {
		case <-t.done:
			<-t.statusDone // from here on the caller may change what Options.Status reads
			return t.runErr
		case <-time.After(closeTimeout):
		}
	}
	_ = term.Restore(t.in.Fd(), t.state) // the terminal takes no output, as after Ctrl-S on a serial line
	return errors.New("the terminal did not take the last output")
}
