package landing

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/lazyregexp"
	"muster/internal/text"
	"muster/journal"
)

// targetTip is what the checks ask of the guard.
type targetTip interface {
	tip(context.Context) (string, error)
}

// checker runs the check, and judges what it says by what is known of the target. It is safe for concurrent use.
type checker struct {
	repo    *git.Repo
	records *records
	target  targetTip
	runner  *check.Runner
	options *Options

	slot    chan struct{}          // holds one token: its holder runs checks, and no other in this process lands
	told    sync.Map               // what holds for all landings, of which people were told
	checked atomic.Pointer[string] // the tip on which the check ran last
}

// run runs setup and check on a commit's files. An error means that there is no answer. Where the commit would land for
// a task, Options.Hook is asked last.
func (c *checker) run(ctx context.Context, of check.Job, lands *muster.Task) (CheckResult, error) {
	res, err := c.runner.Run(ctx, of, c.askHook(lands))
	if err != nil {
		return res, err
	}
	return res, c.tellOnce(ctx, res)
}

// tellOnce tells people what they would not learn from a landing that succeeds: each thing once, because it holds for
// all landings until somebody mends it.
func (c *checker) tellOnce(ctx context.Context, res CheckResult) error {
	var notes []map[string]any
	if res.Green && res.Unverified != "" {
		notes = append(notes, map[string]any{"text": "the check proves nothing: " + res.Unverified,
			"unverified": res.Unverified})
	}
	for _, of := range res.Each() {
		if of.RanNone != "" && of.Green {
			said := fmt.Sprintf("%s is green and has run no test: %q", nameOfCheck(of), of.RanNone)
			notes = append(notes, map[string]any{"text": said, "ran_none": of.RanNone})
		}
		if of.How == check.NoFiles {
			notes = append(notes, map[string]any{"text": nameOfCheck(of) + " proves nothing: " + of.How})
		}
	}
	for _, of := range res.Advice() {
		notes = append(notes, map[string]any{"text": fmt.Sprintf(
			"the advisory check %s is red, and work lands all the same: %s", of.Name, cmp.Or(of.Failed, of.How))})
	}
	for _, fields := range notes {
		if _, isTold := c.told.LoadOrStore(fields["text"], true); !isTold {
			if err := c.records.journal.Emit(ctx, muster.Event{Kind: journal.RunNote, Fields: fields}); err != nil {
				return err
			}
		}
	}
	return nil
}

// nameOfCheck returns what people call a check.
func nameOfCheck(of CheckResult) string {
	if of.Name == "" {
		return "the check"
	}
	return "the check " + of.Name
}

// askHook returns what asks Options.Hook, after the check, about a commit that may land for a task as far as the check
// is concerned. It is nil where there is no hook, and where nothing would land.
func (c *checker) askHook(lands *muster.Task) check.Last {
	if lands == nil || c.options.Hook == nil {
		return nil
	}
	return func(ctx context.Context, dir string, env []string, res *CheckResult, log io.Writer) error {
		if !res.Green { // the run's own check may have decided already that the work may not land
			state, err := c.records.base(ctx, "")
			if err != nil || res.CannotRun || state == BaseGreen {
				return err
			}
		}
		began := time.Now()
		refused, err := c.options.Hook(ctx, *lands, dir, env)
		if err != nil || refused == "" {
			return err
		}
		fmt.Fprintf(log, "[a Landing hook refused it]\n%s\n", refused)
		*res = CheckResult{Refused: true, Command: "Landing hook", How: "refused", Seconds: time.Since(began).Seconds()}
		return nil
	}
}

func (c *checker) base(ctx context.Context) (res CheckResult, err error) {
	if c.options.Check.Command == "" {
		return res, nil
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return res, err
	}
	defer unlock()
	return c.classifyBase(ctx)
}

