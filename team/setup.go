package team

import (
	"cmp"
	"context"
	"os"
	"strings"
	"time"

	"muster/internal/confined"
	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/landing"
	"muster/internal/launchers"
	"muster/internal/localfiles"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/setup"
	"muster/internal/tool/code"
	"muster/internal/workspace"
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
	// Failed is the first failure that its output tells, or else its last line; "" where it is green.
	Failed string `json:"-"`
}

// CommandTrial is what a command has seen that was started as those of members are.
type CommandTrial struct {
	By      string  // what confines it; "": it has the user's rights
	User    string  // as whom it runs; "": it cannot tell
	Seconds float64 // from its start to its end
	// Tree and Git say why it cannot write in its lane, and why git does not work there; "": it can.
	Tree, Git string
	Missing   []string // the programs that it does not find
	Hint      string   // where the user's checkout has one of them, and what to do; "": it has none
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
		trial.Failed = hide.String(res.Failed)
		for line := range strings.Lines(trial.Output) {
			if line = strings.TrimSpace(line); res.Failed == "" && line != "" && !strings.HasPrefix(line, "[") {
				trial.Failed = line
			}
		}
	}
	return trial, err
}

// trialScript says as whom it runs, what goes wrong in the lane and with git, and which of its arguments behind the
// first are no programs in the PATH that the first is.
const trialScript = `set -f
echo "user $(id -un 2>/dev/null || id -u 2>/dev/null)"
said=$({ : >.muster-trial && rm .muster-trial; } 2>&1) || echo tree $said
said=$(git status --porcelain 2>&1) || echo git $said
PATH=$1; shift
for program; do command -v "$program" >/dev/null 2>&1 || echo "missing $program"; done
exit 0`

// TryCommand starts a command as a member would, in a lane at HEAD, and says what it has seen, and which of the
// programs it does not find. Nothing of that stays, and the state of a team is neither read nor changed. The error is
// Unavailable where no lane can be made, or no command can start.
func (s Setup) TryCommand(ctx context.Context, programs []string) (trial CommandTrial, err error) {
	o := s.now()
	repo, err := o.workspace.Repo(ctx)
	if err != nil {
		return trial, err
	}
	head, err := repo.Head(ctx)
	if err != nil {
		return trial, err
	}
	m, err := o.config.findSandbox(ctx, repo.Root())
	if err != nil {
		return trial, err
	}
	if m != nil {
		trial.By = m.Name
	}
	at, err := workspace.OpenTrial(ctx, repo, head)
	if err != nil {
		return trial, err
	}
	defer func() { err = cmp.Or(err, at.Close(ctx)) }()
	launcher, err := o.launch(ctx)
	if err != nil {
		return trial, err
	}
	defer func() { err = cmp.Or(err, launcher.Close()) }()
	logged := launchers.Logged(o.config.Resources.limit(launcher), o.log, o.secrets)
	network, _ := o.config.Sandbox.networks(func(string) {})
	confined, err := confined.NewMembers(logged, o.config.placeOf(m, repo, at.Lanes, at.State), network)
	if err != nil {
		return trial, err
	}
	warn := func(err error) { logDropped(ctx, o.log, "preparing a command", err) }
	members, removeDir := launchers.WithTemporaryDir(confined, at.Lanes, warn)
	defer removeDir()
	members = withHooks(members, repo, at.State, "refs/heads/"+at.Lane.Branch, warn)
	environ, began := code.Environ(ctx, o.config.environ(), at.Lane.Path), time.Now()
	// Checks do not find what lies in a checkout of the user's.
	only := o.config.programs(repo)
	_, outside := proc.FindOutside("", environ, only.Roots...)
	args := append([]string{proc.Variable(outside, "PATH")}, programs...)
	said, err := runAsMember(ctx, members, at.Lane.Path, environ, trialScript, args...)
	trial.Seconds = time.Since(began).Seconds()
	for line := range strings.Lines(said) {
		switch about, words, _ := strings.Cut(strings.TrimSpace(line), " "); about {
		case "user":
			trial.User = words
		case "tree":
			trial.Tree = cmp.Or(words, "it says no reason")
		case "git":
			trial.Git = cmp.Or(words, "it says no reason")
		case "missing":
			trial.Missing = append(trial.Missing, words)
			trial.Hint = cmp.Or(trial.Hint, only.Hint(words, at.Lane.Path))
		}
	}
	return trial, err
}
