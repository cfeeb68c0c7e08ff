package storetest

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/tapped"
)

// FailEach calls act again and again. In the first call the first operation on the store fails, in the second one the
// second, and so on until act comes to its end without a failure. act makes a state, wraps its store, works on that and
// returns the error of its work. FailEach fails the test when that is not the error of the store, which has the code
// Unavailable: then the failure was hidden. Only operations for which counts returns true fail. Their names are such as
// "put tasks/1", "get tasks/1", "delete tasks/1", "list tasks", "append events", "read events", "put mail", "peek mail"
// and "drop mail".
func FailEach(
	t *testing.T, counts func(op string) bool, act func(t *testing.T, wrap func(muster.Store) muster.Store) error,
) {
	t.Helper()
	for n := 1; ; n++ {
		f := &failure{counts: counts, left: n}
		err := act(t, func(s muster.Store) muster.Store { return Failing(s, f.fails) })
		switch {
		case f.failed != "" && !errors.Is(err, muster.ErrUnavailable):
			t.Errorf("operation %d, %s, has failed, and the error is: %v", n, f.failed, err)
		case f.failed == "" && (err != nil || n == 1):
			t.Errorf("without a failure there is %v after %d operations", err, n-1)
		}
		if f.failed == "" {
			return
		}
	}
}

// failure says which operation fails.
type failure struct {
	counts func(op string) bool

	mu     sync.Mutex
	left   int    // how many operations there are up to the one that fails
	failed string // that one, once it has come
}

// fails reports whether an operation is the one that fails.
func (f *failure) fails(op string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.counts(op) {
		return false
	}
	if f.left--; f.left != 0 {
		return false
	}
	f.failed = op
	return true
}

// Failing returns a store of which those operations fail for which fails returns true. They have the names that
// FailEach gives them.
func Failing(s muster.Store, fails func(op string) bool) muster.Store {
	return tapped.Store{Store: s, Around: func(o tapped.Operation, do func() error) error {
		if op := nameOf(o); op != "" && fails(op) {
			return muster.Errorf(muster.Unavailable, "the disk is gone")
		}
		return do()
	}}
}

// nameOf returns the name of an operation, "" for one that never fails.
func nameOf(o tapped.Operation) string {
	switch o.Name {
	case "get", "put", "delete", "append", "read":
		return o.Name + " " + o.Key
	case "changes":
		return "list " + strings.TrimSuffix(o.Key, "/")
	case "mail":
		return "put mail"
	case "peek", "drop":
		return o.Name + " mail"
	}
	return ""
}
