package landing

import (
	"context"

	"muster/internal/check"
)

// TryCheck runs the set-up and the check on a commit as a landing does. It records nothing and moves nothing.
func TryCheck(ctx context.Context, l *Lander, commit string) (CheckResult, error) {
	unlock, err := takeSlot(ctx, l)
	if err != nil {
		return CheckResult{}, err
	}
	defer unlock()
	return l.check(ctx, check.Job{Commit: commit, Name: "trial"}, nil)
}
