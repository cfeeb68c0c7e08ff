package board

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/anishathalye/porcupine"

	"muster"
	"muster/internal/testing/tier"
	"muster/journal"
)

var linearSeed = flag.Uint64("linear.seed", 0, "run this seed of the linearizability test alone")

const (
	linearTasks   = 3
	linearWorkers = 4
	linearSteps   = 9
)

// linearInput is a step that a worker takes, and linearOutput is its result: the task as it was returned, or a refusal.
type linearInput struct {
	op       string
	id       muster.TaskID
	who      muster.Name
	fence    int
	priority int
}

type linearOutput struct {
	state linearState
	code  muster.Code
}

// linearState is what the sequential board knows of a task.
type linearState struct {
	status   muster.TaskStatus
	owner    muster.Name
	fence    int
	attempts int
	returns  int
	priority int
}

// next is the sequential board, written apart from the real one: what a step makes of a task, or the code of its refusal.
func (s linearState) next(in linearInput) (linearState, muster.Code) {
	isHeld := s.status == muster.InProgress || s.status == muster.Landing
	isMine := isHeld && s.fence == in.fence
	switch in.op {
	case "claim":
		switch {
		case isHeld:
			return s, muster.Held
		case s.status != muster.Pending:
			return s, muster.Invalid
		}
		s.status, s.owner, s.fence = muster.InProgress, in.who, s.fence+1
	case "land":
		if !isMine {
			return s, muster.Fenced
		}
		s.status = muster.Landing
	case "return":
		switch {
		case !isMine:
			return s, muster.Fenced
		case s.status != muster.Landing:
			return s, muster.Invalid
		}
		s.status = muster.InProgress
		if s.returns++; s.returns >= maxReturns {
			s.status, s.owner, s.fence = muster.NeedsAttention, "", s.fence+1
		}
	case "complete":
		if s.status == muster.Completed && s.fence == in.fence {
			return s, ""
		}
		if !isMine {
			return s, muster.Fenced
		}
		s.status, s.returns = muster.Completed, 0
	case "finish":
		switch {
		case s.status == muster.Completed:
			return s, ""
		case s.status == muster.Landing:
			return s, muster.Held
		case s.owner != in.who:
			s.fence++
		}
		s.status, s.returns = muster.Completed, 0
	case "release", "giveup":
		if s.status == muster.Pending && s.fence == in.fence && in.fence > 0 {
			return s, ""
		}
		if !isMine {
			return s, muster.Fenced
		}
		s.status, s.owner = muster.Pending, ""
		if in.op == "giveup" {
			if s.attempts++; s.attempts >= maxAttempts {
				s.status, s.fence = muster.NeedsAttention, s.fence+1
			}
		}
	case "revoke":
		switch {
		case s.fence != in.fence:
			return s, muster.Fenced
		case !isHeld:
			return s, muster.Invalid
		}
		s.status, s.owner, s.fence = muster.Pending, "", s.fence+1
	case "update":
		if s.status == muster.Completed {
			return s, muster.Invalid
		}
		s.priority = in.priority
	case "retry":
		switch {
		case isHeld:
			return s, muster.Held
		case s.status == muster.Completed:
			return s, muster.Invalid
		}
		s.status, s.attempts, s.returns = muster.Pending, 0, 0
	}
	return s, ""
}

// linearModel takes every task by itself.
var linearModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		parts := make([][]porcupine.Operation, linearTasks)
		for _, o := range history {
			i := o.Input.(linearInput).id - 1
			parts[i] = append(parts[i], o)
		}
		return parts
	},
	Init: func() any { return linearState{status: muster.Pending} },
	Step: func(state, input, output any) (bool, any) {
		in, out := input.(linearInput), output.(linearOutput)
		to, code := state.(linearState).next(in)
		isReturned := in.op != "release" && in.op != "giveup" // those return the task once all that follows was settled
		return code == out.code && (code != "" || !isReturned || out.state == to), to
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// What several processes do to tasks at once looks as if it had been done one after the other: histories of every step
// that a claim can take are explained by a sequential board. In memory a seed decides all that happens, since no two
// pauses end at one moment of the bubble's clock; on files the scheduler has its say too.
func TestClaimsAreLinearizable(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			for seed := uint64(1); seed <= uint64(tier.Amount(40, 100)); seed++ {
				if *linearSeed != 0 && seed != *linearSeed {
					continue
				}
				h := &history{t: t}
				if name == "mem" {
					h.pause = func(r *rand.Rand) { time.Sleep(time.Duration(1 + r.Int64N(int64(time.Second)))) }
					synctest.Test(t, func(t *testing.T) { h.record(open(t), seed) })
				} else {
					h.pause = func(r *rand.Rand) {
						for range r.IntN(20) {
							runtime.Gosched()
						}
					}
					h.record(open(t), seed)
				}
				if got := porcupine.CheckOperationsTimeout(linearModel, h.ops, time.Minute); got != porcupine.Ok {
					t.Fatalf("the history is %s; again: -run 'TestClaimsAreLinearizable/%s' -linear.seed=%d%s", got, name, seed, h)
				}
			}
		})
	}
}

