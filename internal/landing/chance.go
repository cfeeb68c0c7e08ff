package landing

import (
	"math"
	"sync"

	"muster/internal/check"
)

// chance is what is known of how often the check fails by chance: of how many trees that turned out to be green, and
// how many of them were red at first. It decides how often a red check is run again before a task goes back. The zero
// value knows nothing yet.
type chance struct {
	mu     sync.Mutex
	isRead bool
	greens int // trees
	flaky  int // of them
}

const (
	// minReds is how often a check is red on the same tree before its task goes back, where nothing has ever failed by
	// chance; elsewhere it is at most maxReds.
	minReds, maxReds = 2, 6
	// innocent is how likely it may be that work comes back which a check has failed by chance.
	innocent = 1.0 / 200
)

// sawGreen notes a tree that is green. isFlaky says that it was red before.
func (c *chance) sawGreen(isFlaky bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.greens++
	if isFlaky {
		c.flaky++
	}
}

// mayBe reports whether so many red checks of one tree may be chance, so that one more is worth its time. receipts is
// the directory of what earlier runs have seen.
//
// With k of n green trees red at first, the next one is red by chance with a probability of about (k+1)/(n+2). Where k
// is 0 that is not asked: most checks do not fail by chance, and they may be slow.
func (c *chance) mayBe(reds int, receipts string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isRead && receipts != "" {
		greens, flaky := 0, 0
		for _, x := range check.Receipts(receipts) {
			if x.Green {
				greens++
			}
			if x.Flaky {
				flaky++
			}
		}
		// What this process has seen has receipts too.
		c.isRead, c.greens, c.flaky = true, max(c.greens, greens), max(c.flaky, flaky)
	}
	if reds < minReds || c.flaky == 0 {
		return reds < minReds
	}
	probability := float64(c.flaky+1) / float64(c.greens+2)
	return reds < maxReds && math.Pow(probability, float64(reds)) > innocent
}
