//go:build !failpoint

package torture

import (
	"errors"
	"path/filepath"
	"testing"

	"muster"
)

// TestRunNeedsFailpoints checks that a build without failpoints runs no scenario: it would kill fewer processes than it is
// to kill.
func TestRunNeedsFailpoints(t *testing.T) {
	_, err := Run(t.Context(), Config{Dir: filepath.Join(t.TempDir(), "torture")})
	if !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("Run returns %v, want an error of the code %q", err, muster.Unavailable)
	}
}
