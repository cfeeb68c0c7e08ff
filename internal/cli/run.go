package cli

import (
	"context"
	"runtime"

	"muster"
	"muster/internal/config"
	"muster/internal/demo"
	"muster/llm"
	"muster/team"
)

// wire chooses what brings teams to life: the supervisor, and the demo.
func (a *App) wire() {
	a.Start = a.start
	a.Demo = rehearse
}

// spare is memory that is never touched, so that the system never gives it: the collector counts it, and lets a small team's
// heap grow by so many bytes more before it runs again. It would run after every second turn otherwise.
const spare = 2 << 20

// start brings a team to life.
func (a *App) start(ctx context.Context, j Job) (team.Summary, error) {
	room := make([]byte, spare)
	defer runtime.KeepAlive(room)
	t, err := a.openTeam(ctx, j)
	switch {
	case err != nil:
		return team.Summary{Code: exitError}, err
	case j.Resume:
		return t.Resume(ctx)
	}
	return t.Run(ctx, j.Goal, j.How)
}

// openTeam is the team that a job is about.
func (a *App) openTeam(ctx context.Context, j Job) (*team.Team, error) {
	s := j.Settings
	first, err := a.model(s.Model, s) // a model that cannot be had is said before anything is written
	if err != nil {
		return nil, err
	}
	idle := s.IdleTimeout
	if idle == 0 {
		idle = -1 // never; the team's zero is its default
	}
	return team.Open(ctx, team.Config{
		Dir: j.Dir, Store: j.Store, Name: muster.Name(s.Team), Check: s.Check, Setup: s.Setup, Land: s.Land, Teammates: s.Teammates,
		ModelName: s.Model, Conversation: j.Conversation, Emit: j.Emit,
		Model: func(name string) (llm.Model, error) {
			if name == "" || name == s.Model {
				return first, nil
			}
			return a.model(name, s)
		},
		Limits: team.Limits{Turns: s.MaxTurns, MaxTokens: s.MaxTokens, SubagentTurns: s.SubagentTurns, IdleTimeout: idle,
			BashTimeout: s.BashTimeout, BackgroundTimeout: s.BackgroundTimeout, CheckTimeout: s.CheckTimeout},
		WorktreesDir: s.WorktreesDir, MergeCommits: s.MergeCommits, Log: a.logger(),
	})
}

// rehearse makes the demo's job.
func rehearse(ctx context.Context, dir string) (Job, error) {
	r, err := demo.Make(ctx, dir)
	if err != nil {
		return Job{}, err
	}
	s, _, err := config.Load(config.Options{})
	s.Model, s.Check, s.Team, s.Teammates = config.Script+"/"+r.Script, r.Check, r.Team, r.Teammates
	return Job{Goal: r.Goal, Settings: s}, err
}
