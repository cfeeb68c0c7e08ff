package git_test

import (
	"testing"
	"time"

	"muster/internal/git"
	"muster/internal/testing/gittest"
)

// A living git holds its lock for an instant, and a clock may make that lock look old. UpdateRefs breaks no lock that it
// has not watched for a second.
func TestNoLockIsBrokenInItsFirstSecond(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, nil)
	r := open(t, root)
	head, err := r.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	plant(t, root, "refs/heads/x.lock", time.Hour)
	start := time.Now()
	if err := r.UpdateRefs(t.Context(), []git.RefUpdate{{Ref: "refs/heads/x", New: head}}); err != nil {
		t.Fatal(err)
	}
	if waited := time.Since(start); waited < time.Second {
		t.Errorf("the lock was broken after %v", waited)
	}
}
