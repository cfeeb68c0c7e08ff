package cli

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"muster"
	"muster/internal/detach"
	"muster/internal/text"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// inForeground runs the command in a child process, so that it can leave the terminal later, and returns true if it did
// so. It does nothing where this process is the child already, and for a command that does not end the process.
func inForeground(a *App) (isDone bool, err error) {
	if !detach.IsPossible || !a.endsProcess || a.foreground != nil {
		return false, nil
	}
	code, err := detach.Foreground(a.Args, a.Env)
	if err != nil {
		return false, nil //nolint:nilerr // The conversation works without: it only cannot leave the terminal.
	}
	if code == exitKilled {
		explain(a.Stderr, "the process of the conversation was killed; the state is kept", "go on: muster")
	}
	// Of all other errors the child has printed why already.
	if code != exitDone {
		return true, exitStatus(code)
	}
	return true, nil
}

// exitKilled is the exit code of a process that was killed, by a user or for lack of memory, and could say nothing.
const exitKilled = 128 + 9

// comeBack is what to do about a team that works on when its conversation is left.
const comeBack = "come back: muster attach   look: muster watch   stop it: muster stop"

// workOn lets the team work on without the terminal, until its run is over. The terminal must be restored. It returns
// false where this process cannot leave.
func (c *conversation) workOn(ctx context.Context, over <-chan struct{}) bool {
	if c.app.foreground == nil {
		return false
	}
	explain(c.app.Stderr, "the team works on in the background", comeBack)
	if err := c.app.foreground.Leave(); err != nil {
		explain(c.app.Stderr, muster.PlainText(err)+"; the team stops, and the state is kept", "go on: muster resume")
		return false
	}
	// From here on the run ends by itself when all is done, unless somebody is attached to it.
	c.talk.Leave(ctx)
	<-over
	return true
}

// backgroundFlag adds the flag with which a run leaves the terminal as soon as it has begun.
func backgroundFlag(f *pflag.FlagSet, isBackground *bool) {
	f.BoolVar(isBackground, "background", false, "let the team work in the background: muster attach, muster stop")
}

// inBackground does what do does in a child process, and returns when the run there has begun or cannot begin.
func inBackground(ctx context.Context, a *App, isBackground bool, do func(started func(*team.Team)) error) error {
	if !isBackground {
		return do(nil)
	}
	switch isDone, err := inForeground(a); {
	case isDone:
		return err
	case a.foreground == nil:
		return muster.Errorf(muster.Invalid, "a team cannot work in the background here").
			WithHint("leave --background out")
	}
	return do(func(t *team.Team) {
		// The subscription begins before the run, so its start cannot be missed.
		events := t.Subscribe(ctx)
		go func() {
			for e := range events {
				state, ok := e.(team.StateEvent)
				if kind := state.Entry.Kind; ok && (kind == journal.RunStarted || kind == journal.RunResumed) {
					explain(a.Stderr, "the team works in the background", comeBack)
					// On an error the run goes on in the foreground, and what it prints is still seen.
					_ = a.foreground.Leave()
					return
				}
			}
		}()
	})
}

// newAttachCommand returns muster attach. It is the conversation, but never begins a run.
func newAttachCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "attach", Short: "talk with the lead of a team at work in the background",
		Args: namedArgs(),
		Long: "What you type is mail to the lead, and what it says is shown as it comes. Leaving leaves the team\n" +
			"at work. Where the run has ended meanwhile, its summary is printed.",
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := a.change(c.Context())
			if err != nil {
				return err
			}
			defer o.close()
			switch isRunning, err := o.IsRunning(c.Context()); {
			case err != nil:
				return err
			case !isRunning:
				return showEnd(c.Context(), a, o)
			}
			t := &conversation{app: a, opened: o, piped: a.Stdin}
			return t.run(c.Context())
		}}
}

// showEnd prints the summary of the last run that has ended, or says how to go on with the one that has stopped.
func showEnd(ctx context.Context, a *App, o opened) error {
	// The record tells a run that has ended from one whose process has died.
	state, err := o.RunState(ctx)
	switch {
	case err != nil:
		return err
	case state.Run.StartedAt == 0:
		return muster.Errorf(muster.NotFound, "no team is at work here").WithHint("talk with a lead: muster   " +
			`or: muster run "GOAL"`)
	case state.Run.EndedAt == 0 || state.IsStopped:
		open := text.Count(len(state.Open), "open task")
		return muster.Errorf(muster.NotFound, "the team has stopped, with %s", open).
			WithHint("go on: muster resume   or, with words of yours: muster")
	}
	sum, err := team.LastSummary(ctx, o.Team)
	if err != nil {
		return err
	}
	explain(a.Stderr, "the run has ended "+view.Duration(a.Now().Sub(muster.Time(sum.Run.EndedAt)))+" ago", "")
	return a.conclude(ctx, o.Team, Job{}, sum)
}

func newStopCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "stop", Short: "stop the team at work here and keep its state", Args: namedArgs(),
		Long: "The team stops as at Ctrl-C: at once, with its state kept. muster resume goes on with each member's\n" +
			"own conversation. To end members for good: muster team stop.",
		RunE: a.changing(func(c *cobra.Command, o opened, _ []string) error {
			ctx := c.Context()
			ends, err := team.Halt(ctx, o.Team)
			if err != nil {
				return err
			}
			state, err := o.RunState(ctx)
			if err != nil {
				return err
			}
			return a.printLine(ends, nil, "stopped; the state is kept, %s (go on: muster resume)",
				openTasks(state.Open))
		})}
}

// openTasks says how many tasks are open.
func openTasks(open []muster.Task) string {
	return text.Count(len(open), "task") + text.Plural(len(open), " is open", " are open")
}
