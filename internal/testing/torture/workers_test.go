package torture

import (
	"errors"
	"strings"
	"testing"

	"muster"
)

// TestTooFewIsSaid: workers that did its work before it was killed and stopped often enough has proven nothing.
func TestCheckAmounts(t *testing.T) {
	for _, c := range []struct {
		points, outside, stops int
		short                  bool
	}{{2, 3, 4, false}, {0, 7, 9, false}, {2, 2, 4, true}, {2, 3, 3, true}, {0, 0, 0, true}} {
		workers := &workers{chaos: chaos{kills: 5, stops: 4}, points: c.points, outside: c.outside, stops: c.stops}
		err := workers.checkAmounts()
		if (err != nil) != c.short || c.short && (!errors.Is(err, muster.ErrUnavailable) || !strings.Contains(err.Error(), "of 5 kills")) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
