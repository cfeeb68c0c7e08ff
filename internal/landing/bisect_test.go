package landing_test

import (
	"testing"
	"time"

	"muster/internal/landing"
)

// cost returns what it takes on average to find the one of n landings that makes the check red.
func cost(n int, green, red float64, split func(int) int) float64 {
	sum := 0.0
	for culprit := 1; culprit <= n; culprit++ {
		for low, high := 0, n; high-low > 1; {
			at := low + split(high-low)
			if at <= low || at >= high {
				panic("it does not look between")
			}
			if at < culprit {
				low, sum = at, sum+green
			} else {
				high, sum = at, sum+red
			}
		}
	}
	return sum / float64(n)
}

// The search costs no more than one that halves, and much less where a red check ends sooner than a green one.
func TestTheSearchFollowsTheTimesOfChecks(t *testing.T) {
	t.Parallel()
	half := func(n int) int { return n / 2 }
	for _, c := range []struct{ green, red, saves float64 }{
		{1, 1, 0}, {2, 1, 0.02}, {8, 1, 0.15}, {1, 8, 0.15}, {1000, 1, 0.3},
	} {
		search := landing.Search(time.Duration(c.green*1e9), time.Duration(c.red*1e9))
		for _, n := range []int{8, 13, 40, 512} {
			ours, halves := cost(n, c.green, c.red, search), cost(n, c.green, c.red, half)
			if ours > halves*(1-c.saves)+1e-9 {
				t.Errorf("%d landings, green %v s, red %v s: %.2f s, and halving takes %.2f s", n, c.green, c.red, ours, halves)
			}
		}
	}
	// Nothing is known before the first check.
	for _, n := range []int{2, 3, 8, 512} {
		if got := landing.Search(0, 0)(n); got != (n+1)/2 && got != n/2 {
			t.Errorf("of %d it looks after %d", n, got)
		}
	}
}
