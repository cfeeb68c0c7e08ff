package cli

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/clock"
	"muster/internal/ports"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/workspace"
	"muster/journal"
	"muster/store/file"
	"muster/team"
)

// opened is what a command works on: the workspace that the program was started in, and the API of the team in it.
// A command uses the API for all that concerns a team. It needs the workspace only for what is done without a team.
type opened struct {
	*team.Team
	workspace *workspace.Workspace
}

// open opens the workspace that the program was started in. It writes nothing. It does not check whether there is a
// team: look does that. The caller closes what is returned.
func (a *App) open(ctx context.Context) (opened, error) {
	w, err := workspace.Open(ctx, a.workDir(), a.workspaceOptions(ctx))
	if err != nil {
		return opened{}, err
	}
	if n := workspace.EndTools(ctx, w); n > 0 {
		explain(a.Stderr, fmt.Sprintf("%d %s of a muster that was killed still ran: nothing of it runs any more", n,
			text.Plural(n, "process", "processes")), "")
	}
	workspace.RemoveTrials(ctx, w)
	t, err := team.OpenIn(w, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
		Environ: a.Env, Secrets: secretValues(a), Home: a.env("HOME"), UserDir: userDir(a), MCPCache: mcpCache(a),
		CacheDir: cacheDir(a),
		IsConfined: func() bool {
			settings, _, err := w.Settings(nil)
			return err != nil || settings.Sandbox.On
		},
		MCPServers: func() []team.MCPServer {
			settings, _, _ := w.Settings(nil) // whoever needs the settings says what is wrong with them
			servers, _, _ := countingMCP(a, w, settings)
			return servers
		}})
	a.joined = func() (names []muster.Name) {
		if err != nil {
			return nil
		}
		members, _ := t.Members().List(context.WithoutCancel(ctx)) // without them names are coloured as they come
		for _, m := range members {
			names = append(names, m.Name)
		}
		return names
	}
	return opened{t, w}, err
}

// close closes the workspace at the end of a command. Everything that was written is synced already, so an error of
// closing changes nothing.
func (o opened) close() {
	if o.Team != nil {
		_ = o.Team.Close()
	}
	_ = o.workspace.Close()
}

// workspaceOptions choose the store on files, and the settings of the user and of the repository. The store reports
// a line of mail that it cannot read as an event, so that the user learns of it.
func (a *App) workspaceOptions(ctx context.Context) workspace.Options {
	settings := a.configOptions("")
	open := func(root string) (muster.Store, error) {
		s, err := file.Open(root)
		if err != nil {
			return nil, err
		}
		s.Logger = a.logger()
		j := journal.New(s.Log())
		j.Logger = a.logger()
		s.OnReject = func(box muster.Name, line []byte, why string) {
			text := why + ": " + text.CutColumns(text.OneLine(string(line)), 120)
			// The text is cut, because a broken line may be as long as a whole file.
			e := muster.Event{Kind: journal.MailRejected, Member: box, Fields: map[string]any{"text": text}}
			// The line is set aside already. That it cannot be reported is no reason to stop reading.
			_ = j.Emit(context.WithoutCancel(ctx), e)
		}
		return s, nil
	}
	return workspace.Options{Config: &settings, Clock: clock.Clock{Time: a.Now}, Log: a.logger(), OpenStore: open,
		Registry: trust.Open(a.env), Secrets: a.secrets, Ports: ports.Open(cacheDir(a))}
}

// look opens the workspace for a command that only reads and creates nothing. The error is workspace.ErrNoTeam
// where there is no team yet.
func (a *App) look(ctx context.Context) (opened, error) {
	if a.endsProcess { // a third of the time of a long list was the collector's
		debug.SetGCPercent(400)
	}
	o, err := a.open(ctx)
	if err == nil && !o.workspace.HasState() {
		noteLost(ctx, a, o.workspace)
		o.close()
		err = workspace.ErrNoTeam
	}
	return o, err
}

// change opens the workspace for a command that brings a team to life. It is refused inside the team's own tools,
// before anything else is looked at. Other commands need no such check: each method of the API that changes
// anything makes it.
func (a *App) change(ctx context.Context) (opened, error) {
	o, err := a.open(ctx)
	if err != nil {
		return o, err
	}
	if err = o.workspace.PrepareChange(ctx); err != nil {
		o.close()
	}
	return o, err
}

// action is what a command does with an opened workspace. It does not close the workspace: who has opened it does.
type action func(c *cobra.Command, o opened, args []string) error

// looking returns a command's function that only reads. Where there is no team it calls noTeam, or returns
// ErrNoTeam when that is nil. A command that lists something prints an empty list where there is no team, and a
// command about one thing fails.
func (a *App) looking(noTeam func() error, do action) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		o, err := a.look(c.Context())
		if noTeam != nil && errors.Is(err, workspace.ErrNoTeam) {
			return noTeam()
		}
		if err != nil {
			return err
		}
		defer o.close()
		return do(c, o, args)
	}
}

// changing returns a command's function that changes the team's state. The workspace is closed before the command
// returns, also after an error.
func (a *App) changing(do action) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		return do(c, o, args)
	}
}

// telling is changing for what a team at work reads or acts on. Where none is at work it says so in a line.
func (a *App) telling(do action) func(*cobra.Command, []string) error {
	return a.changing(func(c *cobra.Command, o opened, args []string) error {
		err := do(c, o, args)
		if err == nil {
			noteNoTeam(c.Context(), a, o)
		}
		return err
	})
}

// noteNoTeam says that no team is at work, and what brings one to work. It prints nothing before the
// first run, and nothing that cannot be read: the command has done its work.
func noteNoTeam(ctx context.Context, a *App, o opened) {
	state, err := o.RunState(ctx)
	if err != nil || state.Run.StartedAt == 0 {
		return
	}
	if atWork, err := o.Members().HasProcess(ctx); err != nil || atWork {
		return
	}
	next := `muster run "GOAL"`
	if state.IsStopped || state.Run.EndedAt == 0 {
		next = "muster resume"
	}
	explain(a.Stderr, "no team is at work: "+next, "")
}
