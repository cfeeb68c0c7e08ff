package board

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

// Workers in as many processes take whatever is ready, some of them drop it, some lose it, until all is done.
func TestManyWorkers(t *testing.T) {
	onEach(t, func(t *testing.T, w *world) {
		const tasks, workers = 40, 6
		b := w.board()
		r := rand.New(rand.NewPCG(1, 2))
		w.add(b, "x")
		for i := 1; i < tasks; i++ {
			w.add(b, "x", muster.TaskID(1+r.IntN(i)), muster.TaskID(1+r.IntN(i)))
		}
		var effects sync.Map
		var all sync.WaitGroup
		for i := range workers {
			p := w.board()
			p.OnEffect(muster.EffectTell, func(context.Context, muster.Task) error { return nil })
			who := muster.Name(fmt.Sprintf("m%d", i))
			all.Go(func() {
				r := rand.New(rand.NewPCG(uint64(i), 1))
				changed := p.Watch(t.Context())
				for {
					c, ok, err := p.ClaimNext(w.ctx, Claim{Owner: who})
					if err != nil {
						t.Error(err)
						return
					}
					if !ok {
						left, err := p.List(w.ctx)
						if err != nil {
							t.Error(err)
							return
						}
						if !slices.ContainsFunc(left, func(t muster.Task) bool { return t.Status != muster.Completed }) {
							return
						}
						select {
						case <-changed:
							continue
						case <-time.After(time.Minute):
							t.Error("for a minute nothing has changed, and there are open tasks")
							return
						}
					}
					fence := c.Fence
					switch r.IntN(5) {
					case 0:
						_, err = p.Release(w.ctx, c.ID, fence, Release{Reason: "no"})
						if err != nil && !errors.Is(err, muster.ErrFenced) {
							t.Error(err)
						}
						continue
					case 1: // somebody takes it away; what we do then is refused
						if _, err := p.Revoke(w.ctx, c.ID, fence, muster.User, ""); err != nil {
							t.Error(err)
						}
					}
					done, err := p.Complete(w.ctx, c.ID, fence, Outcome{})
					if errors.Is(err, muster.ErrFenced) {
						continue
					}
					if err != nil || done.Fence != fence {
						t.Errorf("%+v, %v", done, err)
					}
					if was, again := effects.LoadOrStore(c.ID, who); again {
						t.Errorf("task %d was completed by %v and %s", c.ID, was, who)
					}
				}
			})
		}
		all.Wait()
		must(w, 0, b.Settle(w.ctx))
		w.whole()
		if n := len(w.events(journal.TaskCompleted)); n != tasks {
			t.Errorf("%d of %d completed", n, tasks)
		}
	})
}
