package team

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/launchers"
	"muster/internal/localfiles"
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
	// RanNone are the checks that are green and have run no test, each with the line that says so.
	RanNone []string `json:"ran_none,omitempty"`
	// Advisory are the advisory checks that are not green, each with what failed.
	Advisory []string `json:"advisory,omitempty"`
}

// Setup is what the repository of a team needs before work can begin in a checkout.
type Setup struct{ now func() operations }

// Propose returns what the repository seems to need: its set-up and its checks, with the reasons. It looks at
// HEAD, runs nothing and writes nothing.
func (s Setup) Propose(ctx context.Context) (detect.Proposal, error) {
	return propose(ctx, s.now().workspace)
}

// LocalFiles returns the lines of a .worktreeinclude for the files that git ignores and work seems to need; none where
// the repository has one.
func (s Setup) LocalFiles(ctx context.Context) (patterns []string, err error) {
	w := s.now().workspace
	if _, hasOne, err := localfiles.Item(w.Root()); err != nil || hasOne {
		return nil, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	return localfiles.Propose(ctx, repo)
}

// Try runs Config.Setup and Config.Check on HEAD, in a clean checkout as a landing has it. It changes no state of
// the team, so it works where there is none.
func (s Setup) Try(ctx context.Context) (trial CheckTrial, err error) {
	o := s.now()
	repo, err := o.workspace.Repo(ctx)
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
	w := o.workspace
	lanes, err := worktree.Open(repo, durable.New(durable.OS{}), state, w.Journal(), w.Store().Log(),
		worktree.Options{})
	if err != nil {
		return trial, err
	}
	launcher, err := o.launch(ctx)
	if err != nil {
		return trial, err
	}
	defer func() { err = cmp.Or(err, launcher.Close()) }()
	local, err := w.Trust().LocalFiles(ctx)
	if err != nil {
		return trial, err
	}
	hide := o.secrets.With(local.Keys()...)
	logged := launchers.Logged(o.config.Resources.limit(launcher), o.log, hide)
	checks, err := o.config.confineTrial(ctx, logged, repo, lanes, state)
	if err != nil {
		return trial, err
	}
	options := o.config.checkOptions()
	options.Environ, options.Secrets, options.Outputs = o.config.checkEnviron(), hide, state.Outputs()
	options.Local = local
	options.Log, options.Setups = o.log, setup.Open(repo, o.config.CacheDir, o.log)
	lander := landing.New(repo, lanes, nil, w.Journal(), func() (proc.Launcher, error) { return checks, nil },
		options)
	began := time.Now()
	res, err := lander.TryCheck(ctx, trial.Commit)
	trial.Green, trial.CannotRun, trial.How, trial.Command = res.Green, res.CannotRun, res.How, res.Command
	trial.Seconds = time.Since(began).Seconds()
	for _, c := range res.Advice() {
		trial.Advisory = append(trial.Advisory, hide.String(c.Name+": "+cmp.Or(c.Failed, c.How)))
	}
	for _, c := range res.Each() {
		if c.Green && c.RanNone != "" {
			trial.RanNone = append(trial.RanNone, hide.String(strings.TrimPrefix(c.Name+": "+c.RanNone, ": ")))
		}
	}
	if !res.Green {
		trial.Output = hide.String(res.Output)
	}
	return trial, err
}
