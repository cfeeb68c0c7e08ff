package check

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Result is what a check said.
type Result struct {
	Name      string // of one of several checks
	Advisory  bool   // it decides nothing
	Green     bool
	TimedOut  bool    // it did not end in its time
	CannotRun bool    // exit 126 or 127, or the setup failed: no landing could be verified
	How       string  // "exit 1", "exit 127: the command was not found", "it did not end within 10m"
	Command   string  // the check's, or the setup's if that one failed
	Seconds   float64 // how long it took
	Refused   bool    // the check did not fail, but a hook refused what would land
	Log       string  // the path of what it printed
	Failed    string  // the first failure that was found in that, in a line; "": none
	Output    string  // what was found to have failed, and the last lines
	Cached    bool    // it did not run: a receipt says that it is green on this very tree

	// FailedTests are the names of all tests that have failed, in order, where the output tells them. NamesKnown says
	// that it does: without it, nothing follows from a name that is not there.
	FailedTests []string
	NamesKnown  bool
	// died says that the command did not end by itself: it was killed, or took too long. What it has told before is
	// not all that would have failed.
	died    bool
	Stopped bool // after a failure there may be tests that did not run
	// Added is what fails and did not fail on the target, where that is red: tests, or the check that has become red.
	Added []string

	Checks []Result // of each, where there are several; the others of these fields say what they decide together

	Replaced   []string // the variables of the environment that led into another checkout
	RanNone    string   // the line of a green check that says that no test was found; "": none does, or some have run
	Unverified string   // why a green check proves nothing about the merged tree; "": it does
}

// Last is asked in the checkout when the check has run, and may change its result.
type Last func(ctx context.Context, dir string, env []string, res *Result, log io.Writer) error

// Each returns the results of the single checks.
func (x Result) Each() []Result {
	if len(x.Checks) == 0 {
		return []Result{x}
	}
	return x.Checks
}

// Advice returns the results of the advisory checks that are not green.
func (x Result) Advice() (all []Result) {
	for _, c := range x.Checks {
		if c.Advisory && !c.Green {
			all = append(all, c)
		}
	}
	return all
}

// What is said together is what a landing, its owner and the summary need of one check: whether it is green, a line
// with what failed first, and the text with all that has failed, each under the name of its check. The single results
// stay beside it, for those who compare them with what was said before.

// combine returns what several checks decide together: only those that are required count.
func combine(all []Result, names string) Result {
	whole := Result{Green: true, Command: names, How: "exit 0", Cached: true, NamesKnown: true, Checks: all}
	var failed []Result
	for _, x := range all {
		if whole.Cached = whole.Cached && x.Cached; x.Advisory {
			continue
		}
		whole.Log = cmp.Or(whole.Log, x.Log)
		whole.Unverified = cmp.Or(whole.Unverified, x.Unverified)
		whole.Replaced = append(whole.Replaced, x.Replaced...)
		if !x.Green {
			failed = append(failed, x)
		}
	}
	slices.Sort(whole.Replaced)
	whole.Replaced = slices.Compact(whole.Replaced)
	if len(failed) == 0 {
		whole.NamesKnown = false
		return whole
	}
	whole.Green, whole.Cached, whole.Log = false, false, failed[0].Log
	var commands, how, first []string
	for _, x := range failed {
		whole.CannotRun = whole.CannotRun || x.CannotRun
		whole.TimedOut = whole.TimedOut || x.TimedOut
		whole.FailedTests = append(whole.FailedTests, x.FailedTests...)
		whole.NamesKnown = whole.NamesKnown && x.NamesKnown
		whole.Stopped = whole.Stopped || x.Stopped
		commands = append(commands, x.Name+": "+x.Command)
		how = append(how, x.Name+": "+x.How)
		first = append(first, x.Name+": "+cmp.Or(x.Failed, x.How))
		whole.Output += fmt.Sprintf("== %s: %s (%s, %.1f s). Its log: %s\n%s\n", x.Name, x.Command, x.How, x.Seconds,
			x.Log, strings.TrimRight(x.Output, "\n"))
	}
	whole.Command, whole.How, whole.Failed = strings.Join(commands, "; "), how[0], strings.Join(first, "; ")
	if len(failed) > 1 {
		whole.How = strings.Join(how, ", ")
	} else {
		whole.How = failed[0].How
	}
	return whole
}

// isSignal reports whether a shell has ended with the status of a command that a signal has ended. Higher ones are
// those of programs that count their failures there.
func isSignal(exit int) bool { return exit > 128 && exit <= 128+64 }
