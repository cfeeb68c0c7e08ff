package team

import (
	"context"

	"muster"
	"muster/internal/landing"
)

// TargetState is where the target is, and where landings left it.
type TargetState = landing.TargetState

// Target is the branch on which the work of a team lands.
type Target struct{ o operations }

// Get returns where the target is. It changes nothing.
func (s Target) Get(ctx context.Context) (TargetState, error) {
	_, l, err := s.last(ctx)
	if err != nil {
		return TargetState{}, err
	}
	return l.State(ctx)
}

// Accept makes a commit the one from which landings go on, and moves the target there. It is for a user who has
// moved the target on purpose: landings put back, or wait for, a target that is not where they left it.
func (s Target) Accept(ctx context.Context, commit string) (TargetState, error) {
	if err := s.o.workspace.PrepareChange(ctx); err != nil {
		return TargetState{}, err
	}
	_, l, err := s.last(ctx)
	if err != nil {
		return TargetState{}, err
	}
	return l.Accept(ctx, commit)
}

// last returns the last run and its lander. The error is NotFound when there was none.
func (s Target) last(ctx context.Context) (run muster.Run, l *landing.Lander, err error) {
	if run, err = s.o.lastRun(ctx, "there is no target"); err == nil {
		l, err = s.o.workspace.Lander(ctx)
	}
	return run, l, err
}