// history is what the workers saw.
type history struct {
	t     *testing.T
	clock atomic.Int64
	pause func(*rand.Rand)

	mu  sync.Mutex
	ops []porcupine.Operation
}

// record lets a few processes loose on a few tasks. They pause before every operation on a document.
func (h *history) record(open func() muster.Store, seed uint64) {
	w := newWorld(h.t, open)
	for range linearTasks {
		w.add(w.board(), "wanted")
	}
	var all sync.WaitGroup
	for i := range linearWorkers {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		s := interrupted{open(), func(string, string) { h.pause(r) }}
		b := New(s, journal.New(s.Log()))
		all.Go(func() {
			fences := map[muster.TaskID]int{} // of its last claims, also where they are over
			for range linearSteps {
				h.pause(r)
				h.step(i, b, r, fences)
			}
		})
	}
	all.Wait()
	for id := muster.TaskID(1); id <= linearTasks; id++ {
		h.do(linearWorkers, w.board(), linearInput{op: "get", id: id})
	}
}

// step takes a random step of one worker.
func (h *history) step(client int, b *Board, r *rand.Rand, fences map[muster.TaskID]int) {
	id := muster.TaskID(1 + r.IntN(linearTasks))
	in := linearInput{id: id, who: muster.Name(fmt.Sprint("m", client)), fence: fences[id]}
	ops := []string{"claim", "claim", "claim", "next", "land", "return", "complete", "finish", "release", "giveup", "revoke",
		"update", "retry", "get"}
	in.op = ops[r.IntN(len(ops))]
	switch {
	case in.op == "complete" && r.IntN(2) == 0 || in.op == "finish" && r.IntN(3) > 0:
		in.op = "claim" // a completed task is of no more use here
	case in.op == "update":
		in.priority = client*1000 + r.IntN(1000)
	case in.op == "revoke": // mostly of the claim that there is, whoever has it
		t, _ := b.Get(context.Background(), id)
		in.fence = t.Fence - r.IntN(2)
	}
	if claimed, ok := h.do(client, b, in); ok {
		fences[claimed.ID] = claimed.Fence
	}
}

// do takes a step and records it. It returns the task if the step claimed one.
func (h *history) do(client int, b *Board, in linearInput) (t muster.Task, isClaimed bool) {
	ctx := context.Background()
	call, began := h.clock.Add(1), now()
	var err error
	switch in.op {
	case "claim":
		t, err = b.Claim(ctx, in.id, Claim{Owner: in.who})
	case "next":
		t, _, err = b.ClaimNext(ctx, Claim{Owner: in.who})
		in.op, in.id = "claim", t.ID
	case "land":
		t, err = b.BeginLanding(ctx, in.id, in.fence, muster.PendingLanding{Head: "h"})
	case "return":
		t, err = b.Return(ctx, in.id, in.fence, "check", Details{})
	case "finish":
		t, err = b.CompleteByHand(ctx, in.id, in.who, "")
	case "retry":
		t, err = b.Update(ctx, in.id, Patch{Retry: true})
	case "complete":
		t, err = b.Complete(ctx, in.id, in.fence, Outcome{By: in.who})
	case "release", "giveup":
		t, err = b.Release(ctx, in.id, in.fence, Release{Reason: "no", Counts: in.op == "giveup"})
	case "revoke":
		t, err = b.Revoke(ctx, in.id, in.fence, in.who, "")
	case "update":
		t, err = b.Update(ctx, in.id, Patch{Priority: &in.priority})
	case "get":
		t, err = b.Get(ctx, in.id)
	}
	out := linearOutput{state: linearState{t.Status, t.Owner, t.Fence, t.Attempts, t.Returns, t.Priority}}
	var refused *muster.Error
	switch {
	case in.id == 0 && err == nil:
		return t, false // nothing was ready: nothing that one task could tell
	case in.id > 0 && errors.As(err, &refused):
		out.code = refused.Code
	case err != nil:
		h.t.Errorf("%s of task %d: %v", in.op, in.id, err)
		return t, false
	}
	if slices.Contains([]string{"claim", "land", "return", "revoke", "update"}, in.op) && err == nil && t.UpdatedAt < began {
		h.t.Errorf("%s of task %d does not say when", in.op, in.id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: h.clock.Add(1)})
	return t, in.op == "claim" && err == nil
}

// String is the history, task by task, in the order of the calls.
func (h *history) String() string {
	slices.SortStableFunc(h.ops, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(a.Input.(linearInput).id, b.Input.(linearInput).id), cmp.Compare(a.Call, b.Call))
	})
	var b strings.Builder
	for _, o := range h.ops {
		fmt.Fprintf(&b, "\n%4d-%-4d %s", o.Call, o.Return, linearModel.DescribeOperation(o.Input, o.Output))
	}
	return b.String()
}
