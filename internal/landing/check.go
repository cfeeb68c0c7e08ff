package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/proc"
	"muster/journal"
)

// CheckResult is what a check said.
type CheckResult struct {
	Green     bool
	CannotRun bool    // exit 126 or 127, or the setup failed: no landing could be verified
	How       string  // "exit 1", "exit 127: the command was not found", "no end within 10m0s"
	Command   string  // the check's, or the setup's if that one failed
	Seconds   float64 // how long it took
	Refused   bool    // the check did not fail, but Options.Hook refused what would land
	Log       string  // the path of what it printed
	Failed    string  // the first failure that was found in that, in a line; "": none
	Output    string  // what was found to have failed, and the last lines
}

// errTimeout is the cause of a context that ended because of Check.Timeout. It tells that end from the caller's.
var errTimeout = errors.New("the check took too long")

// check runs setup and check on a commit's files, and names the log. An error means that there is no answer. Where the
// commit would land for a task, Options.Hook is asked last.
func (l *Lander) check(ctx context.Context, commit, name string, of *muster.Task) (res CheckResult, err error) {
	// Each check has a fresh directory: what an earlier one left behind can neither help nor hurt it.
	spec, remove, err := l.checkout(ctx, commit)
	if err != nil {
		return res, err
	}
	defer remove()
	log, err := newCheckLog(l.options.Outputs, name)
	if err != nil {
		return res, err
	}
	// The log is closed on every way out, and what matters of it is a part of the result.
	defer func() {
		res.Log = log.file.Name()
		if res.Failed, res.Output = log.digest(); res.Green {
			res.Failed = ""
		}
		err = cmp.Or(err, log.close())
	}()
	l.options.Order.Outside(ctx, func() { res, err = runAll(ctx, l, of, spec, log) })
	return res, err
}

// runAll runs the setup and the check, and asks Options.Hook about what would land for a task; of may be nil.
func runAll(
	ctx context.Context, l *Lander, of *muster.Task, spec proc.Spec, log io.Writer,
) (res CheckResult, err error) {
	// A setup that fails says nothing about the work, so the result is "cannot run" and never just red.
	if l.options.Check.Setup != "" {
		if res, err = l.runCommand(ctx, spec, l.options.Check.Setup, log); err != nil || !res.Green {
			res.CannotRun = true
			res.How = "the setup failed: " + res.How
			return res, err
		}
	}
	if res.Green = true; l.options.Check.Command != "" {
		res, err = l.runCommand(ctx, spec, l.options.Check.Command, log)
	}
	if err == nil && of != nil && l.options.Hook != nil {
		err = askHook(ctx, l, *of, spec, &res, log)
	}
	return res, err
}

// askHook asks Options.Hook about a commit that may land as far as the check is concerned.
func askHook(ctx context.Context, l *Lander, t muster.Task, spec proc.Spec, res *CheckResult, log io.Writer) error {
	if !res.Green {
		if state, err := l.checkState(ctx, ""); err != nil || res.CannotRun || state == BaseGreen {
			return err
		}
	}
	began := time.Now()
	refused, err := l.options.Hook(ctx, t, spec.Dir, spec.Env)
	if err != nil || refused == "" {
		return err
	}
	fmt.Fprintf(log, "[a Landing hook refused it]\n%s\n", refused)
	*res = CheckResult{Refused: true, Command: "Landing hook", How: "refused", Seconds: time.Since(began).Seconds()}
	return nil
}

// runCommand runs one command in a checkout, with its output in the log. A command that takes too long has failed; the
// end of ctx is an error. Either ends all that the command has started: a check that leaves servers behind would make
// the next one fail.
func (l *Lander) runCommand(ctx context.Context, spec proc.Spec, command string, log io.Writer) (CheckResult, error) {
	res := CheckResult{Command: command}
	fmt.Fprintf(log, "$ %s\n", l.options.Secrets.String(command))
	// The cause tells a check that took too long, which is red, from a caller that gave up, which is no answer.
	limited, cancel := context.WithTimeoutCause(ctx, l.options.Check.Timeout, errTimeout)
	defer cancel()
	// Standard output and standard error go to the one log, in the order in which they come.
	spec.Argv, spec.Out = proc.Shell(command), log
	started, exit := time.Now(), 0
	launcher, err := l.launch()
	if err == nil {
		var p proc.Process
		if p, err = launcher.Start(limited, spec); err == nil {
			exit, err = p.Wait()
		}
	}
	res.Seconds = time.Since(started).Seconds()
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case errors.Is(context.Cause(limited), errTimeout):
		res.How = fmt.Sprintf("no end within %v", l.options.Check.Timeout)
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

// runCheck checks what would land on the tip. The result has no receipt when it may not land, and no commit yet.
func (a *attempt) runCheck(ctx context.Context, tree, tip string) (landed muster.Landed, res CheckResult, err error) {
	unchecked := muster.Landed{Receipt: muster.ReceiptUnchecked}
	if a.options.Check.Command == "" && a.options.Hook == nil {
		return unchecked, res, nil
	}
	// The check sees a commit like the one that would land. The real one is made when its receipt is known.
	commit, err := a.repo.CommitTree(ctx, tree, []string{tip}, subject(a.v.Task)+"\n")
	if err != nil {
		return landed, res, unavailable(ctx, "the merged tree cannot be checked", err)
	}
	res, err = a.check(ctx, commit, fmt.Sprintf("task-%d-%d", a.v.Task.ID, a.claim), &a.v.Task)
	if err != nil || res.Refused {
		return landed, res, err
	}
	if a.options.Check.Command == "" && !res.CannotRun {
		return unchecked, res, nil
	}
	receipt, err := a.receiptOf(ctx, res)
	return muster.Landed{Receipt: receipt, Seconds: res.Seconds, Check: a.options.Check.Command}, res, err
}

// What is known of the target's check, in the words of run.json. "" means that nobody has asked yet.
const (
	BaseGreen = "ok"  // it passed on the base, or a landing has turned it green: no landing may make it red
	BaseRed   = "red" // it failed on the base, and no landing has turned it green yet
	// ForgetBase is said of a target that the user has moved: what was known is of another commit. It is in no record.
	ForgetBase = "forget"
)

// CheckBase runs the check on the target's tip and records whether it fails there: a landing may leave a red target
// red, but may never make a green one red. It queues with the landings of this process. Without a check it does
// nothing.
func (l *Lander) CheckBase(ctx context.Context) (res CheckResult, err error) {
	if l.options.Check.Command == "" {
		return res, nil
	}
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return res, err
	}
	defer unlock()
	return l.classifyBase(ctx)
}

