package landing

import (
	"math"
	"sync/atomic"
	"time"
)

// checkTimes are how long checks took last. The zero value knows nothing.
type checkTimes struct{ last, green, red atomic.Int64 } // nanoseconds

// note remembers how long a check took.
func (c *checkTimes) note(isGreen bool, took time.Duration) {
	c.last.Store(int64(took))
	if isGreen {
		c.green.Store(int64(took))
	} else {
		c.red.Store(int64(took))
	}
}

// halve returns the half of n, which is 2 or more.
func halve(n int) int { return n / 2 }

// split returns after how many of n landings to look, from 1 to n-1, when the check was green below them and is red
// with all of them. Where a red check ends as late as a green one that is the half. Often it ends much sooner, as when
// the code does not compile: then it is cheaper to look higher up, because most answers are red.
//
// With a share x of the landings below, the answer is red in x of all cases. The time that is left to search falls
// fastest where each answer brings as much for its price: x = exp(-a*red) and 1-x = exp(-a*green) for some a. This is
// how a code for letters of unequal lengths divides what it tells apart.
func (c *checkTimes) split(n int) int {
	green, red := float64(c.green.Load()), float64(c.red.Load())
	ratio := 1.0
	if green > 0 && red > 0 {
		ratio = min(max(green/red, 1.0/maxRatio), maxRatio)
	}
	low, high := 0.0, 1.0 // x lies between
	for range 30 {
		if x := (low + high) / 2; x+math.Pow(x, ratio) > 1 {
			high = x
		} else {
			low = x
		}
	}
	return min(max(1, int(math.Round(float64(n)*low))), n-1)
}

// maxRatio bounds what one measurement, which may be by chance, can do to the search.
const maxRatio = 16
