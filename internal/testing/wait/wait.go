// Package wait lets a test wait for a real process. It is the one place where a test may sleep outside a bubble of
// testing/synctest, because the time of a bubble stands still while another process works.
package wait

import (
	"testing"
	"time"
)

const (
	interval = 2 * time.Millisecond // between two looks
	limit    = time.Minute          // after which For fails the test
)

// For returns when cond returns true. It fails the test at once if that takes longer than a minute; what says for
// which state of the process it waited. It must be called from the test's goroutine.
func For(t testing.TB, what string, cond func() bool) {
	t.Helper()
	Within(t, limit, what, cond)
}

// Within is For with a limit of its own. It returns how long the wait took.
func Within(t testing.TB, limit time.Duration, what string, cond func() bool) time.Duration {
	t.Helper()
	took, ok := Poll(limit, cond)
	if !ok {
		t.Fatalf("waited %v in vain: %s", took.Round(time.Millisecond), what)
	}
	return took
}

// Poll calls cond until it returns true or the limit has passed. It returns how long that took, and false if the
// limit has passed. It is for callers that report the failure themselves, and for processes that a test starts.
func Poll(limit time.Duration, cond func() bool) (took time.Duration, ok bool) {
	begin := time.Now()
	for !cond() {
		if took = time.Since(begin); took > limit {
			return took, false
		}
		time.Sleep(interval)
	}
	return time.Since(begin), true
}

// Elapse lets real time pass while a real process works: a measurement needs its duration, and a kill its moment. It
// is no way to wait for a state.
func Elapse(d time.Duration) { time.Sleep(d) }
