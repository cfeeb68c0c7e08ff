package roster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/store/mem"
)

func TestHosts(t *testing.T) {
	s := mem.New()
	sa, sb := s.Handle(), s.Handle()
	a, b := process(sa), process(sb)
	alive := func(id muster.HostID) bool {
		t.Helper()
		ok, err := process(s).Alive(t.Context(), id)
		require.NoError(t, err)
		return ok
	}
	ha := join(t, a)
	hb, err := b.Join(t.Context(), "muster join")
	require.NoError(t, err)
	if ha.ID() != "host-1.1" || hb.ID() != "host-2.1" || !alive("host-1.1") || !alive("host-2.1") {
		t.Fatalf("%s %s", ha.ID(), hb.ID())
	}
	lease, err := s.Leases().Acquire(t.Context(), "host-3") // whoever comes there has no life yet
	require.NoError(t, err)
	for _, id := range []muster.HostID{"", "host-1", "host-1.0", "host-1.2", "host-3.1", "host-1.x", ".1"} {
		if alive(id) {
			t.Errorf("%q is not alive", id)
		}
	}
	require.NoError(t, lease.Release())
	require.NoError(t, hb.SetEnded(t.Context()))
	all, err := process(s).Hosts(t.Context())
	require.NoError(t, err)
	pid := os.Getpid()
	want := []HostRecord{{Slot: "host-1", Life: 1, PID: pid, Started: proc.StartTime(pid), About: "muster run"},
		{Slot: "host-2", Life: 1, PID: pid, About: "muster join"}}
	for i := range all {
		if all[i].Since == 0 {
			t.Error("no time")
		}
		all[i].Since = 0
	}
	if d := cmp.Diff(want, all); d != "" {
		t.Fatal(d)
	}
	if w := a.Where(t.Context(), "host-2.1"); w != fmt.Sprintf("muster join, pid %d", pid) {
		t.Fatalf("where: %q", w)
	}
	require.NoError(t, sa.Close()) // the process dies
	if alive("host-1.1") {
		t.Fatal("a dead process is alive")
	}
	if all, err := process(s).Hosts(t.Context()); err != nil || len(all) != 1 || all[0].ID() != "host-2.1" {
		t.Fatalf("%v %v", all, err)
	}
	next := join(t, process(s.Handle()))
	if next.ID() != "host-1.2" || alive("host-1.1") || !alive("host-1.2") {
		t.Fatalf("the slot's next life is %s", next.ID())
	}
	if err := ha.SetEnded(t.Context()); !errors.Is(err, muster.ErrFenced) {
		t.Fatalf("a dead life wrote: %v", err)
	}
	require.NoError(t, next.Release())
	if alive("host-1.2") {
		t.Fatal("released, it is not alive")
	}
	if w := a.Where(t.Context(), "host-1.1"); w != "host-1.1" {
		t.Fatalf("where: %q", w)
	}
}

// Only what a host that has died has started is ended, and its record says so.
func TestEndTools(t *testing.T) {
	s := mem.New()
	dead := s.Handle()
	for _, store := range []muster.Store{dead, s} {
		join(t, process(store))
	}
	require.NoError(t, dead.Close())
	r := process(s.Handle())
	if n, err := r.EndTools(t.Context()); err != nil || n != 0 {
		t.Errorf("%d processes were killed, %v", n, err)
	}
	all, err := r.hosts.List(t.Context())
	if err != nil || len(all) != 2 || all[0].Started != 0 || all[1].Started == 0 {
		t.Errorf("%+v, %v", all, err)
	}
	r.leases = unasked{r.leases}
	_, hosts := r.Hosts(t.Context())
	_, guards := r.EndTools(t.Context())
	if _, alive := r.Alive(t.Context(), "host-2.1"); hosts == nil || guards == nil || alive == nil {
		t.Errorf("those who cannot be asked for: %v, %v, %v", hosts, guards, alive)
	}
}

// unasked are leases of which nobody can tell who holds them.
type unasked struct{ muster.Leases }

func (unasked) Held(context.Context, string) (bool, error) { return false, errors.New("no answer") }

func TestEveryHostHasItsOwnSlot(t *testing.T) {
	s := mem.New()
	var g sync.WaitGroup
	const n = 12
	ids := make(chan muster.HostID, n)
	for range n {
		r := process(s.Handle())
		g.Go(func() {
			h, err := r.Join(context.Background(), "x")
			if err != nil {
				t.Error(err)
				return
			}
			ids <- h.ID()
		})
	}
	g.Wait()
	close(ids)
	had := map[muster.HostID]bool{}
	for id := range ids {
		if had[id] {
			t.Fatalf("%s twice", id)
		}
		had[id] = true
	}
	if len(had) != n || !had["host-12.1"] {
		t.Fatalf("%v", had)
	}
	all, err := process(s).Hosts(t.Context())
	require.NoError(t, err)
	if len(all) != n || all[1].Slot != "host-2" || all[n-1].Slot != "host-12" {
		t.Fatalf("%v", all)
	}
}

func TestADamagedSlot(t *testing.T) {
	s := mem.New()
	sa := s.Handle()
	h := join(t, process(sa))
	d, err := s.Table(muster.TableHosts).Get(t.Context(), "host-1")
	require.NoError(t, err)
	_, err = s.Table(muster.TableHosts).Put(t.Context(), "host-1", []byte(`{"life":"x"}`), d.Rev)
	require.NoError(t, err)
	r := process(s)
	// Somebody lives there: nothing is taken from them, and nothing is written over them.
	if alive, err := r.Alive(t.Context(), h.ID()); err != nil || !alive {
		t.Fatal(alive, err)
	}
	// A free slot is taken all the same.
	_, err = s.Table(muster.TableHosts).Put(t.Context(), "host-2", []byte(`{"life":"y"}`), muster.None)
	require.NoError(t, err)
	if next := join(t, process(s)); next.doc.Slot != "host-2" || next.doc.Life < 1e9 || len(kinds(t, s)) != 1 {
		t.Errorf("the host is %s, reported are %v", next.ID(), kinds(t, s))
	}
	require.NoError(t, sa.Close())
	// The next life is none that there was.
	next := join(t, process(s.Handle()))
	alive, err := r.Alive(t.Context(), h.ID())
	if err != nil || alive || next.doc.Slot != "host-1" || next.doc.Life < 1e9 {
		t.Fatal(alive, err, next.ID())
	}
}
