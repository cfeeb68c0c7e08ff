package landing

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
)

// contractsFor returns the published checks that a commit has to pass which would land for a task: those of tasks that
// have landed in its history, and of those that land with it.
//
// What the commit has is read from git: on the board a task is landing too while another stack is checked, which does
// not have it, and it has landed too when it did so on another target.
func contractsFor(ctx context.Context, l *Lander, commit string, of muster.Task) (active []board.Contract, err error) {
	all, err := board.Contracts(ctx, l.board)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	tip, err := l.resolve(ctx)
	if err != nil {
		return nil, err
	}
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), "log", "--first-parent",
		"--format=%(trailers:key="+trailerTask+",valueonly)", tip+".."+commit, "--")
	if err != nil {
		return nil, unavailable(ctx, "git cannot read what is to land", err)
	}
	// The commit that is checked names its task already. A caller that checks a plain tree for a task has no trailer
	// there, so the task is added.
	landing := append(strings.Fields(out), strconv.Itoa(int(of.ID)))
	for _, c := range all {
		isIn := slices.Contains(landing, strconv.Itoa(int(c.Task.ID)))
		// A target that the user has put back to before the landing does not have what the check is about.
		if c.Task.Landed != nil {
			if isIn, err = l.repo.IsAncestor(ctx, c.Task.Landed.Commit, commit); err != nil {
				isIn = false // the commit is gone: nothing of it can be there
			}
		}
		if isIn {
			active = append(active, c)
		}
	}
	return active, nil
}

// hasContracts reports whether a task has published a check that a landing may have to pass. Where the board cannot be
// read, the check finds that out.
func (l *Lander) hasContracts(ctx context.Context) bool {
	all, err := board.Contracts(ctx, l.board)
	return err != nil || len(all) > 0
}

// The commands run where the run's own check has run, after it, in the same environment, and with what it has built. A
// crash can lose no published check: each is a part of its task's document, and a landing asks the board for them each
// time.

// checkContracts runs the published checks in a checkout in which the run's own check is done. The first that fails
// makes the result one that may not land: it was green when its task landed, so the work that is checked has broken it,
// also where the run's own check was red from the start.
func checkContracts(
	ctx context.Context, l *Lander, all []board.Contract, dir string, env []string, res *CheckResult, log io.Writer,
) error {
	// Where the run's own check has decided already, its failures are what the owner has to read, and not those that
	// follow from them.
	if mayNotLand, err := isRefusedAlready(ctx, l, res); err != nil || mayNotLand {
		return err
	}
	for _, c := range all {
		fmt.Fprintf(log, "[%s]\n", c)
		said, err := l.runner.Command(ctx, dir, env, c.Command, log)
		if err != nil {
			return err
		}
		res.Seconds += said.Seconds
		if !said.Green {
			// A command that cannot run is no excuse either: it could when its task landed. The time is that of all
			// that has run, because people read it as how long the landing was checked.
			said.Seconds, said.Green, said.CannotRun, said.Refused = res.Seconds, false, false, true
			said.Published = c.String()
			*res = said
			return nil
		}
	}
	return nil
}

// brokenText is for an owner whose work breaks a published check.
func brokenText(branch string, res CheckResult) string {
	return fmt.Sprintf("Your work merged with %s breaks a published check (%s, %.1f s): %s.\n"+
		"Each landing has to keep it green. Change your work so that it passes, or ask lead whether it may be "+
		"retired.\n",
		branch, res.How, res.Seconds, strings.TrimSuffix(res.Published, "."))
}
