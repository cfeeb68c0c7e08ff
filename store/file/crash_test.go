package file_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
	"muster/internal/testing/tier"
)

// inSample reports whether a test examines its nth case: every one in "./test.sh all", every seventh in the first tier.
// The step is odd, because cases often alternate.
func inSample(n int) bool { return n%tier.Amount(7, 1) == 0 }

// played is a scene that was played to its end on a disk through a file system over it.
type played struct {
	scene scene
	sim   *simfs.FS
	h     *history
	crew  *crew
	err   error // of the scene
}

func play(ctx context.Context, s scene, over func(durable.FS) durable.FS) (*played, error) {
	sim := newDisk()
	p := &played{scene: s, sim: sim, h: newHistory(sim)}
	var err error
	if p.crew, err = enter(ctx, sim, p.h); err != nil {
		return nil, err
	}
	before := p.crew
	if s.before != nil {
		if err := s.before(before); err != nil {
			return nil, err
		}
	}
	if err := before.store.Close(); err != nil {
		return nil, err
	}
	sim.Settle() // the records begin anew: what was before is acknowledged at the first moment
	for _, ws := range append(slices.Collect(maps.Values(p.h.docs)), slices.Collect(maps.Values(p.h.recs))...) {
		for _, w := range ws {
			w.from, w.done = 0, 0
		}
	}
	p.h.moments = nil
	clear(p.h.soon)
	if p.crew, err = enter(ctx, over(sim), p.h); err != nil {
		return nil, err
	}
	for what := range before.acked {
		p.crew.acked[what] = 0
	}
	p.err = s.run(p.crew)
	return p, nil
}

// examine opens what a crash left and compares it with what was promised; with further, it goes on and compares again.
func (p *played) examine(ctx context.Context, c simfs.Crash, further bool) []string {
	was := *p.crew
	was.now = c.Calls
	sim := c.FS()
	quiet := newHistory(sim)
	one, err := enter(ctx, sim, quiet)
	if err != nil {
		return []string{err.Error()}
	}
	wrong := p.h.compare(ctx, one.store, c.Calls)
	one.store.h = survey(ctx, sim, one.store.Store, p.h.recs)
	one.store.Close()
	if len(wrong) > 0 || !further {
		return wrong
	}
	two, err := enter(ctx, sim, one.store.h)
	if err != nil {
		return []string{err.Error()}
	}
	if err := p.scene.after(two, &was); err != nil {
		wrong = append(wrong, "afterwards: "+err.Error())
	}
	wrong = append(wrong, two.store.h.compare(ctx, two.store.Store, sim.Calls())...)
	two.store.Close()
	return wrong
}

// crashes examines every crash of a scene, until so many violations.
func (p *played) crashes(ctx context.Context, most int, found func(c simfs.Crash, wrong []string)) (states,
	bad int) {
	distinct := map[[32]byte]bool{}
	moments := p.h.moments
	for _, at := range p.crew.acked {
		moments = append(moments, at)
	}
	type state struct {
		sum   [32]byte
		known int // how much was acknowledged
	}
	gone := map[state]bool{} // whose work went on once: with other temporaries it would do the same
	n := 0
	for c := range p.sim.Crashes(simfs.Options{Cuts: p.scene.cuts, Moments: moments}) {
		at := state{c.Seen, 0}
		for _, m := range moments {
			if m <= c.Calls {
				at.known++
			}
		}
		distinct[c.Seen] = true
		if n++; !inSample(n) {
			continue
		}
		further := !gone[at]
		gone[at] = true
		if wrong := p.examine(ctx, c, further); len(wrong) > 0 {
			found(c, wrong)
			if bad++; bad >= most {
				break
			}
		}
	}
	return len(distinct), bad
}

// plain is no decorator.
func plain(f durable.FS) durable.FS { return f }

// bubble runs f for each scene under a clock of its own, side by side.
func bubble(t *testing.T, f func(t *testing.T, s scene)) {
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { f(t, s) })
		})
	}
}

