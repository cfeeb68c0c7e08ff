package landing_test

import (
	"testing"
	"time"

	"muster/internal/landing"
)

// The search looks in the middle, and higher up where a red check ends sooner than a green one, which is cheaper then.
func TestTheSearchFollowsTheTimesOfChecks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		green, red         time.Duration
		n, lowest, highest int
	}{
		{0, 0, 2, 1, 1}, {0, 0, 40, 20, 20}, {1, 1, 512, 256, 256}, {8, 1, 40, 26, 35}, {1, 8, 40, 5, 14}, {1000, 1, 3, 1, 2}, {1000, 1, 40, 30, 39},
	} {
		if at := landing.Search(c.green, c.red)(c.n); at < c.lowest || at > c.highest {
			t.Errorf("green %d, red %d: of %d it looks after %d", c.green, c.red, c.n, at)
		}
	}
}
