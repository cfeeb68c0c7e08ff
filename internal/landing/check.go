package landing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"muster"
	"muster/internal/check"
	"muster/internal/text"
	"muster/journal"
)

// check runs setup and check on a commit's files. An error means that there is no answer. Where the commit would land
// for a task, Options.Hook is asked last.
func (l *Lander) check(ctx context.Context, of check.Job, lands *muster.Task) (CheckResult, error) {
	res, err := l.runner.Run(ctx, of, askHook(l, lands))
	if err != nil {
		return res, err
	}
	return res, l.tellOnce(ctx, res)
}

// tellOnce tells people what they would not learn from a landing that succeeds: each thing once, because it holds for
// all landings until somebody mends it.
func (l *Lander) tellOnce(ctx context.Context, res CheckResult) error {
	var notes []map[string]any
	if res.Green && res.Unverified != "" {
		notes = append(notes, map[string]any{"text": "the check proves nothing: " + res.Unverified,
			"unverified": res.Unverified})
	}
	for _, c := range res.Checks {
		if c.How == check.NoFiles {
			notes = append(notes, map[string]any{"text": "the check " + c.Name + " proves nothing: " + c.How})
		}
	}
	for _, c := range res.Advice() {
		notes = append(notes, map[string]any{"text": fmt.Sprintf(
			"the advisory check %s is red, and work lands all the same: %s", c.Name, cmp.Or(c.Failed, c.How))})
	}
	for _, fields := range notes {
		if _, isTold := l.told.LoadOrStore(fields["text"], true); !isTold {
			if err := l.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: fields}); err != nil {
				return err
			}
		}
	}
	return nil
}

// askHook returns what asks Options.Hook, after the check, about a commit that may land for a task as far as the check
// is concerned. It is nil where there is no hook, and where nothing would land.
func askHook(l *Lander, of *muster.Task) check.Last {
	if of == nil || l.options.Hook == nil {
		return nil
	}
	return func(ctx context.Context, dir string, env []string, res *CheckResult, log io.Writer) error {
		if mayNotLand, err := isRefusedAlready(ctx, l, res); err != nil || mayNotLand {
			return err
		}
		began := time.Now()
		refused, err := l.options.Hook(ctx, *of, dir, env)
		if err != nil || refused == "" {
			return err
		}
		fmt.Fprintf(log, "[a Landing hook refused it]\n%s\n", refused)
		*res = CheckResult{Refused: true, Command: "Landing hook", How: "refused", Seconds: time.Since(began).Seconds()}
		return nil
	}
}

// isRefusedAlready reports whether the run's own check has decided that the work may not land.
func isRefusedAlready(ctx context.Context, l *Lander, res *CheckResult) (bool, error) {
	if res.Green {
		return false, nil
	}
	state, err := l.checkState(ctx, "")
	return res.CannotRun || state == BaseGreen, err
}

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
	res, err = l.check(ctx, check.Job{Commit: tip, Name: "base"}, nil)
	switch {
	case err != nil, res.Green && res.Unverified != "":
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
	if res, err = l.check(ctx, check.Job{Commit: at, Name: "target"}, nil); err == nil {
		l.checked.Store(&at)
	}
	return res, true, err
}

// receiptOf returns the receipt that a check's result earns for work on a tip, "" when the work may not land. A red
// result is accepted only while the base is known to be red, and if nothing fails that did not fail on the tip: else
// the result says what that is. A check that cannot run is never accepted: on the base it ran. The caller has the slot.
func (l *Lander) receiptOf(ctx context.Context, tip string, res *CheckResult) (string, error) {
	if res.Green && res.Unverified != "" {
		return muster.ReceiptUnchecked, nil
	}
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
	if isGreen, err := isGreenUnrecorded(ctx, l); err != nil || isGreen {
		return "", cmp.Or(err, l.noteGreen(ctx))
	}
	if res.Added, err = addedFailures(ctx, l, tip, *res); err != nil {
		return "", err
	}
	if len(res.Added) > 0 {
		res.Failed = text.List(res.Added, 3)
		return "", nil
	}
	return muster.ReceiptStillRed, nil
}

// isGreenUnrecorded reports whether a landing of this run has turned a red target green, and a crash has kept that from
// being recorded: then red is no longer what the target was. It is the target's commit that says so, unless the target
// was at it when the run began: then the check was asked about it since, and may have another environment.
func isGreenUnrecorded(ctx context.Context, l *Lander) (bool, error) {
	tip, err := l.Target(ctx)
	if err != nil {
		return false, err
	}
	if l.options.Tips != nil {
		tips, err := l.options.Tips(ctx, l.branch(), nil)
		if err != nil || len(tips) > 0 && tips[0].Commit == tip {
			return false, err
		}
	}
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", tip)
	if err != nil {
		return false, unavailable(ctx, "git cannot read the target", err)
	}
	_, landed, ok := Trailers(strings.TrimRight(out, "\n") + "\n")
	return ok && landed.Receipt == muster.ReceiptGreen && landed.Check == text.OneLine(l.options.Check.Command), nil
}

// takeSlot waits until no other landing or check of this process is under way.
func takeSlot(ctx context.Context, l *Lander) (unlock func(), err error) {
	return lock(ctx, l.slot)
}

// lock puts a token into the channel, which holds one: a mutex for which ctx ends the wait.
func lock(ctx context.Context, c chan struct{}) (unlock func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// TryCheck runs the set-up and the check on a commit as a landing does. It records nothing and moves nothing.
func TryCheck(ctx context.Context, l *Lander, commit string) (CheckResult, error) {
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return CheckResult{}, err
	}
	defer unlock()
	return l.check(ctx, check.Job{Commit: commit, Name: "trial"}, nil)
}