// After a loss of power at any moment of any operation the state opens, no document is corrupt, what was acknowledged
// is there, what was not is there as a whole or not at all, and the work goes on to its end.
func TestPowerLoss(t *testing.T) {
	const atLeast = 5000
	var sum atomic.Int64
	t.Run("scenes", func(t *testing.T) {
		bubble(t, func(t *testing.T, s scene) {
			p, err := play(t.Context(), s, plain)
			if err == nil {
				err = p.err
			}
			require.NoError(t, err)
			p.crew.store.Close()
			states, bad := p.crashes(t.Context(), 3, func(c simfs.Crash, wrong []string) {
				t.Errorf("%v\n%v", wrong, c)
			})
			sum.Add(int64(states))
			t.Logf("%d calls, %d states, %d violations", p.sim.Calls(), states, bad)
		})
	})
	t.Logf("distinct states: %d", sum.Load())
	if n := sum.Load(); n < atLeast && !t.Failed() {
		t.Errorf("%d states, fewer than %d", n, atLeast)
	}
}

// stride returns how far apart the calls are that fail in turn.
func stride() int { return tier.Amount(3, 1) }

// errKilled is what a dead process's calls answer.
var errKilled = errors.New("killed")

// killed is a file system whose process dies after so many changes.
func killed(after int) func(durable.FS) durable.FS {
	return func(f durable.FS) durable.FS {
		left := after
		return simfs.Tap{FS: f, Ask: func(simfs.Kind, string) error {
			if left--; left < 0 {
				return errKilled
			}
			return nil
		}}
	}
}

// A process dies at any call while the machine goes on; another one finishes the work, and then the power fails: what
// the dead one had not synced may be lost, but nothing that either acknowledged.
func TestKillThenPowerLoss(t *testing.T) {
	bubble(t, func(t *testing.T, s scene) {
		for n := 0; ; n += stride() {
			p, err := play(t.Context(), s, killed(n))
			require.NoError(t, err)
			p.crew.store.Close()
			ended := p.err == nil
			was := *p.crew
			was.now = p.sim.Calls()
			next, err := enter(t.Context(), p.sim, p.h)
			require.NoError(t, err)
			if err := s.after(next, &was); err != nil {
				t.Fatalf("killed at change %d, then: %v", n+1, err)
			}
			next.store.Close()
			for c := range p.sim.Crashes(simfs.Options{From: p.sim.Calls(), Cuts: 1}) {
				one, err := enter(t.Context(), c.FS(), newHistory(c.FS()))
				require.NoError(t, err)
				if wrong := p.h.compare(t.Context(), one.store.Store, c.Calls); len(wrong) > 0 {
					t.Fatalf("killed at change %d, then finished by another, then: %v\n%v", n+1, wrong, c)
				}
				one.store.Close()
			}
			if ended {
				return
			}
		}
	})
}

// Each variant without one of the safeguards must be caught.
func TestVariantsLosePower(t *testing.T) {
	for _, v := range []struct {
		name   string
		broken func(durable.FS) durable.FS
		scenes string
	}{
		{"no fsync", simfs.NoSync, "table log transcript"},
		{"no fsync of the directory", simfs.NoSyncDir, "table log"},
		{"no fsync at all", simfs.NoSyncAtAll, "table log inbox"},
		{"no fsync after the rename", simfs.NoSyncAfterRename, "table lanes' index"},
		{"no repair of the torn tail", simfs.NoTailRepair, "torn tail"},
	} {
		t.Run(v.name, func(t *testing.T) {
			t.Parallel()
			for _, s := range scenes {
				if !strings.Contains(v.scenes, s.name) {
					continue
				}
				synctest.Test(t, func(t *testing.T) {
					p, err := play(t.Context(), s, v.broken)
					require.NoError(t, err)
					p.crew.store.Close()
					if _, bad := p.crashes(t.Context(), 1, func(simfs.Crash, []string) {}); bad == 0 {
						t.Errorf("%s does not catch it", s.name)
					}
				})
			}
		})
	}
}
