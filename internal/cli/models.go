package cli

import (
	"cmp"
	"context"
	"runtime"

	"muster"
	"muster/internal/config"
	"muster/internal/demo"
	"muster/internal/redact"
	"muster/internal/workspace"
	"muster/llm"
	"muster/llm/anthropic"
	"muster/llm/openai"
	"muster/llm/script"
	"muster/team"
)

// heapBallast is memory that is never touched, so that the system never gives it. The collector counts it, and lets
// a small team's heap grow by as much before it runs again; it would run after every second turn otherwise. The
// value is a trade of memory for time: it adds at most that much to the heap of a process.
const heapBallast = 2 << 20

// startTeam brings a team to life. It is the Start of the installed program. It returns when the run is over, or
// when ctx ends.
func (a *App) startTeam(ctx context.Context, j Job) (team.Summary, error) {
	ballast := make([]byte, heapBallast)
	defer runtime.KeepAlive(ballast)
	// The team is not closed here, because the workspace in which it works is closed by the command.
	t, err := a.openTeam(j) //nolint:contextcheck // Opening starts nothing.
	switch {
	case err != nil:
		return team.Summary{Code: exitError}, err
	case j.Resume:
		return t.Resume(ctx)
	}
	return t.Run(ctx, j.Goal, j.How)
}

// openTeam returns the team that a job is about. It is the only place that maps settings to the configuration of
// package team.
func (a *App) openTeam(j Job) (*team.Team, error) {
	s := j.Settings
	// A model that cannot be had is reported before anything is written.
	first, err := a.model(j.Workspace, s.Model, s)
	if err != nil {
		return nil, err
	}
	idle := cmp.Or(s.IdleTimeout, -1) // never; zero means the default to package team
	return team.OpenIn(j.Workspace, team.Config{
		Name: muster.Name(s.Team), Check: s.Check, Setup: s.Setup, Land: s.Land,
		Teammates: s.Teammates, ModelName: config.Stored(s.Model), Conversation: j.Conversation, Emit: j.Emit,
		// A teammate may have a model of its own. The team's model is opened once and shared.
		Model: func(name string) (llm.Model, error) {
			if name == "" {
				return first, nil
			}
			return a.model(j.Workspace, name, s)
		},
		OnBegin: func(ctx context.Context) { rememberServer(ctx, a, j.Workspace, j.Settings) },
		Limits: team.Limits{Turns: s.MaxTurns, MaxTokens: s.MaxTokens, SubagentTurns: s.SubagentTurns,
			IdleTimeout: idle, BashTimeout: s.BashTimeout, BackgroundTimeout: s.BackgroundTimeout,
			CheckTimeout: s.CheckTimeout},
		WorktreesDir: s.WorktreesDir, MergeCommits: s.MergeCommits, Log: a.logger(),
		Secrets: append(secretValues(a), redact.InURL(s.Model)...), PassEnv: s.PassEnv.List(),
	})
}

// demoJob makes the demo's job. It is the Demo of the installed program. The job sets the model, the check and the
// size of the team itself, and does not read settings from the environment.
func demoJob(ctx context.Context, dir string) (Job, error) {
	d, err := demo.Make(ctx, dir)
	if err != nil {
		return Job{}, err
	}
	s, _, err := config.Load(config.Options{})
	s.Model, s.Check, s.Team, s.Teammates = config.Script+"/"+d.Script, d.Check, d.Team, d.Teammates
	s.UserModel = s.Model
	return Job{Goal: d.Goal, Settings: s}, err
}

// model returns the model with a name. The environment has the keys. A script is a file, whose path is relative to
// the directory of -C. The name may come from a record in the workspace, which may not choose a server.
func (a *App) model(w *workspace.Workspace, name string, s config.Settings) (llm.Model, error) {
	if err := checkServer(a, w, name, s); err != nil {
		return nil, err
	}
	c, err := config.Choose(name, a.Env)
	if err != nil {
		return nil, err
	}
	switch c.Provider {
	case config.Anthropic:
		return anthropic.New(anthropic.Options{Model: c.Name, BaseURL: c.URL, Key: a.env("ANTHROPIC_API_KEY"),
			MaxTokens: s.MaxTokens, Effort: s.Effort}), nil
	case config.OpenAIChat, config.OpenAIResponses:
		// The two interfaces of the provider differ in the form of requests only.
		api := openai.Chat
		if c.Provider == config.OpenAIResponses {
			api = openai.Responses
		}
		return openai.New(openai.Options{Model: c.Name, BaseURL: c.URL, Key: a.env("OPENAI_API_KEY"), API: api,
			MaxTokens: s.MaxTokens, Effort: s.Effort}), nil
	case config.Script:
		// The file is read whole now, so a script that is changed later does not disturb the run.
		words, err := script.Load(scriptFile(a, c.Name))
		if err != nil {
			return nil, err
		}
		return words.Model(), nil
	}
	return nil, muster.Errorf(muster.Invalid, "there is no provider %q", c.Provider)
}
