// Package terminal is the terminal of a conversation: a line editor at the bottom of an ordinary scrolling
// terminal, text printed above it at any moment, a few status lines between, one growing piece of streamed text.
// What scrolled stays in the terminal's own history. It knows nothing of teams.
//
// Read terminal.go (what a caller sees), queue.go (what waits to be printed), screen.go (the model that bubbletea
// drives), keys.go, edit.go, layout.go, history.go, complete.go (the line editor), text.go and stream.go (cleaning
// and wrapping), output.go (what of bubbletea's output is held back, and why).
package terminal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// ErrNoTerminal is what Open gives, wrapped, where no line editor can work: In or Out is not a terminal, or TERM
// is unset or dumb. The caller falls back to plain lines.
var ErrNoTerminal = errors.New("no terminal that can be edited on")

// Options say what to talk to. In and Out are needed, all else may be left out.
type Options struct {
	In, Out *os.File
	Prompt  string   // before the first row of the input; further rows are indented by its width
	History []string // oldest first; the caller keeps what Line gives
	// Complete is asked at Tab, with the text and the cursor as a byte offset: candidates replace text[from:cursor].
	// It must not block: keys wait for it.
	Complete func(text string, cursor int) (from int, candidates []string)
	// Status gives the lines above the prompt, each at most width columns (longer ones are cut). Asked once a second
	// and after Refresh, at most ten times a second, by one goroutine of the terminal's own.
	Status func(width int) []string
	Colour bool // without it, SGR sequences in Print and Status are taken out
}

// Event is what the user did: Line, Interrupt or Closed.
type Event interface{ event() }

// Line is a text that was entered; it may have newlines, and is never empty or only blanks.
type Line struct{ Text string }

// Interrupt is Ctrl-C on an empty line.
type Interrupt struct{}

// Closed is Ctrl-D on an empty line, or that the terminal went away. It is sent at most once.
type Closed struct{}

func (Line) event()      {}
func (Interrupt) event() {}
func (Closed) event()    {}

const (
	framesPerSecond = 30 // bubbletea wakes up as often while nothing happens, too
	statusEvery     = time.Second
	statusGap       = 100 * time.Millisecond
	closeWait       = 2 * time.Second
)

// Terminal is an open one. Its methods may be called from any goroutine.
type Terminal struct {
	program *tea.Program
	screen  *screen
	queue   *queue
	events  *mailbox
	out     *output
	in      *os.File
	state   *term.State
	refresh chan struct{}
	done    chan struct{} // closed when bubbletea has ended and the terminal is restored

	closing   sync.Once
	closedErr error
	runErr    error
}

// Open puts the terminal into raw mode and shows the prompt. When ctx ends, the terminal closes itself.
func Open(ctx context.Context, o Options) (*Terminal, error) {
	name := os.Getenv("TERM")
	if name == "" || name == "dumb" {
		return nil, fmt.Errorf("TERM is %q: %w", name, ErrNoTerminal)
	}
	if o.In == nil || o.Out == nil || !term.IsTerminal(o.In.Fd()) || !term.IsTerminal(o.Out.Fd()) {
		return nil, fmt.Errorf("the input or the output is not a terminal: %w", ErrNoTerminal)
	}
	state, err := term.GetState(o.In.Fd())
	if err != nil {
		return nil, fmt.Errorf("read the terminal's mode: %w", err)
	}
	width, height, err := term.GetSize(o.Out.Fd())
	if err != nil {
		return nil, fmt.Errorf("read the terminal's size: %w", err)
	}
	t := &Terminal{queue: newQueue(), events: newMailbox(), in: o.In, state: state,
		refresh: make(chan struct{}, 1), done: make(chan struct{})}
	t.out = newOutput(o.Out, t.queue.nudge)
	t.screen = newScreen(o, t.queue, t.out, t.events.put)
	t.screen.resize(width, height)
	profile := colorprofile.Ascii
	if o.Colour {
		profile = max(colorprofile.Detect(o.Out, os.Environ()), colorprofile.ANSI)
	}
	t.program = tea.NewProgram(t.screen,
		tea.WithInput(&input{File: o.In, gone: t.gone}),
		tea.WithOutput(t.out),
		tea.WithFilter(t.screen.filter),
		tea.WithColorProfile(profile),
		tea.WithFPS(framesPerSecond),
		tea.WithoutSignalHandler(), // SIGINT and SIGTERM are the caller's; Ctrl-C comes as a key
	)
	go t.run()
	go t.printer()
	go t.status(o.Status)
	go t.watch(ctx)
	return t, nil
}

func (t *Terminal) run() {
	_, err := t.program.Run()
	t.out.flush()
	_ = term.Restore(t.in.Fd(), t.state) // bubbletea does so too; twice is harmless, never is not
	t.runErr = err
	if !t.queue.ended() {
		t.gone()
	}
	close(t.done)
	t.events.close()
}

// printer tells the model that something waits to be printed. One goroutine does so, which keeps the order.
func (t *Terminal) printer() {
	for {
		select {
		case <-t.done:
			return
		case <-t.queue.ready:
			t.program.Send(printMsg{})
		}
	}
}

func (t *Terminal) status(ask func(int) []string) {
	tick := time.NewTicker(statusEvery)
	defer tick.Stop()
	for {
		t.program.Send(askStatus(ask, int(t.screen.columns.Load())))
		select {
		case <-t.done:
			return
		case <-time.After(statusGap):
		}
		select {
		case <-t.done:
			return
		case <-t.refresh:
		case <-tick.C:
		}
	}
}

// askStatus carries a panic of the caller's function to bubbletea's loop, which restores the terminal.
func askStatus(ask func(int) []string, width int) (m statusMsg) {
	if ask == nil {
		return m
	}
	defer func() {
		if r := recover(); r != nil {
			m.panicked = r
		}
	}()
	m.lines = ask(width)
	return m
}

func (t *Terminal) watch(ctx context.Context) {
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
			t.gone()
		}
	}
}

func (t *Terminal) gone() { t.events.put(Closed{}) }

// Events gives what the user did, in order. It is closed after Close.
func (t *Terminal) Events() <-chan Event { return t.events.out }

// Print puts whole lines above the prompt, wrapped to the width. They may carry SGR colour; other control sequences
// are taken out. While a streamed line is growing they wait for its end, at most about a second. After Close it does nothing.
func (t *Terminal) Print(lines string) { t.queue.put(item{kind: printed, text: lines}) }

// Stream shows a model's text as it comes: the line that grows above the prompt, and the rows before it, wrapped at
// words, in the scrollback. Control characters (but newline and tab) and bidirectional overrides are taken out.
func (t *Terminal) Stream(text string) { t.queue.put(item{kind: streamed, text: text}) }

// Flush says that the streamed piece is complete.
func (t *Terminal) Flush() { t.queue.put(item{kind: flushed}) }

// Refresh says that the status has changed.
func (t *Terminal) Refresh() {
	select {
	case t.refresh <- struct{}{}:
	default:
	}
}

// Close prints what still waits, takes the prompt away and restores the terminal's mode, with the cursor on a fresh
// line. Closing twice is harmless. The error is a panic of a callback or a terminal that failed, not an ordinary end.
func (t *Terminal) Close() error {
	t.closing.Do(func() {
		t.queue.close()
		select {
		case <-t.done:
			t.closedErr = t.runErr
		case <-time.After(closeWait): // the terminal takes no output, as after Ctrl-S on a serial line
			_ = term.Restore(t.in.Fd(), t.state)
			t.closedErr = errors.New("the terminal did not take the last output")
		}
	})
	return t.closedErr
}
