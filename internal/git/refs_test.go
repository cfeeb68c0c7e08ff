package git_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"muster"
	"muster/internal/git"
	"muster/internal/testing/gittest"
)

func TestUpdateRefs(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	ctx := t.Context()
	one, _ := r.Head(ctx)
	tree, err := r.Tree(ctx, one)
	check(t, err)
	two, err := r.CommitTree(ctx, tree, []string{one}, "two")
	check(t, err)
	do := func(want *muster.Error, u ...git.RefUpdate) {
		t.Helper()
		err := r.UpdateRefs(ctx, u)
		if want == nil && err != nil || want != nil && !errors.Is(err, want) {
			t.Fatalf("%v: %v", u, err)
		}
	}
	is := func(ref, want string) {
		t.Helper()
		returns(t, want)(r.Ref(ctx, ref))
	}
	const target, fence = "refs/heads/muster/demo", "refs/muster/landing/1-1"
	do(nil, git.RefUpdate{Ref: target, New: one}, git.RefUpdate{Ref: fence, New: two})
	is(target, one)
	// The landing: all or nothing.
	do(nil, git.RefUpdate{Ref: target, New: two, Old: one}, git.RefUpdate{Ref: fence, Old: two})
	is(target, two)
	is(fence, "")
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one, Old: two}, git.RefUpdate{Ref: fence, Old: two})
	is(target, two)
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one, Old: one})                  // verify
	do(muster.ErrStale, git.RefUpdate{Ref: target, New: one})                            // create
	do(muster.ErrStale, git.RefUpdate{Ref: target}, git.RefUpdate{Ref: fence, New: one}) // must not exist
	is(fence, "")
	do(nil, git.RefUpdate{Ref: fence}, git.RefUpdate{Ref: fence + "0", New: one})
	do(muster.ErrHeld, git.RefUpdate{Ref: target + "/below", New: one})
	do(muster.ErrHeld, git.RefUpdate{Ref: "refs/heads/muster", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: "HEAD", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: "refs/heads/a b", New: one})
	do(muster.ErrInvalid, git.RefUpdate{Ref: target, New: "main", Old: two})
	do(nil, git.RefUpdate{Ref: target, Old: two})
	is(target, "")
}

// Many writers count on one ref: no step is lost, and whoever was too late is told so.
func TestUpdateRefsIsCompareAndSet(t *testing.T) {
	root := gittest.Repo(t, nil)
	r := open(t, root)
	ctx := t.Context()
	head, _ := r.Head(ctx)
	tree, _ := r.Tree(ctx, head)
	const ref = "refs/heads/count"
	check(t, r.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: head}}))
	var wg sync.WaitGroup
	var stale atomic.Int32
	for range 4 {
		wg.Go(func() {
			for done := 0; done < 5; {
				old, err := r.Ref(ctx, ref)
				if err != nil {
					t.Error(err)
					return
				}
				next, err := r.CommitTree(ctx, tree, []string{old}, "step")
				if err != nil {
					t.Error(err)
					return
				}
				switch err := r.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: next, Old: old}}); {
				case err == nil:
					done++
				case errors.Is(err, muster.ErrStale):
					stale.Add(1)
				default:
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := gittest.Git(t, root, "rev-list", "--count", head+".."+ref); n > "20" || n == "" {
		t.Errorf("%s steps, %d were stale", n, stale.Load())
	}
}