// classifyBase is CheckBase for a caller that has the slot.
func (l *Lander) classifyBase(ctx context.Context) (res CheckResult, err error) {
	tip, err := l.Target(ctx)
	if err != nil {
		return res, err
	}
	res, err = l.check(ctx, tip, "base", nil)
	switch {
	case err != nil:
	case res.Green:
		_, err = l.checkState(ctx, BaseGreen)
	case !res.CannotRun:
		_, err = l.checkState(ctx, BaseRed)
	}
	if err == nil {
		l.checked.Store(&tip)
	}
	return res, err
}

// isChecked reports whether the check has said something of the target at the commit: a landing brought it there, it is
// the base of the run, or this process has run the check on it. Without a check there is nothing to know.
func isChecked(ctx context.Context, l *Lander, at string) (bool, error) {
	if seen := l.checked.Load(); l.options.Check.Command == "" || seen != nil && *seen == at {
		return true, nil
	}
	if landed, err := landedCommits(ctx, l); err != nil || landed[at] {
		return err == nil, err
	}
	if l.options.Tips == nil {
		return false, nil
	}
	tips, err := l.options.Tips(ctx, l.branch(), nil)
	if err != nil || len(tips) == 0 || tips[0] != (muster.Tip{Commit: at}) {
		return false, err
	}
	state, err := l.checkState(ctx, "")
	return state != "", err
}

// CheckMoved runs the check on the target as it is, unless the check has said something of that already. isRun reports
// whether it ran. It is for the end of a run: the user may have moved the target to where no landing has checked it.
func CheckMoved(ctx context.Context, l *Lander) (res CheckResult, isRun bool, err error) {
	at, _, err := l.repo.Branch(ctx, l.options.Target)
	if err != nil || at == "" {
		return res, false, err
	}
	if isKnown, err := isChecked(ctx, l, at); err != nil || isKnown {
		return res, false, err
	}
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return res, false, err
	}
	defer unlock()
	if res, err = l.check(ctx, at, "target", nil); err == nil {
		l.checked.Store(&at)
	}
	return res, true, err
}

// checkState records what the check said of the target, "" to record nothing, and returns what was known before.
// Red replaces nothing: once a landing was green, red on the target is news and never an excuse. An error is never
// taken for "nobody has asked yet": a red check would otherwise be compared with another base than the run's own.
func (l *Lander) checkState(ctx context.Context, said string) (before string, err error) {
	// Also when ctx has just ended: the answer cost a whole check.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if before, err = l.options.CheckState(late, said); err != nil {
		return "", fmt.Errorf("what the check said of %s before cannot be read or recorded: %w", l.branch(), err)
	}
	return before, nil
}

// noteGreen records that a landing's check was green: from now on a red one is refused.
func (l *Lander) noteGreen(ctx context.Context) error {
	before, err := l.checkState(ctx, BaseGreen)
	if err != nil || before != BaseRed {
		return err
	}
	return l.note(ctx, "the check is green on "+l.branch()+
		" now: from here on a landing whose check is red comes back")
}

// note tells people something that concerns the whole run.
func (l *Lander) note(ctx context.Context, text string) error {
	return l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": text}})
}

// receiptOf returns the receipt that a check's result earns, "" when the work may not land. A red result is accepted
// only while the base is known to be red. A check that cannot run never is: on the base it ran. The caller has the
// slot.
func (l *Lander) receiptOf(ctx context.Context, res CheckResult) (string, error) {
	if res.Green {
		return muster.ReceiptGreen, nil
	}
	if res.CannotRun {
		return "", nil
	}
	state, err := l.checkState(ctx, "")
	if err == nil && state == "" {
		// Without an answer about the base, red could not be told from still red.
		if _, err = l.classifyBase(ctx); err == nil {
			state, err = l.checkState(ctx, "")
		}
	}
	if err != nil || state != BaseRed {
		return "", err
	}
	return muster.ReceiptStillRed, nil
}
