package landing

import (
	"context"
	"strings"

	"muster"
	"muster/internal/git"
)

// TargetState is where the target is, and where landings left it.
type TargetState struct {
	Branch string `json:"branch"`
	At     string `json:"at,omitempty"`   // "" when it is gone
	Link   string `json:"link,omitempty"` // the branch that it leads to, when it was made symbolic
	Tip    string `json:"tip"`            // where landings left it
}

// State returns where the target is, and changes nothing.
func (l *Lander) State(ctx context.Context) (s TargetState, err error) {
	tip, d, err := l.look(ctx)
	if err != nil || d == nil {
		return TargetState{Branch: l.branch(), At: tip, Tip: tip}, err
	}
	return TargetState{Branch: d.branch, At: d.At, Link: strings.TrimPrefix(d.Link, "refs/heads/"), Tip: d.Tip}, nil
}

// Accept makes a commit the one from which landings go on, because the user says so. The target is moved there if it is
// elsewhere.
func (l *Lander) Accept(ctx context.Context, rev string) (s TargetState, err error) {
	commit, err := l.repo.Resolve(ctx, rev)
	if err != nil {
		return s, err
	}
	at, link, err := l.repo.Branch(ctx, l.options.Target)
	if err != nil {
		return s, err
	}
	set := func(tips ...muster.Tip) error {
		now, err := l.options.Tips(ctx, l.branch(), func([]muster.Tip) []muster.Tip { return tips })
		if err == nil && len(now) == 0 {
			err = muster.Errorf(muster.NotFound, "no run has %s for its target", l.branch())
		}
		return err
	}
	tip, d, err := l.look(ctx)
	if err != nil {
		return s, err
	}
	if d != nil {
		tip = d.Tip
	}
	isElsewhere := at != commit || link != ""
	if isElsewhere {
		if err := refuseUsers(ctx, l); err != nil {
			return s, err
		}
	}
	if commit != tip {
		if _, err := l.checkState(ctx, ForgetBase); err != nil {
			return s, err
		}
	}
	if isElsewhere {
		// Before the move, so that no process takes it for one that nobody asked for. The old place stays a tip, in
		// case this process ends in between.
		if err := set(muster.Tip{Commit: tip}, muster.Tip{Commit: commit, Onto: tip}); err != nil {
			return s, err
		}
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: l.options.Target, New: commit, Old: at}})
		if err != nil {
			return s, err
		}
	}
	return TargetState{Branch: l.branch(), At: commit, Tip: commit}, set(muster.Tip{Commit: commit})
}
