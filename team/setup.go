package team

import (
	"cmp"
	"context"
	"os"
	"time"

	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/setup"
	"muster/internal/worktree"
)

// CheckTrial is what a set-up and a check said of HEAD.
type CheckTrial struct {
	Commit    string  `json:"commit"`
	Green     bool    `json:"green"`
	CannotRun bool    `json:"cannot_run,omitempty"` // the set-up failed, or the check cannot be executed
	How       string  `json:"how"`                  // exit 1
	Command   string  `json:"command"`              // the one that decided
	Seconds   float64 `json:"seconds"`              // of all commands, with the checkout
	Output    string  `json:"output,omitempty"`     // of one that is not green: what failed, and the last lines
}

// Setup is what the repository of a team needs before work can begin in a checkout.
type Setup struct{ t *Team }

// SetupOf returns the set-up of a team's repository.
func SetupOf(t *Team) Setup { return Setup{t} }

// setupStore returns where what the set-up makes is kept; nil where there is no git.
func setupStore(t *Team, r repository) *setup.Store {
	if g, isGit := r.(gitRepository); isGit {
		return setup.Open(g.Repo, t.config.CacheDir, t.log)
	}
	return nil
}

// Propose returns what the repository seems to need: its set-up and its checks, with the reasons. It looks at
// HEAD, runs nothing and writes nothing.
func (s Setup) Propose(ctx context.Context) (detect.Proposal, error) {
	repo, err := s.t.opened.Repo(ctx)
	if err != nil {
		return detect.Proposal{}, err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return detect.Proposal{}, err
	}
	return setup.Propose(ctx, repo, head)
}

// Try runs Config.Setup and Config.Check on HEAD, in a clean checkout as a landing has it. It changes no state of
// the team, so it works where there is none.
func (s Setup) Try(ctx context.Context) (trial CheckTrial, err error) {
	t := s.t
	repo, err := t.opened.Repo(ctx)
	if err != nil {
		return trial, err
	}
	if trial.Commit, err = repo.Head(ctx); err != nil {
		return trial, err
	}
	// The locks and the log of a check are files of the team's state. Those of a trial lie elsewhere.
	dir, err := os.MkdirTemp("", "muster-trial-")
	if err != nil {
		return trial, err
	}
	defer func() { err = cmp.Or(err, durable.RemoveAll(dir)) }()
	state := paths.Dir(dir)
	lanes, err := worktree.Open(repo, durable.New(durable.OS{}), state, t.opened.Journal(), t.opened.Store().Log(),
		worktree.Options{})
	if err != nil {
		return trial, err
	}
	launcher, err := t.launch(ctx)
	if err != nil {
		return trial, err
	}
	defer func() { err = cmp.Or(err, launcher.Close()) }()
	lander := landing.New(repo, lanes, nil, t.opened.Journal(), func() (proc.Launcher, error) {
		return loggedLauncher{launcher, t.log, t.secrets}, nil
	}, landing.Options{Environ: t.config.environ(), Secrets: t.secrets, Outputs: state.Outputs(), Log: t.log,
		Cache: t.config.checksDir(), Setups: setup.Open(repo, t.config.CacheDir, t.log), SetupFiles: t.config.SetupFiles,
		Check: landing.Check{Command: t.config.Check, Setup: t.config.Setup, Timeout: t.config.Limits.CheckTimeout}})
	began := time.Now()
	res, err := landing.TryCheck(ctx, lander, trial.Commit)
	trial.Green, trial.CannotRun, trial.How, trial.Command = res.Green, res.CannotRun, res.How, res.Command
	trial.Seconds = time.Since(began).Seconds()
	if !res.Green {
		trial.Output = t.secrets.String(res.Output)
	}
	return trial, err
}
