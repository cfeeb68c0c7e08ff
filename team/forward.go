package team

import (
	"context"
	"errors"
	"strings"

	"muster"
	"muster/internal/delivery"
	"muster/internal/landing"
	"muster/internal/text"
	"muster/internal/workspace"
)

// A run lands on the branch that its user has named with --land. Where they have it checked out, a landing would
// change the branch and not the files, and git would show the landed work as undone. So the work lands on the team's
// own branch as it does without --land, and the user's is moved forward to it once, at the end, by their own git.
//
// The order of the steps makes a kill harmless: the record of the run names the branch before the first landing, and
// the branch is moved after the last one and before the end is told. Resume does what is left, and a branch that has
// all of the work already is not moved again.

// Forward is what became of the branch that the user has named for the work and that they have checked out.
type Forward struct {
	Branch string // "": there is none
	At     string // where it is now, if it has all that landed
	Why    string // why it was not moved; "": it was, or had everything
}

// forward is what Target.Merge does, without a merge commit: nobody may be there to look at one.
//
// It moves the user's branch to where the target is. It is done before the end of the run is told, and may be done
// again: what is there already is not moved a second time. A branch that cannot be moved loses nothing, and the summary
// says so.
func (r *teamRun) forward(ctx context.Context, sum *Summary) {
	repo, isGit := r.site.repository.(gitRepository)
	if isGit {
		branch, err := repo.CurrentBranch(ctx)
		sum.Detached = err == nil && branch == ""
	}
	if r.site.into == "" || !isGit || len(sum.Off) > 0 {
		return
	}
	// The branch is looked at once more: the user may have switched, committed or changed files while the team worked.
	sum.Forward.Branch = r.site.into
	at, err := r.site.repository.Resolve(ctx, r.site.target())
	if err == nil {
		var c delivery.Checkout
		if c, err = delivery.OpenClean(ctx, repo.Repo, r.site.into, r.site.branch); err == nil {
			var m delivery.Merged
			m, err = delivery.Merge(ctx, c, r.site.branch, at, true)
			sum.Forward.At = m.At
		}
	}
	if err == nil {
		return
	}
	// It is no error of the run: all that landed is on the target, and muster merge takes it from there.
	sum.Forward.At, sum.Forward.Why = "", muster.PlainText(err)
	if failed, ok := errors.AsType[*muster.Error](err); ok {
		sum.Forward.Why = failed.Message
	}
	sum.Forward.Why = strings.TrimSpace(text.OneLine(sum.Forward.Why))
}

func (r *teamRun) confirmTargets(ctx context.Context) error {
	err := workspace.ConfirmTarget(ctx, r.site.workspace, r.site.config.Name, r.site.branch, r.site.config.Land)
	if err == nil && r.site.into != "" {
		err = workspace.ConfirmTarget(ctx, r.site.workspace, "", r.site.into, r.site.into)
	}
	return err
}

func (r *teamRun) checkTarget(ctx context.Context) error {
	repo, isGit := r.site.repository.(gitRepository)
	if r.site.config.Land == "" || !isGit {
		return nil
	}
	return landing.CheckTarget(ctx, repo.Repo, r.site.config.Land)
}
