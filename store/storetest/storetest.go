// Package storetest is the suite that every store engine passes: each sentence of the contracts in muster's state.go.
//
// An engine's own test is one line:
//
//	storetest.Run(t, func(t *testing.T) func() muster.Store { ... })
package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster"
)

// Open makes an empty state for a test and returns what opens a handle on it. Each handle stands for another process.
type Open func(t *testing.T) func() muster.Store

// Run runs the suite.
func Run(t *testing.T, open func(t *testing.T) func() muster.Store) {
	suites := []struct {
		name  string
		tests []test
	}{
		{"table", tableTests}, {"changes", changesTests}, {"log", logTests},
		{"inbox", inboxTests}, {"leases", leaseTests},
	}
	for _, s := range suites {
		t.Run(s.name, func(t *testing.T) {
			for _, c := range s.tests {
				t.Run(c.name, func(t *testing.T) { c.run(t, handles(t, open)) })
			}
		})
	}
	t.Run("model", func(t *testing.T) { modelTests(t, open) })
}

// test is one sentence of the contracts.
type test struct {
	name string
	run  func(t *testing.T, open func() muster.Store)
}

// handles opens handles that are closed when the test ends.
func handles(t *testing.T, open Open) func() muster.Store {
	another := open(t)
	return func() muster.Store {
		s := another()
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Errorf("closing a handle: %v", err)
			}
		})
		return s
	}
}

// patience is how long a hint may take before a test calls it lost.
const patience = time.Minute

// hinted waits for a hint.
func hinted(t *testing.T, w <-chan struct{}, after string) {
	t.Helper()
	select {
	case _, open := <-w:
		if !open {
			t.Fatalf("the watch ended instead of telling of %s", after)
		}
	case <-time.After(patience):
		t.Fatalf("no hint after %s", after)
	}
}

// ended waits for the end of a watch.
func ended(t *testing.T, w <-chan struct{}) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case _, open := <-w:
			if !open {
				return
			}
		case <-late:
			t.Fatal("the watch goes on after its context has ended")
		}
	}
}

// ok ends the test if a call that must succeed has failed.
func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wants fails the test when err has not the code of want.
func wants(t *testing.T, err error, want *muster.Error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("the error is %v, not %s", err, want.Code)
	}
	var e *muster.Error
	if !errors.As(err, &e) || strings.TrimSpace(e.Message) == "" {
		t.Fatalf("the error %v has no sentence", err)
	}
}

// equal ends the test if two values differ.
func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %v, want %v", what, got, want)
	}
}

// same ends the test if two values differ when they are printed.
func same(t *testing.T, what string, got, want any) {
	t.Helper()
	if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
		t.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}
