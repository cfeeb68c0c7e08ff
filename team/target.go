package team

import (
	"context"

	"muster"
	"muster/internal/landing"
	"muster/internal/workspace"
)

// TargetState is where the target is, and where landings left it.
type TargetState = landing.TargetState

// Target is the branch on which the work of a team lands.
type Target struct{ t *Team }

// TargetOf returns the target of a team's last run.
func TargetOf(t *Team) Target { return Target{t} }

// Get returns where the target is. It changes nothing.
func (s Target) Get(ctx context.Context) (TargetState, error) {
	l, err := lastLander(ctx, s.t.services())
	if err != nil {
		return TargetState{}, err
	}
	return l.State(ctx)
}

// Accept makes a commit the one from which landings go on, and moves the target there. It is for a user who has
// moved the target on purpose: landings put back, or wait for, a target that is not where they left it.
func (s Target) Accept(ctx context.Context, commit string) (TargetState, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return TargetState{}, err
	}
	l, err := lastLander(ctx, w)
	if err != nil {
		return TargetState{}, err
	}
	return l.Accept(ctx, commit)
}

// lastLander returns the lander of the last run. The error is NotFound when there was none.
func lastLander(ctx context.Context, w *workspace.Workspace) (*landing.Lander, error) {
	run, err := w.Runs().Look(ctx)
	if err == nil && run.Target == "" {
		err = muster.Errorf(muster.NotFound, "there was no run here, so there is no target").
			WithHint(`start one: muster run "GOAL"`)
	}
	if err != nil {
		return nil, err
	}
	return w.Lander(ctx)
}
