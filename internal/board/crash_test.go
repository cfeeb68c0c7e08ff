package board

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/tier"
	"muster/journal"
)

// mortal is a process's store that ends at one of its writes: before it, or after it but before the answer.
type mortal struct {
	muster.Store
	mu     sync.Mutex
	left   int // writes until the end
	answer bool
	dead   bool
}

var errDead = muster.Errorf(muster.Unavailable, "this process is dead")

// write lets f write unless the end has come.
func (m *mortal) write(f func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	if m.left--; m.left > 0 {
		return f()
	}
	m.dead = true
	if m.answer {
		_ = f()
	}
	return errDead
}

func (m *mortal) read() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	return nil
}

func (m *mortal) Table(name string) muster.Table { return mortalTable{m.Store.Table(name), m} }
func (m *mortal) Log() muster.Log                { return mortalLog{m.Store.Log(), m} }

type mortalTable struct {
	muster.Table
	m *mortal
}

func (t mortalTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.m.read(); err != nil {
		return muster.Doc{}, err
	}
	return t.Table.Get(ctx, key)
}

func (t mortalTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (rev muster.Rev, err error) {
	err = t.m.write(func() (err error) { rev, err = t.Table.Put(ctx, key, data, at); return err })
	return rev, err
}

func (t mortalTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	return t.m.write(func() error { return t.Table.Delete(ctx, key, at) })
}

type mortalLog struct {
	muster.Log
	m *mortal
}

func (l mortalLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (end muster.Pos, err error) {
	err = l.m.write(func() (err error) { end, err = l.Log.Append(ctx, stream, at, recs...); return err })
	return end, err
}

// story is a team's work that touches every step; it ends at the first error.
func story(ctx context.Context, b *Board) error {
	b.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { return nil })
	b.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { return nil })
	add := func(on ...muster.TaskID) func() error {
		return func() error { _, err := b.Create(ctx, Draft{Subject: "x", BlockedBy: on}); return err }
	}
	do := func(f func() (muster.Task, error)) func() error {
		return func() error { _, err := f(); return err }
	}
	for _, step := range []func() error{
		add(), add(1), add(1, 2), add(2), add(),
		do(func() (muster.Task, error) {
			return b.Update(ctx, 5, Patch{AddBlockers: []muster.TaskID{3, 4}, Retry: true})
		}),
		do(func() (muster.Task, error) { return b.Claim(ctx, 1, Claim{Owner: "alice"}) }),
		do(func() (muster.Task, error) { return b.SetLane(ctx, 1, 1, "task-1", "abc") }),
		do(func() (muster.Task, error) { return b.BeginLanding(ctx, 1, 1, muster.PendingLanding{Head: "h"}) }),
		do(func() (muster.Task, error) { return b.Return(ctx, 1, 1, "conflict", Details{}) }),
		do(func() (muster.Task, error) { return b.BeginLanding(ctx, 1, 1, muster.PendingLanding{Head: "h"}) }),
		do(func() (muster.Task, error) { return b.Complete(ctx, 1, 1, Outcome{}) }),
		do(func() (muster.Task, error) { return b.Claim(ctx, 2, Claim{Owner: "bob"}) }),
		do(func() (muster.Task, error) { return b.Release(ctx, 2, 1, Release{Counts: true}) }),
		do(func() (muster.Task, error) { return b.Update(ctx, 5, Patch{RemoveBlockers: []muster.TaskID{4}}) }),
		func() error { return b.Delete(ctx, 4, true) },
		add(5),
		func() error { return b.Delete(ctx, 6, false) },
		do(func() (muster.Task, error) { return b.Claim(ctx, 2, Claim{Owner: "bob"}) }),
		do(func() (muster.Task, error) { return b.Revoke(ctx, 2, 2, "lead", "") }),
		do(func() (muster.Task, error) { return b.CompleteByHand(ctx, 2, muster.User, "") }),
		func() error { return b.Settle(ctx) },
	} {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

// A process dies at each of its writes in turn, before or after it took effect. Another one settles what it left, and
// everything can still be done to the end.
func TestDeathAtEveryWrite(t *testing.T) {
	for name, open := range engines {
		for _, answer := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/after=%v", name, answer), func(t *testing.T) {
				t.Parallel()
				step := 1
				if name != "mem" {
					step = tier.Amount(13, 3) // syncing takes its time; memory has all of them
				}
				for n := 1; ; n += step {
					w := newWorld(t, open(t))
					m := &mortal{Store: w.open(), left: n, answer: answer}
					err := story(w.ctx, New(m, journal.New(m.Log())))
					if err == nil {
						if n < 50 {
							t.Errorf("the story ended after %d writes", n)
						}
						return
					}
					if !errors.Is(err, errDead) {
						t.Fatalf("death at write %d: %v", n, err)
					}
					aftermath(w, fmt.Sprintf("death at write %d", n))
					if t.Failed() {
						t.FailNow()
					}
				}
			})
		}
	}
}

