package cli

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/terminal"
	"muster/internal/watch"
)

// newWatchCommand returns muster watch, the team on a full screen. It writes only what its user decides, and it opens
// before there is a team, too. A tool of the team may start it and look; what it then decides is refused by the API.
func newWatchCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "watch", Short: "the team on a full screen: look, read plans, answer",
		Long: "Shows what waits for you, the members and the board, and of what is selected all there is:\n" +
			"a member's conversation, a plan, a task and its diff. Press ? for the keys. Leaving stops nothing.",
		RunE: func(c *cobra.Command, _ []string) error {
			in, out := a.terminalIn(), fileOf(a.Stdout)
			if in == nil || out == nil || a.json {
				return errNoFullScreen()
			}
			o, err := a.open(c.Context())
			if err != nil {
				return err
			}
			defer o.close()
			// Settings are read when a size is asked for: the first frame does not wait for them.
			known := func(model string) (window, reply int) {
				settings, _, err := o.workspace.Settings(nil)
				if err != nil { // then nothing is known of any model
					return 0, 0
				}
				return knownWindow(settings, model, a.Env)
			}
			err = watch.Run(c.Context(), watch.Options{Team: o.Team, HasState: o.workspace.HasState, In: in, Out: out,
				Paint: a.screen(a.Stdout).Paint, Hide: a.secrets.String, Now: a.Now, Known: known,
				Commands: watch.Commands{Launch: launcher(a), Merge: merger(o.Team)}})
			if errors.Is(err, terminal.ErrNoTerminal) {
				return errNoFullScreen()
			}
			if err = cmp.Or(err, context.Cause(c.Context())); err != nil {
				return err
			}
			// Whoever leaves is told that this stopped nothing. Whether it can be found out changes nothing else.
			if running, err := o.IsRunning(c.Context()); err == nil && running {
				return a.printLine(nil, nil, "the team goes on; come back: muster watch   stop it: muster stop")
			}
			return nil
		}}
}

// errNoFullScreen says what shows the team where there is no full screen. It does not fall back to one of them by
// itself: a script that calls it expects either a screen or an error.
func errNoFullScreen() error {
	return muster.Errorf(muster.Invalid, "muster watch needs a terminal, and here is none that it can draw on").
		WithHint("muster status   or: muster log -f")
}
