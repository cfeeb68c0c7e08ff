package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/colorprofile"
	"github.com/charmbracelet/x/term"
)

// RunFullScreen runs a program of bubbletea on the whole terminal until it quits, ctx ends or the terminal goes away.
// Beside it runs feed, which sends it messages and ends when its context does. The error wraps ErrNoTerminal where
// nothing can be drawn. Like Open it asks nothing of the terminal, and restores the terminal's mode at the end.
func RunFullScreen(
	ctx context.Context, in, out *os.File, colour bool, m tea.Model, feed func(context.Context, func(tea.Msg)),
) error {
	if err := checkTerminal(Options{In: in, Out: out}); err != nil {
		return err
	}
	// The mode before the program is kept here too, because the library restores it only where it ends in order.
	state, err := term.GetState(in.Fd())
	if err != nil {
		return fmt.Errorf("read the terminal's mode: %w", err)
	}
	profile := colorprofile.Ascii
	if colour {
		profile = max(colorprofile.Detect(out, os.Environ()), colorprofile.ANSI)
	}
	// Whatever ends first, the program, the caller's context or the terminal, ends the others.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ctx, endSignals := signal.NotifyContext(ctx, syscall.SIGHUP) // the terminal was closed
	defer endSignals()
	o := newOutput(out, nil)
	// Nothing is inserted above a full screen, so no frame needs to be corrected for that. What the output is wanted
	// for is that it writes each frame at once and drops the questions that bubbletea asks of terminals.
	o.beforeFrame = func(bool) string { return "" }
	p := tea.NewProgram(m, tea.WithInput(&input{File: in, onError: stop}), tea.WithOutput(o),
		tea.WithColorProfile(profile), tea.WithFPS(watchFrames), tea.WithoutSignalHandler())
	// The feed ends before this function returns, so that nothing is read from a team that the caller closes.
	fed := make(chan struct{})
	go func() {
		defer close(fed)
		feed(ctx, p.Send)
	}()
	// Quitting, unlike killing, lets bubbletea give the terminal back as it was.
	stopped := context.AfterFunc(ctx, p.Quit)
	_, err = p.Run()
	stopped()
	stop()
	<-fed
	_ = term.Restore(in.Fd(), state) // bubbletea does so too; twice is harmless, never is not
	return err
}
