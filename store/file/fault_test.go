package file_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/require"
	"muster/internal/testing/simfs"
)

// fault fails one call, and counts what is asked for after it.
type fault struct {
	at    int // the call that fails, from 1
	err   error
	kinds []simfs.Kind // only these are counted; nil: all

	mu    sync.Mutex // the inbox cleans up by itself
	n     int
	kind  simfs.Kind // of the call that failed
	name  string
	after map[simfs.Kind]int
}

func (f *fault) over(under durable.FS) durable.FS {
	f.after = map[simfs.Kind]int{}
	return simfs.Tap{FS: under, Ask: func(k simfs.Kind, name string) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.kind != "" {
			f.after[k]++
			return nil
		}
		if f.kinds != nil && !slices.Contains(f.kinds, k) {
			return nil
		}
		if f.n++; f.n == f.at {
			f.kind, f.name = k, name
			return f.err
		}
		return nil
	}}
}

// each runs check for every call of a scene that can fail with err.
func (s scene) each(t *testing.T, err error, kinds []simfs.Kind, check func(f *fault, p *played)) {
	for n := 1; ; n += stride() {
		f := &fault{at: n, err: err, kinds: kinds}
		p, e := play(t.Context(), s, f.over)
		if e != nil {
			t.Fatal(e)
		}
		if f.kind == "" {
			return
		}
		check(f, p)
		if t.Failed() {
			t.FailNow()
		}
	}
}

// wellSaid checks that an error is one sentence, with a hint what to do.
func wellSaid(t *testing.T, f *fault, err error) {
	t.Helper()
	var e *muster.Error
	switch {
	case !errors.As(err, &e):
		t.Errorf("%s %s: the error is not one of ours: %v", f.kind, f.name, err)
	case e.Code != muster.Unavailable:
		t.Errorf("%s %s: the code is %s: %v", f.kind, f.name, e.Code, err)
	case strings.Contains(e.Message, "\n") || e.Message == "" || strings.HasSuffix(e.Message, "."):
		t.Errorf("%s %s: this is not one sentence: %q", f.kind, f.name, e.Message)
	case e.Hint == "":
		t.Errorf("%s %s: no hint: %q", f.kind, f.name, e.Message)
	}
}

// goesOn checks a state after a fault: it is readable, nothing acknowledged is lost, and the work is done by c.
func goesOn(t *testing.T, f *fault, p *played, c *crew) {
	t.Helper()
	if wrong := p.h.compare(t.Context(), c.store.Store, p.sim.Calls()); len(wrong) > 0 {
		t.Errorf("%s %s failed: %v", f.kind, f.name, wrong)
		return
	}
	was := *p.crew
	was.now = p.sim.Calls()
	if err := p.scene.after(c, &was); err != nil {
		t.Errorf("%s %s failed, afterwards: %v", f.kind, f.name, err)
	}
	if wrong := p.h.compare(t.Context(), c.store.Store, p.sim.Calls()); len(wrong) > 0 {
		t.Errorf("%s %s failed, and then: %v", f.kind, f.name, wrong)
	}
	if err := c.store.Close(); err != nil {
		t.Error(err)
	}
	for crash := range p.sim.Crashes(simfs.Options{From: p.sim.Calls(), Cuts: 1, Journal: true}) {
		one, err := enter(t.Context(), crash.FS(), newHistory(crash.FS()))
		require.NoError(t, err)
		if wrong := p.h.compare(t.Context(), one.store.Store, crash.Calls); len(wrong) > 0 {
			t.Errorf("%s %s failed, the work went on, then: %v\n%v", f.kind, f.name, wrong, crash)
		}
		one.store.Close()
		break // the first is where all that is not synced is lost
	}
}

// A full disk and an I/O error, at each call of each operation in turn: the operation says so in a sentence with a
// hint, the state stays readable, nothing acknowledged is lost, and when the fault is gone the same process goes on.
func TestFaultAtEveryCall(t *testing.T) {
	changes := []simfs.Kind{simfs.Open, simfs.Create, simfs.Mkdir, simfs.Rename, simfs.Link, simfs.Remove,
		simfs.Truncate, simfs.Write, simfs.Lock}
	grow := []simfs.Kind{simfs.Create, simfs.Mkdir, simfs.Rename, simfs.Link, simfs.Write}
	for _, c := range []struct {
		name  string
		err   error
		kinds []simfs.Kind
	}{
		{"input-output error", syscall.EIO, changes},
		{"disk full", syscall.ENOSPC, grow},
		{"disk full in the middle of a write", simfs.Short{Err: syscall.ENOSPC}, []simfs.Kind{simfs.Write}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, s scene) {
				s.each(t, c.err, c.kinds, func(f *fault, p *played) {
					if p.err != nil { // not every call matters: events and clean-up may fail
						wellSaid(t, f, p.err)
					}
					if err := p.crew.files.Ended(); err != nil {
						t.Errorf("%s %s failed and ended all writing: %v", f.kind, f.name, err)
					}
					goesOn(t, f, p, p.crew)
				})
			})
		})
	}
}

// A sync that fails ends writing with an error that says so. It is not tried again, nor is anything else written; what
// is there can still be read, and a new process goes on.
func TestFailedSyncEndsWriting(t *testing.T) {
	bubble(t, func(t *testing.T, s scene) {
		s.each(t, syscall.EIO, []simfs.Kind{simfs.Sync, simfs.SyncDir}, func(f *fault, p *played) {
			ended := p.crew.files.Ended()
			if ended == nil {
				t.Fatalf("%s %s failed and writing goes on", f.kind, f.name)
			}
			wellSaid(t, f, ended)
			if !strings.Contains(ended.Error(), "writing has ended") {
				t.Errorf("it does not say so: %v", ended)
			}
			// What the process still tries is refused.
			_, err := p.crew.store.Table(muster.TableMembers).Put(t.Context(), "zoe", []byte("{}"), muster.None)
			if err == nil || err.Error() != ended.Error() {
				t.Errorf("a later write: %v", err)
			}
			p.crew.store.Close()
			for _, k := range []simfs.Kind{simfs.Sync, simfs.SyncDir, simfs.Write, simfs.Create, simfs.Rename,
				simfs.Link, simfs.Truncate, simfs.Mkdir} {
				if n := f.after[k]; n > 0 {
					t.Errorf("%s %s failed, and then came %d times: %s", f.kind, f.name, n, k)
				}
			}
			next, err := enter(t.Context(), p.sim, p.h)
			require.NoError(t, err)
			goesOn(t, f, p, next)
		})
	})
}
