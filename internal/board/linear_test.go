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

var linearSeed = flag.Uint64("linear.seed", 0, "run this seed of the linearizability tests alone")

// What several processes do to tasks at once looks as if it had been done one after the other: histories of every step
// that a claim can take, some of them cut off so that nobody knows what became of them, are explained by a sequential
// board. In memory a seed decides all that happens; on files the scheduler has its say too.
func TestClaimsAreLinearizable(t *testing.T) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			for seed := range linearSeeds(tier.Amount(40, 100)) {
				h := recordOn(t, name, open, seed, nil)
				if got := h.check(); got != porcupine.Ok {
					t.Fatalf("seed %d: the history is %s; again: go test ./internal/board -run 'TestClaimsAreLinearizable/%s' -linear.seed=%d%s", seed, got, name, seed, h)
				}
			}
		})
	}
}

// A store without compare-and-set must be found out, or the test above says nothing.
func TestWithoutCompareAndSetClaimsAreNotLinearizable(t *testing.T) {
	if *linearSeed != 0 {
		t.Skip("a single seed need not show it")
	}
	blind := func(s muster.Store) muster.Store { return blindStore{s} }
	for name, open := range engines {
		t.Run(name, func(t *testing.T) {
			caught, seeds := 0, tier.Amount(10, 40)
			for seed := range linearSeeds(seeds) {
				switch recordOn(t, name, open, seed, blind).check() {
				case porcupine.Illegal:
					caught++
				case porcupine.Unknown:
					t.Fatalf("seed %d: unknown", seed)
				}
			}
			t.Logf("%d of %d seeds found it out", caught, seeds)
			if caught == 0 {
				t.Errorf("a store that ignores revisions passed on all of %d seeds", seeds)
			}
		})
	}
}

func linearSeeds(n int) func(func(uint64) bool) {
	return func(yield func(uint64) bool) {
		if *linearSeed != 0 {
			yield(*linearSeed)
			return
		}
		for seed := 1; seed <= n && yield(uint64(seed)); seed++ {
		}
	}
}

// history is what the workers saw.
type history struct {
	t       *testing.T
	clock   atomic.Int64
	pause   func(*rand.Rand)
	pending sync.WaitGroup // writes that were still under way when their step was cut off

	mu  sync.Mutex
	ops []porcupine.Operation
}

const (
	linearTasks   = 3
	linearWorkers = 4
	linearSteps   = 9
)

// recordOn lets a few processes loose on a few tasks. In memory the pauses are on a bubble's clock, and no two end at one moment.
func recordOn(t *testing.T, engine string, open func(testing.TB) func() muster.Store, seed uint64, wrap func(muster.Store) muster.Store) (h *history) {
	t.Helper()
	if engine == "mem" {
		h = &history{t: t, pause: func(r *rand.Rand) { time.Sleep(time.Duration(1 + r.Int64N(int64(time.Second)))) }}
		synctest.Test(t, func(t *testing.T) { h.record(open(t), seed, wrap) })
		return h
	}
	h = &history{t: t, pause: func(r *rand.Rand) {
		for range r.IntN(20) {
			runtime.Gosched()
		}
	}}
	h.record(open(t), seed, wrap)
	return h
}

func (h *history) record(open func() muster.Store, seed uint64, wrap func(muster.Store) muster.Store) {
	w := newWorld(h.t, open)
	for range linearTasks {
		w.add(w.board(), "wanted")
	}
	var all sync.WaitGroup
	for i := range linearWorkers {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		s := open()
		if wrap != nil {
			s = wrap(s)
		}
		cut := &cutStore{Store: s, h: h, r: r}
		p := &linearWorker{h: h, id: i, who: muster.Name(fmt.Sprintf("m%d", i)), r: r, cut: cut,
			board: New(cut, journal.New(s.Log())), fence: map[muster.TaskID]int{}}
		all.Go(func() {
			for range linearSteps {
				h.pause(r)
				p.step()
			}
		})
	}
	all.Wait()
	h.pending.Wait()
	last := &linearWorker{h: h, id: linearWorkers, board: w.board(), cut: &cutStore{}}
	for id := muster.TaskID(1); id <= linearTasks; id++ {
		last.do(linearInput{op: "get", id: id})
	}
}

func (h *history) check() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(linearModel.ToModel(), h.ops, time.Minute)
}

// String is the history, task by task, in the order of the calls.
func (h *history) String() string {
	slices.SortStableFunc(h.ops, func(a, b porcupine.Operation) int {
		return cmp.Or(cmp.Compare(a.Input.(linearInput).id, b.Input.(linearInput).id), cmp.Compare(a.Call, b.Call))
	})
	var b strings.Builder
	for _, o := range h.ops {
		fmt.Fprintf(&b, "\n%4d-%-4d %s", o.Call, min(o.Return, 9999), linearModel.DescribeOperation(o.Input, o.Output))
	}
	return b.String()
}

// linearWorker is a process that works on the tasks.
type linearWorker struct {
	h     *history
	id    int
	who   muster.Name
	r     *rand.Rand
	cut   *cutStore
	board *Board
	fence map[muster.TaskID]int // of its last claims, also where they are over
}

