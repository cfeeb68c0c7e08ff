// Package check runs the project's check on the files of a commit, and says what it said.
//
// A Runner is the service. Run takes these steps:
//
//   - It looks whether a Receipt (receipt.go) says that the check is green on the commit's tree. Then nothing runs.
//   - It takes a slot, a directory outside the repository that is used again (slot.go), or a temporary one.
//   - It removes what an earlier check has left there (filelist.go), and checks the commit out (checkout.go).
//   - It runs the set-up and the check, in an environment that leads to no other checkout of the repository
//     (environ.go) and has caches of its own (cache.go).
//   - It keeps what they print (log.go), writes the receipt, and returns a Result.
//
// Of several named checks each takes these steps by itself, side by side with the others (named.go), and their results
// are combined into one (result.go). A check that guards some files has a receipt of those files and not of the tree:
// it does not run again on a tree in which they are the same.
//
// What a result means for a landing is decided in internal/landing.
//
// The package keeps these invariants:
//
//   - A check sees the files of one commit and nothing that another check has left.
//   - A receipt is written when a check has ended, and says what it has said. One that cannot be read proves nothing.
//   - A result is green only if every check that is not advisory was green on the commit's tree, or on one that has the
//     same of all files that it guards.
//   - Whatever a check does to its checkout, and to the git in it, changes nothing in the repository.
//   - When Run returns, nothing that it has started is alive.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/git"
	"muster/internal/localfiles"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/setup"
)

// Check is how a tree is verified.
type Check struct {
	// Command is run by the shell; "": nothing is verified, and every landing says so. Where there are Named checks it
	// does not run, and has the names of those that are required.
	Command string
	Named   []muster.NamedCheck // run side by side, instead of Command
	Setup   string              // run before each of them, in a fresh checkout: npm ci
	Timeout time.Duration       // of each command; 0: 10 minutes
}

// defaultTimeout is how long a check may take.
const defaultTimeout = 10 * time.Minute

// Dirs makes directories outside the repository, and returns with each the function that removes it.
type Dirs interface {
	Create() (dir string, remove func(), err error)
}

// Options are what a Runner works with.
type Options struct {
	Check Check
	Repo  *git.Repo
	Dirs  Dirs
	// Launch gives what starts checks, and set-ups: see SetupLauncher. It is called at each check: a Runner can outlive
	// the launcher of a run.
	Launch func() (proc.Launcher, error)
	// Cache is where the directories and caches of checks are kept, for all repositories of the user. "": nothing is
	// kept, and each check has a temporary directory of Dirs.
	Cache string
	// Receipts is the directory in which receipts are kept; "" keeps none.
	Receipts string
	// Setups keeps what set-ups make; nil: each checkout is set up by the command. SetupFiles are patterns of the files
	// on which the set-up depends besides those that are known.
	Setups     *setup.Store
	SetupFiles []string
	// Ports is where the network ports of checks are noted, and PortCount how many each has; nil: they have none.
	Ports     *ports.Table
	PortCount int

	Outputs string   // the logs of checks go to its directory landing
	Environ []string // what checks see of the user's environment
	// Local is what of the user's files each checkout gets; nil is nothing.
	Local *localfiles.Set
	// Secrets are hidden where a log names the command of a check. The launcher hides them in what it prints.
	Secrets *redact.Secrets
	// OnTest gets the test that a check runs now or has run last, and the task of the Job, a few times a second. It
	// must not block. Nil: nobody is told.
	OnTest func(task muster.TaskID, test string)
	// AtOnce is how many of Check.Named may run at once; 0: one.
	AtOnce int
}

// SetupLauncher is a launcher that starts set-ups otherwise than checks: a set-up may need a network.
type SetupLauncher interface {
	proc.Launcher
	ForSetup() proc.Launcher
}

// Writable returns the directories in which a check, or a set-up, may write: its own, with the checkout, and that of
// the caches that all checks of the repository share, in which nothing else lies.
func Writable(s proc.Spec) (own, caches string) {
	return filepath.Dir(s.Dir), filepath.Dir(proc.Variable(s.Env, "XDG_CACHE_HOME"))
}

// Runner runs checks. It is safe for concurrent use.
type Runner struct {
	options Options
	running chan struct{} // holds a token for each of the named checks that runs
}

// New makes a Runner.
func New(o Options) *Runner {
	if o.Check.Timeout <= 0 {
		o.Check.Timeout = defaultTimeout
	}
	return &Runner{options: o, running: make(chan struct{}, max(1, o.AtOnce))}
}

