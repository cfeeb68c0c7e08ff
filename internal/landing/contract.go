package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/board"
)

// contractsFor returns the published checks that a commit has to pass which would land for a task: those of tasks that
// have landed in its history, and of those that land with it, without those of tasks that were taken back since.
//
// What the commit has is read from git: on the board a task is landing too while another stack is checked, which does
// not have it, and it has landed too when it did so on another target.
func contractsFor(ctx context.Context, l *Lander, commit string, of muster.Task) (active []board.Contract, err error) {
	all, err := board.Contracts(ctx, l.board)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	tasks, err := l.board.List(ctx)
	if err != nil {
		return nil, err
	}
	var failed error
	isIn := func(t muster.Task) bool {
		// A caller that checks a plain tree for a task has no trailer there.
		is, err := t.ID == of.ID, error(nil)
		if !is && failed == nil {
			is, err = hasTask(ctx, l, commit, t)
		}
		failed = cmp.Or(failed, err)
		return is
	}
	for _, c := range all {
		if isIn(c.Task) && !isUndoneIn(tasks, c.Task.ID, isIn) {
			active = append(active, c)
		}
	}
	return active, failed
}

// hasTask reports whether a commit has the work of a task in its history. A task that has landed may still be landing
// on the board, which is told after the target has moved, and after a crash only when somebody goes on with it.
func hasTask(ctx context.Context, l *Lander, commit string, t muster.Task) (bool, error) {
	switch {
	case t.Landed != nil:
		// A target that the user has put back to before the landing does not have what the check is about.
		has, err := l.repo.IsAncestor(ctx, t.Landed.Commit, commit)
		if err == nil || ctx.Err() != nil {
			return has, err
		}
		if _, gone := l.repo.Resolve(ctx, t.Landed.Commit); errors.Is(gone, muster.ErrNotFound) {
			return false, nil // nothing of it can be there
		}
		return false, unavailable(ctx, "git cannot compare commits", err)
	case t.Status != muster.Landing || t.Landing == nil || t.Landing.Onto == "":
		return false, nil
	}
	out, err := l.repo.Run(ctx, l.repo.CommonDir(), "log", "--first-parent",
		"--format=%(trailers:key="+trailerTask+",valueonly)", t.Landing.Onto+".."+commit, "--")
	if err != nil {
		return false, unavailable(ctx, "git cannot read what is to land", err)
	}
	return slices.Contains(strings.Fields(out), strconv.Itoa(int(t.ID))), nil
}

// isUndoneIn reports whether a task that a commit has was taken back by another one that the commit has too: what the
// task has published went with its work. isIn says which tasks the commit has.
func isUndoneIn(tasks []muster.Task, id muster.TaskID, isIn func(muster.Task) bool) bool {
	return slices.ContainsFunc(tasks, func(t muster.Task) bool {
		// A task takes back older ones only, so this ends.
		return t.ID > id && slices.Contains(t.Undoes, id) && isIn(t) && !isUndoneIn(tasks, t.ID, isIn)
	})
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