// aftermath settles by two other processes and brings every task to its end.
func aftermath(w *world, when string) {
	b, other := w.board(), w.board()
	told := map[muster.TaskID]int{}
	for _, p := range []*Board{b, other} {
		p.OnEffect(muster.EffectTell, func(_ context.Context, t muster.Task) error { told[t.ID]++; return nil })
		p.OnEffect(muster.EffectArchive, func(context.Context, muster.Task) error { return nil })
	}
	must(w, 0, b.Settle(w.ctx))
	must(w, 0, other.Settle(w.ctx))
	w.whole()
	for id, t := range w.stored() {
		if len(t.Effects) > 0 {
			w.Errorf("%s: task %d has %v left", when, id, t.Effects)
		}
		if t.Owner != "" && t.Open() {
			must(w, t, errOf(b.Revoke(w.ctx, id, t.Fence, muster.System, "dead")))
		}
	}
	if m, err := b.meta.read(w.ctx); err != nil || len(m.Adding) > 0 {
		w.Errorf("%s: meta %+v, %v", when, m, err)
	}
	for {
		t, ok, err := other.ClaimNext(w.ctx, Claim{Owner: "carol"})
		if must(w, t, err); !ok {
			break
		}
		must(w, t, errOf(other.Complete(w.ctx, t.ID, t.Fence, Outcome{})))
	}
	for id, t := range w.stored() {
		if t.Status != muster.Completed {
			w.Errorf("%s: task %d could not be done: %s, waits for %v", when, id, t.Status, t.BlockedBy)
		}
	}
	w.whole()
	for id, n := range told {
		if n > 1 {
			w.Errorf("%s: task %d was told %d times by processes that did not die", when, id, n)
		}
	}
}

// A caller that goes away right after a step loses no event.
func TestStepsOutliveTheirCallers(t *testing.T) {
	w := inMemory(t)
	w.add(w.board(), "1")
	ctx, cancel := context.WithCancel(w.ctx)
	s := w.open()
	must(w, 0, errOf(New(s, journal.New(leaving{s.Log(), cancel})).Claim(ctx, 1, Claim{Owner: "bob"})))
	if e := w.events(journal.TaskClaimed); ctx.Err() == nil || len(e) != 1 || e[0].Task != 1 || len(w.lines()) != 1 {
		t.Errorf("%v: %+v", ctx.Err(), e)
	}
}

// An event that a log refuses undoes nothing and, while the engine is there, is no error.
func TestStepsOutliveTheirEvents(t *testing.T) {
	w := inMemory(t)
	b := New(w.open(), journal.New(deaf{w.store.Log()}))
	w.add(b, "1")
	w.take(b, 1, "alice")
	must(w, 0, errOf(b.Complete(w.ctx, 1, 1, Outcome{})))
	if got := w.get(b, 1); got.Status != muster.Completed || w.eventCount() != 0 {
		t.Errorf("%+v", got)
	}
}

// deaf is a log that takes nothing.
type deaf struct{ muster.Log }

func (deaf) Append(context.Context, string, muster.Pos, ...[]byte) (muster.Pos, error) {
	return 0, muster.Errorf(muster.Invalid, "no")
}

// leaving is a log whose caller goes away once something is to be appended.
type leaving struct {
	muster.Log
	leave func()
}

func (l leaving) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	l.leave()
	return l.Log.Append(ctx, stream, at, recs...)
}