// classifyBase is base for a caller that has the slot.
func (c *checker) classifyBase(ctx context.Context) (res CheckResult, err error) {
	tip, err := c.target.tip(ctx)
	if err != nil {
		return res, err
	}
	res, err = c.run(ctx, check.Job{Commit: tip, Name: "base"}, nil)
	switch {
	case err != nil, res.Green && res.Unverified != "":
	case res.Green:
		_, err = c.records.base(ctx, BaseGreen)
	case !res.CannotRun:
		_, err = c.records.base(ctx, BaseRed)
	}
	if err == nil {
		c.checked.Store(&tip)
	}
	return res, err
}

// isChecked reports whether the check has said something of the target at the commit: a landing brought it there, it is
// the base of the run, or this process has run the check on it. Without a check there is nothing to know.
func (c *checker) isChecked(ctx context.Context, at string) (bool, error) {
	if seen := c.checked.Load(); c.options.Check.Command == "" || seen != nil && *seen == at {
		return true, nil
	}
	if landed, err := c.records.landed(ctx); err != nil || landed[at] {
		return err == nil, err
	}
	if c.options.Tips == nil {
		return false, nil
	}
	tips, err := c.options.Tips(ctx, c.options.branch(), nil)
	if err != nil || len(tips) == 0 || tips[0] != (muster.Tip{Commit: at}) {
		return false, err
	}
	state, err := c.records.base(ctx, "")
	return state != "", err
}

// checkTip runs the check on the target as it is, for work of which the target has everything already, unless the check
// has said something of that commit before. isRed reports whether the task is to be returned, as for any other landing.
func (q *queue) checkTip(ctx context.Context, w *work, tip string) (res CheckResult, isRed bool, err error) {
	c := q.checks
	if isKnown, err := c.isChecked(ctx, tip); err != nil || isKnown {
		return res, false, err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return res, false, err
	}
	defer unlock()
	if res, err = c.run(ctx, w.checkOf(tip), nil); err != nil {
		return res, false, err
	}
	receipt, err := c.receiptOf(ctx, tip, &res)
	if err == nil && receipt != "" {
		c.checked.Store(&tip)
	}
	return res, receipt == "", err
}

func (c *checker) moved(ctx context.Context) (res CheckResult, isRun bool, err error) {
	at, _, err := c.repo.Branch(ctx, c.options.Target)
	if err != nil || at == "" {
		return res, false, err
	}
	if isKnown, err := c.isChecked(ctx, at); err != nil || isKnown {
		return res, false, err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return res, false, err
	}
	defer unlock()
	if res, err = c.run(ctx, check.Job{Commit: at, Name: "target"}, nil); err == nil {
		c.checked.Store(&at)
	}
	return res, true, err
}