// errTimeout is the cause of a context that ended because of Check.Timeout. It tells that end from the caller's.
var errTimeout = errors.New("the check took too long")

// Job says what a check verifies.
type Job struct {
	Commit string
	Name   string        // of its log
	Task   muster.TaskID // which would land; 0 for a check of the target
}

// Run runs setup and check on a commit's files, then last unless it is nil. It runs no check of which a receipt says
// that it is green. An error means that there is no answer.
func (r *Runner) Run(ctx context.Context, of Job, last Last) (Result, error) {
	if len(r.options.Check.Named) > 0 {
		return r.runNamed(ctx, of, last)
	}
	return r.runOne(ctx, muster.NamedCheck{Command: r.options.Check.Command}, of, last)
}

// runOne is Run for one check.
//
// The receipt is looked up before anything is made: where it says enough, no checkout is needed. It is written last,
// when the log that it names is closed. A process that is killed before has earned nothing, and the check runs again.
func (r *Runner) runOne(ctx context.Context, c muster.NamedCheck, of Job, last Last) (res Result, err error) {
	is, was, err := r.receiptFor(ctx, c, of.Commit)
	if err != nil {
		return res, err
	}
	var known *Result // what the check would say
	switch {
	case is.Files == NoFiles:
		res = Result{Green: true, Cached: true, Command: c.Command, How: NoFiles}
		return res, r.keep(is, nil, res)
	case was != nil && was.isProof():
		x := was.result()
		known = &x
	}
	if known != nil && last == nil {
		return *known, nil
	}
	res, checked, err := r.inCheckout(ctx, c, of, known, last)
	if err != nil || known != nil {
		return res, err
	}
	return res, r.keep(is, was, checked)
}

// inCheckout runs setup and check in a checkout of its own, then last. It returns the result, and what it was before
// last, which says nothing of the check. A check of which the result is known does not run.
func (r *Runner) inCheckout(
	ctx context.Context, c muster.NamedCheck, of Job, known *Result, last Last,
) (res, checked Result, err error) {
	checkouts, err := r.checkouts(ctx)
	if err != nil {
		return res, checked, err
	}
	// Each check has clean files: what an earlier one left behind can neither help nor hurt it.
	spec, remove, err := r.checkout(ctx, of.Commit, c.Name)
	if err != nil {
		return res, checked, err
	}
	defer func() {
		_ = localfiles.Remove(spec.Dir, r.options.Local.Names()) // what stays goes with the next check
		remove()
		if r.options.Cache != "" {
			trim(r.options.Cache, time.Now())
		}
	}()
	log, err := newCheckLog(r.options.Outputs, of.Name)
	if err != nil {
		return res, checked, err
	}
	if tell := r.options.OnTest; tell != nil {
		log.teller.tell = func(test string) { tell(of.Task, test) }
	}
	run := run{Runner: r, check: c, commit: of.Commit, spec: spec, checkouts: checkouts, log: log, known: known}
	if res, err = run.all(ctx); err == nil {
		if checked = res; !res.Green && !run.began.IsZero() {
			err = log.search(ctx, run.readReports)
		}
		if err == nil && last != nil {
			err = last(ctx, spec.Dir, run.spec.Env, &res, log)
		}
	}
	// The log is closed on every way out, and what matters of it is a part of the result.
	res.Log = log.file.Name()
	if res.Failed, res.Output = log.digest(spec.Dir); res.Green {
		res.Failed, res.RanNone = "", cmp.Or(res.RanNone, log.ranNone())
	} else {
		res.FailedTests, res.NamesKnown, res.Stopped = log.names()
		res.NamesKnown = res.NamesKnown && !res.died
	}
	checked.Log, checked.RanNone = res.Log, res.RanNone
	checked.FailedTests, checked.NamesKnown, checked.Stopped = res.FailedTests, res.NamesKnown, res.Stopped
	return res, checked, cmp.Or(err, log.close())
}

// checkouts returns the roots of the user's checkouts and the lanes: no check may see their files.
func (r *Runner) checkouts(ctx context.Context) ([]string, error) {
	all := []string{r.options.Repo.Root()}
	worktrees, err := r.options.Repo.Worktrees(ctx)
	for _, w := range worktrees {
		if !slices.Contains(all, w.Path) {
			all = append(all, w.Path)
		}
	}
	return all, err
}

// run is one check under way.
type run struct {
	*Runner
	check     muster.NamedCheck // its name is "" where it is the only one
	commit    string
	spec      proc.Spec
	checkouts []string
	log       io.Writer
	known     *Result   // what the check would say; nil: nobody knows
	began     time.Time // when the check began, after the set-up
}

