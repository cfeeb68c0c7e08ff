package team

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/ports"
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
	// Advisory are the advisory checks that are not green, each with what failed.
	Advisory []string `json:"advisory,omitempty"`
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

// readyLane returns what puts the kept result of the set-up into a fresh lane, and says to the member how that stands;
// nil: there is no set-up.
func readyLane(p *runHost, setups *setup.Store) func(context.Context, muster.Lane) string {
	c := p.config
	if c.Setup == "" || setups == nil {
		return nil
	}
	// What is left out is the same in all lanes, so people are told once.
	var told sync.Once
	return func(ctx context.Context, lane muster.Lane) string {
		s, err := setups.Ready(ctx, setup.Job{Dir: lane.Path, Commit: lane.Base, Command: c.Setup,
			Patterns: c.SetupFiles, Environ: p.Environ, Launch: p.workspace.Launcher})
		logDropped(ctx, p.Log, "setting a lane up", err)
		if len(s.Left) > 0 {
			told.Do(func() {
				p.note(ctx, "", fmt.Sprintf("the set-up makes %s, which git does not ignore: it is not put into lanes",
					strings.Join(s.Left[:min(len(s.Left), 3)], ", ")))
			})
		}
		switch {
		case s.IsReady:
			return "Set up already, by: " + c.Setup
		case s.IsUsed:
			return ""
		}
		return "Not set up yet. If you need it, run: " + c.Setup
	}
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
	logged := loggedLauncher{t.config.Resources.limit(launcher), t.log, t.secrets}
	checks, err := confineTrial(ctx, t, logged, repo, lanes, state)
	if err != nil {
		return trial, err
	}
	lander := landing.New(repo, lanes, nil, t.opened.Journal(), func() (proc.Launcher, error) {
		return checks, nil
	}, landing.Options{Environ: t.config.environ(), Secrets: t.secrets, Outputs: state.Outputs(), Log: t.log,
		Cache: t.config.checksDir(), SetupFiles: t.config.SetupFiles,
		Ports: ports.Open(t.config.CacheDir), PortCount: t.config.Ports,
		Setups: setup.Open(repo, t.config.CacheDir, t.log),
		Check: landing.Check{Command: t.config.Check, Named: t.config.Checks, Setup: t.config.Setup,
			Timeout: t.config.Limits.CheckTimeout}})
	began := time.Now()
	res, err := lander.TryCheck(ctx, trial.Commit)
	trial.Green, trial.CannotRun, trial.How, trial.Command = res.Green, res.CannotRun, res.How, res.Command
	trial.Seconds = time.Since(began).Seconds()
	for _, c := range res.Advice() {
		trial.Advisory = append(trial.Advisory, t.secrets.String(c.Name+": "+cmp.Or(c.Failed, c.How)))
	}
	if !res.Green {
		trial.Output = t.secrets.String(res.Output)
	}
	return trial, err
}
