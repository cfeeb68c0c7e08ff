package check_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"muster"
	"muster/internal/check"
	"muster/internal/proc"
)

// A check whose log could not be kept is an error and no answer.
func TestHalfALogIsNoAnswer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a.txt": "a\n"})
	r := w.runner("true", func(o *check.Options) {
		o.Launch = func() (proc.Launcher, error) {
			return starter(func(ctx context.Context, s proc.Spec) (proc.Process, error) {
				check.SpoilLog(s.Out)
				l, err := launch()
				if err != nil {
					return nil, err
				}
				return l.Start(ctx, s)
			}), nil
		}
	})
	_, err := r.Run(t.Context(), w.git("rev-parse", "HEAD"), "head", nil)
	if !errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "the check's log cannot be written") {
		t.Error(err)
	}
}