// all runs the setup and the check.
func (x *run) all(ctx context.Context) (res Result, err error) {
	if err := x.fillSubmodules(ctx); err != nil {
		return res, err
	}
	// What a set-up makes may be where the environment leads, so each of the two commands has one of its own.
	given := x.spec.Env
	if x.options.Check.Setup != "" {
		x.spec.Env = makeHonest(given, x.checkouts, x.spec.Dir).env
		// A setup that fails says nothing about the work, so the result is "cannot run" and never just red.
		if res, err = x.setUp(ctx); err != nil || !res.Green {
			res.CannotRun = true
			res.How = "the setup failed: " + res.How
			return res, err
		}
	}
	if _, err := x.options.Local.Put(x.spec.Dir); err != nil {
		fmt.Fprintf(x.log, "[files of %s are missing here: %v]\n", localfiles.Name, err)
	}
	h := makeHonest(given, x.checkouts, x.spec.Dir)
	x.spec.Env = h.env
	if x.known != nil {
		fmt.Fprintf(x.log, "[known of this very tree already: %s, see %s]\n", x.known.How, x.known.Log)
		return *x.known, nil
	}
	if res.Green = true; x.check.Command == "" {
		return res, nil
	}
	if len(h.replaced) > 0 {
		fmt.Fprintf(x.log, "[led into another checkout, and was changed: %s]\n", strings.Join(h.replaced, ", "))
	}
	if h.problem != "" {
		fmt.Fprintf(x.log, "[not verified: %s]\n", h.problem)
	}
	x.began = time.Now()
	res, err = x.runCommand(ctx, x.spec, x.check.Command, x.timeout(), x.log, x.options.Launch)
	res.Replaced, res.Unverified = h.replaced, h.problem
	return res, err
}

// timeout returns how long the check may take.
func (x *run) timeout() time.Duration {
	if x.check.Timeout > 0 {
		return time.Duration(x.check.Timeout * float64(time.Second))
	}
	return x.options.Check.Timeout
}

// runCommand runs one command in a checkout, with its output in the log. A command that takes too long has failed; the
// end of ctx is an error. Either ends all that the command has started: a check that leaves servers behind would make
// the next one fail.
func (r *Runner) runCommand(
	ctx context.Context, spec proc.Spec, command string, timeout time.Duration, log io.Writer,
	launch func() (proc.Launcher, error),
) (Result, error) {
	res := Result{Command: command}
	fmt.Fprintf(log, "$ %s\n", r.options.Secrets.String(command))
	// The cause tells a check that took too long, which is red, from a caller that gave up, which is no answer.
	limited, cancel := context.WithTimeoutCause(ctx, timeout, errTimeout)
	defer cancel()
	// Standard output and standard error go to the one log, in the order in which they come.
	spec.Argv, spec.Out = proc.Shell(command), log
	started, exit := time.Now(), 0
	launcher, err := launch()
	if err == nil {
		var p proc.Process
		if p, err = launcher.Start(limited, spec); err == nil {
			exit, err = p.Wait()
		}
	}
	res.Seconds, res.died = time.Since(started).Seconds(), err != nil || isSignal(exit) || limited.Err() != nil
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case errors.Is(context.Cause(limited), errTimeout):
		res.TimedOut = true
		res.How = fmt.Sprintf("it did not end within %s", clock.Duration(timeout))
	case errors.Is(err, errTooMuchOutput):
		res.How = errTooMuchOutput.Error()
	case err != nil:
		return res, muster.Errorf(muster.Unavailable, "the check cannot be started: %w", err)
	case exit == 126:
		res.CannotRun, res.How = true, "exit 126: the command cannot be executed"
	case exit == 127:
		res.CannotRun, res.How = true, "exit 127: the command was not found"
	default:
		res.Green, res.How = exit == 0, fmt.Sprintf("exit %d", exit)
	}
	fmt.Fprintf(log, "[%s after %.1f s]\n", res.How, res.Seconds)
	return res, nil
}

// launchSetup gives what starts set-ups.
func (r *Runner) launchSetup() (proc.Launcher, error) {
	l, err := r.options.Launch()
	if s, ok := l.(SetupLauncher); ok && err == nil {
		l = s.ForSetup()
	}
	return l, err
}

// unavailable says what could not be done. Such a check may be tried again. The end of ctx stays what it is.
func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s: %w", what, err)
}
