package board

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// What each verb makes of each status when it is done by the holder of the fence, written down as a table beside the
// functions that do it. A verb that is not there is refused.
var moves = map[string]map[muster.TaskStatus]muster.TaskStatus{
	"claim":         {muster.Pending: muster.InProgress},
	"release":       {muster.InProgress: muster.Pending, muster.Landing: muster.Pending},
	"revoke":        {muster.InProgress: muster.Pending, muster.Landing: muster.Pending},
	"land":          {muster.InProgress: muster.Landing, muster.Landing: muster.Landing},
	"return":        {muster.Landing: muster.InProgress},
	"complete":      {muster.InProgress: muster.Completed, muster.Landing: muster.Completed},
	"finish":        {muster.Pending: muster.Completed, muster.InProgress: muster.Completed, muster.NeedsAttention: muster.Completed},
	"acceptForeign": {},
	"retry":         {muster.Pending: muster.Pending, muster.NeedsAttention: muster.Pending},
}

// third are the verbs that give a task up when it was the third time.
var third = map[string]bool{"release": true, "return": true}

func TestStatusFollowsTheTable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		task := muster.Task{ID: 1, Status: muster.Pending}
		at := 1714567890.0
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			at++
			verb := rapid.SampledFrom([]string{"claim", "claim", "release", "revoke", "land", "land", "return", "complete", "finish", "acceptForeign", "retry"}).Draw(r, "verb")
			fence := task.Fence - rapid.SampledFrom([]int{0, 0, 0, 0, 1}).Draw(r, "late by")
			was := task
			err := map[string]func() error{
				"claim":         func() error { return claim(&task, Claim{Owner: "alice"}, at) },
				"release":       func() error { return release(&task, fence, Release{Counts: true, Reason: "r"}, at) },
				"revoke":        func() error { return revoke(&task, fence, at) },
				"land":          func() error { return beginLanding(&task, fence, muster.PendingLanding{Head: "h"}, at) },
				"return":        func() error { return returnToOwner(&task, fence, "check", Details{}, at) },
				"complete":      func() error { return complete(&task, fence, Outcome{}, at) },
				"finish":        func() error { return finish(&task, Outcome{By: muster.User}, at) },
				"acceptForeign": func() error { return acceptForeign(&task, at) },
				"retry":         func() error { return retry(&task, at) },
			}[verb]()
			fenced := verb == "release" || verb == "revoke" || verb == "land" || verb == "return" || verb == "complete"
			to, may := moves[verb][was.Status]
			may = may && (!fenced || fence == was.Fence)
			switch {
			case errors.Is(err, errNoChange):
				if task.Status != was.Status || task.Fence != was.Fence || may {
					r.Fatalf("%s of %s said that nothing changes: %+v", verb, was.Status, task)
				}
			case err != nil:
				var e *muster.Error
				if !errors.As(err, &e) || may {
					r.Fatalf("%s of %s at fence %d of %d: %v", verb, was.Status, fence, was.Fence, err)
				}
				if fenced && fence != was.Fence && e.Code != muster.Fenced {
					r.Fatalf("%s of %s, late: %v", verb, was.Status, err)
				}
				if task.Status != was.Status || task.Fence != was.Fence || task.Owner != was.Owner {
					r.Fatalf("%s was refused and changed %+v to %+v", verb, was, task)
				}
			case !may:
				r.Fatalf("%s of %s at fence %d of %d passed", verb, was.Status, fence, was.Fence)
			case third[verb] && task.Status == muster.NeedsAttention:
				if was.Attempts+1 < maxAttempts && was.Returns+1 < maxReturns || task.Fence != was.Fence+1 || task.Result == "" {
					r.Fatalf("%s gave up %+v: %+v", verb, was, task)
				}
			case task.Status != to:
				r.Fatalf("%s of %s made %s, not %s", verb, was.Status, task.Status, to)
			case task.UpdatedAt != at:
				r.Fatalf("%s did not say when", verb)
			}
			if verb == "claim" && err == nil && task.Fence != was.Fence+1 {
				r.Fatalf("a claim left the fence at %d", task.Fence)
			}
			if task.Attempts >= maxAttempts && task.Status == muster.Pending {
				r.Fatalf("given back %d times and still pending", task.Attempts)
			}
			if held := task.Status == muster.InProgress || task.Status == muster.Landing; held && task.Owner == "" || !held && task.Status != muster.Completed && task.Owner != "" {
				r.Fatalf("%s is %q's", task.Status, task.Owner)
			}
			tells := task.Status == muster.Completed || task.Status == muster.NeedsAttention
			if tells != (len(task.Effects) > 0) || (task.Status == muster.Landing) != (task.Landing != nil) {
				r.Fatalf("%+v", task)
			}
		}
	})
}
