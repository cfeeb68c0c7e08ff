//go:build linux

package bench

import (
	"slices"
	"testing"
	"time"
)

// rounds is how often a whole program is measured; medians are of so many.
const rounds = 7

// samples are measurements of one thing.
type samples []float64

func (s *samples) add(v float64) { *s = append(*s, v) }

func (s *samples) took(since time.Time) { s.add(ms(time.Since(since))) }

func (s samples) median() float64 {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

// need is must for a call with a value.
func need[T any](v T, err error) func(testing.TB) T {
	return func(tb testing.TB) T {
		tb.Helper()
		must(tb, err)
		return v
	}
}