// step takes one random step; one in five is cut off at a random moment.
func (p *linearWorker) step() {
	id := muster.TaskID(1 + p.r.IntN(linearTasks))
	in := linearInput{id: id, who: p.who, fence: p.fence[id]}
	in.op = []string{"claim", "claim", "claim", "next", "complete", "finish", "release", "release", "giveup", "revoke", "update", "retry", "get"}[p.r.IntN(13)]
	if in.op == "complete" && p.r.IntN(2) == 0 || in.op == "finish" && p.r.IntN(3) > 0 {
		in.op = "claim" // a completed task is of no more use here
	}
	if in.op == "update" {
		in.priority = p.id*1000 + p.r.IntN(1000)
	}
	p.cut.in = -1
	if in.op == "revoke" { // mostly of the claim that there is, whoever has it
		t, _ := p.board.Get(context.Background(), id)
		in.fence = t.Fence - p.r.IntN(2)
	}
	if p.r.IntN(5) == 0 {
		p.cut.in = p.r.IntN(4)
	}
	p.do(in)
}

// do takes a step and records it.
func (p *linearWorker) do(in linearInput) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	p.cut.cancel, p.cut.was = cancel, false
	call := p.h.clock.Add(1)
	var t muster.Task
	var err error
	ok := true
	switch in.op {
	case "claim":
		t, err = p.board.Claim(ctx, in.id, Claim{Owner: in.who})
	case "next":
		t, ok, err = p.board.ClaimNext(ctx, Claim{Owner: in.who})
	case "complete":
		t, err = p.board.Complete(ctx, in.id, in.fence, Outcome{By: in.who})
	case "finish":
		t, err = p.board.CompleteByHand(ctx, in.id, in.who, "")
	case "release", "giveup":
		t, err = p.board.Release(ctx, in.id, in.fence, Release{Reason: "no", Counts: in.op == "giveup"})
	case "revoke":
		t, err = p.board.Revoke(ctx, in.id, in.fence, in.who, "")
	case "update":
		t, err = p.board.Update(ctx, in.id, Patch{Priority: &in.priority})
	case "retry":
		t, err = p.board.Update(ctx, in.id, Patch{Retry: true})
	case "get":
		t, err = p.board.Get(ctx, in.id)
	}
	out := linearOutput{state: stateOf(t)}
	var refused *muster.Error
	switch {
	case t.ID != 0 && (err == nil || p.cut.was || ctx.Err() != nil): // done; what follows from it may be left
	case p.cut.was && t.ID == 0:
		out.unknown = true
	case errors.As(err, &refused):
		out.code = refused.Code
	case err != nil:
		p.h.t.Errorf("%s of task %d: %v", in.op, in.id, err)
		return
	case !ok:
		return // nothing was ready: nothing that one task could tell
	}
	back := p.h.clock.Add(1)
	if out.unknown {
		back = 1 << 60 // it may happen at any later time
	}
	if in.op == "next" {
		in.op = "claim"
		if in.id = t.ID; out.unknown { // whichever it may have been
			for id := muster.TaskID(1); id <= linearTasks; id++ {
				in.id = id
				p.h.add(p.id, in, out, call, back)
			}
			return
		}
	}
	if in.op == "claim" && !out.unknown && out.code == "" {
		p.fence[in.id] = t.Fence
	}
	p.h.add(p.id, in, out, call, back)
}

func (h *history) add(client int, in linearInput, out linearOutput, call, back int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: back})
}

// cutStore pauses at every operation on a task, and cuts a step off at one of them: before a write, after it, or with the
// write on its way.
type cutStore struct {
	muster.Store
	h      *history
	r      *rand.Rand
	in     int // operations until the cut; below zero: none
	was    bool
	cancel context.CancelFunc
}

func (s *cutStore) Table(name string) muster.Table {
	if name != muster.TableTasks {
		return s.Store.Table(name)
	}
	return cutTable{s.Store.Table(name), s}
}

type cutTable struct {
	muster.Table
	s *cutStore
}

func (t cutTable) now() bool {
	t.s.h.pause(t.s.r)
	t.s.in--
	if t.s.in != -1 {
		return false
	}
	t.s.was = true
	t.s.cancel()
	return true
}

func (t cutTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	if t.now() {
		return muster.Doc{}, ctx.Err()
	}
	return t.Table.Get(ctx, key)
}

func (t cutTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if !t.now() {
		return t.Table.Put(ctx, key, data, at)
	}
	whole := context.WithoutCancel(ctx)
	switch t.s.r.IntN(3) {
	case 0:
		_, _ = t.Table.Put(whole, key, data, at)
	case 1:
		r := rand.New(rand.NewPCG(t.s.r.Uint64(), 0))
		t.s.h.pending.Go(func() {
			for range 5 {
				t.s.h.pause(r)
			}
			_, _ = t.Table.Put(whole, key, data, at)
		})
	}
	return muster.None, ctx.Err()
}

// blindStore is a store without compare-and-set: its Put writes over whatever is there.
type blindStore struct{ muster.Store }

func (s blindStore) Table(name string) muster.Table { return blindTable{s.Store.Table(name)} }

type blindTable struct{ muster.Table }

func (t blindTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	for {
		rev, err := t.Table.Put(ctx, key, data, at)
		if !errors.Is(err, muster.ErrStale) {
			return rev, err
		}
		doc, err := t.Table.Get(ctx, key)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			return muster.None, err
		}
		at = doc.Rev
	}
}
