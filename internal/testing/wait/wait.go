// Package wait lets a test wait for a real process. It is the one place where a test may sleep outside a bubble of
// testing/synctest, because the time of a bubble stands still while another process works.
package wait

import (
	"testing"
	"time"
)

const (
	interval = 5 * time.Millisecond // between two looks
	limit    = 30 * time.Second     // after which the test fails
)

// For returns when cond returns true. It fails the test at once if that takes longer than 30 seconds; what says for
// which state of the process it waited. It must be called from the test's goroutine.
func For(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !cond(); time.Sleep(interval) {
		if time.Now().After(end) {
			t.Fatalf("waited %v in vain: %s", limit, what)
		}
	}
}