// receiptOf returns the receipt that a check's result earns for work on a tip, "" when the work may not land. A red
// result is accepted only while the base is known to be red, and if nothing fails that did not fail on the tip: else
// the result says what that is. A check that cannot run is never accepted: on the base it ran. The caller has the slot.
func (c *checker) receiptOf(ctx context.Context, tip string, res *CheckResult) (string, error) {
	if res.Green && res.Unverified != "" {
		return muster.ReceiptUnchecked, nil
	}
	if res.Green {
		return muster.ReceiptGreen, nil
	}
	if res.CannotRun {
		return "", nil
	}
	state, err := c.records.base(ctx, "")
	if err == nil && state == "" {
		// Without an answer about the base, red could not be told from still red.
		if _, err = c.classifyBase(ctx); err == nil {
			state, err = c.records.base(ctx, "")
		}
	}
	if err != nil || state != BaseRed {
		return "", err
	}
	if isGreen, err := c.isGreenUnrecorded(ctx); err != nil || isGreen {
		return "", cmp.Or(err, c.records.noteGreen(ctx))
	}
	if res.Added, err = c.addedFailures(ctx, tip, *res); err != nil {
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
func (c *checker) isGreenUnrecorded(ctx context.Context) (bool, error) {
	tip, err := c.target.tip(ctx)
	if err != nil {
		return false, err
	}
	if c.options.Tips != nil {
		tips, err := c.options.Tips(ctx, c.options.branch(), nil)
		if err != nil || len(tips) > 0 && tips[0].Commit == tip {
			return false, err
		}
	}
	out, err := c.repo.Run(ctx, c.repo.CommonDir(), "log", "-1", "--format=%B", "--end-of-options", tip)
	if err != nil {
		return false, unavailable(ctx, "git cannot read the target", err)
	}
	_, landed, ok := Trailers(out)
	return ok && landed.Receipt == muster.ReceiptGreen && landed.Check == text.OneLine(c.options.Check.Command), nil
}

func (c *checker) lock(ctx context.Context) (unlock func(), err error) { return lock(ctx, c.slot) }

// lock puts a token into the channel, which holds one: a mutex for which ctx ends the wait.
func lock(ctx context.Context, c chan struct{}) (unlock func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (c *checker) try(ctx context.Context, commit string) (CheckResult, error) {
	unlock, err := c.lock(ctx)
	if err != nil {
		return CheckResult{}, err
	}
	defer unlock()
	return c.run(ctx, check.Job{Commit: commit, Name: "trial"}, nil)
}

// While the base is red, work lands although its check is red, because it may not be to blame. It is to blame for what
// fails on it and does not fail on the tip. So the result is compared with what the check has said of the tip: each of
// several checks by itself, and test by test where the output names them all. Where it did not name them for the tip,
// nothing can be compared, and the work lands.

// addedFailures returns what fails in the result of a check and did not fail on the tip. The caller has the slot.
func (c *checker) addedFailures(ctx context.Context, tip string, res CheckResult) (added []string, err error) {
	if c.options.Receipts == "" {
		return nil, nil
	}
	said, err := c.runner.Said(ctx, tip)
	isMissing := func(now CheckResult) bool {
		_, ok := said[now.Name]
		return !ok && !now.Advisory && !now.Green
	}
	if err == nil && slices.ContainsFunc(res.Each(), isMissing) {
		// The environment may be another one than that of the process that has checked the tip.
		if _, err = c.classifyBase(ctx); err == nil {
			said, err = c.runner.Said(ctx, tip)
		}
	}
	if err != nil {
		return nil, err
	}
	for _, now := range res.Each() {
		was, ok := said[now.Name]
		switch {
		case now.Advisory || now.Green || !ok:
		case was.Green:
			added = append(added, cmp.Or(now.Name, "the check"))
		case was.NamesKnown && !now.NamesKnown:
			// Something else than a test has failed: nothing was built, or the tests have ended before their time.
			added = append(added, "more than a test: "+cmp.Or(now.Failed, now.How))
		case was.NamesKnown:
			added = append(added, addedTests(was, now)...)
		}
	}
	return added, nil
}

// addedTests returns the tests that fail in a result and did not fail on the tip. A part of a test that failed there as
// a whole is left out.
func addedTests(was check.Receipt, now CheckResult) (added []string) {
	// Where a failure ends a check, the tests that come later have not run on the tip. They are told from those that
	// the work has broken by where they are: what is beside a test that failed did run.
	stillFails := func(old string) bool { return slices.Contains(now.FailedTests, old) }
	runsMore := was.Stopped || strings.Contains(now.Command, "&&")
	runsMore = runsMore && !slices.ContainsFunc(was.FailedTests, stillFails)
	for _, name := range now.FailedTests {
		isOld := func(old string) bool { return name == old || strings.HasPrefix(name, old+"/") }
		isBeside := func(old string) bool { return testScope(name) == testScope(old) }
		if slices.ContainsFunc(was.FailedTests, isOld) || runsMore && !slices.ContainsFunc(was.FailedTests, isBeside) {
			continue
		}
		added = append(added, name)
	}
	return added
}

// testName finds where a test is by its name: the package, file or program.
var testName = lazyregexp.New(`^(?:(.*)\.(?:Test|Example|Fuzz|Benchmark)[^.]*(?:/.*)?|(\S+?)::.*|(\S+) .*)$`)

// testScope returns where a test is, "" where its name does not say that.
func testScope(name string) string {
	if m := testName().FindStringSubmatch(name); m != nil {
		return m[1] + m[2] + m[3]
	}
	return ""
}
