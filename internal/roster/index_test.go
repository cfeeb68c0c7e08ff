package roster

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

// Whatever changed and whoever changed it: the list and the count of a process that follows are those of one that has just
// come, and what was listed before stays as it was.
func TestTheIndexFollows(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		s := mem.New()
		r, other := process(s), process(s.Handle())
		name := rapid.SampledFrom([]muster.Name{"a", "b", "c", "d", "lead"})
		var lent, copied []muster.Member
		put := func(rt *rapid.T) {
			m := muster.Member{Name: name.Draw(rt, "name"), Role: "coder",
				Status:   rapid.SampledFrom([]muster.MemberStatus{muster.Working, muster.Idle, muster.Shutdown}).Draw(rt, "status"),
				JoinedAt: float64(rapid.IntRange(1, 3).Draw(rt, "joined"))}
			_, rev, _ := other.read(t.Context(), m.Name)
			_, err := other.members.Put(t.Context(), string(m.Name), m, rev)
			require.NoError(t, err)
		}
		rt.Repeat(map[string]func(*rapid.T){
			"put": put,
			"many": func(rt *rapid.T) {
				for range 64 {
					put(rt)
				}
			},
			"delete": func(rt *rapid.T) {
				n := name.Draw(rt, "name")
				_, rev, _ := other.read(t.Context(), n)
				require.NoError(t, other.members.Delete(t.Context(), string(n), rev))
			},
			"": func(rt *rapid.T) {
				idle, err := ListIf(t.Context(), r, func(m *muster.Member) bool { return m.Status == muster.Idle })
				require.NoError(t, err)
				want, err := process(s.Handle()).List(t.Context())
				require.NoError(t, err)
				got, err := r.List(t.Context())
				require.NoError(t, err)
				if d := cmp.Diff(want, got); d != "" {
					rt.Fatal(d)
				}
				if !slices.IsSortedFunc(got, func(a, b muster.Member) int { return joined(&a, &b) }) {
					rt.Fatalf("not in the order in which they joined: %v", got)
				}
				n := 0
				for _, m := range want {
					if m.Name != muster.Lead && m.Status != muster.Shutdown {
						n++
					}
				}
				if got, err := r.Teammates(t.Context()); err != nil || got != n {
					rt.Fatalf("%d teammates of %d are counted: %v", got, n, err)
				}
				if d := cmp.Diff(copied, lent); d != "" {
					rt.Fatalf("what was listed before has changed: %s", d)
				}
				lent, copied = got, slices.Clone(got)
				want = slices.DeleteFunc(want, func(m muster.Member) bool { return m.Status != muster.Idle })
				if d := cmp.Diff(want, idle, cmpopts.EquateEmpty()); d != "" {
					rt.Fatalf("those that are idle: %s", d)
				}
			},
		})
	})
}

// A member whose record stays half written is nobody who works: it is left out, and said; when it can be read again it is back.
func TestAMemberThatStaysUnreadable(t *testing.T) {
	s := mem.New()
	r := process(s)
	add(t, r, muster.Member{Name: "alice", Role: "coder"})
	add(t, r, muster.Member{Name: "bob", Role: "coder"})
	here := func(want ...muster.Name) {
		t.Helper()
		n, failed := r.Teammates(t.Context())
		all, err := r.List(t.Context())
		require.NoError(t, err)
		var names []muster.Name
		for _, m := range all {
			names = append(names, m.Name)
		}
		if failed != nil || n != len(want) || !slices.Equal(names, want) {
			t.Fatalf("%v are here, want %v; %d are counted: %v", names, want, n, failed)
		}
	}
	here("alice", "bob")
	members := s.Table(muster.TableMembers)
	whole, err := members.Get(t.Context(), "alice")
	require.NoError(t, err)
	half, err := members.Put(t.Context(), "alice", []byte(`["na"]`), whole.Rev)
	require.NoError(t, err)
	here("bob")
	here("bob")
	_, err = r.Get(t.Context(), "alice")
	_, failed := r.Update(t.Context(), "alice", func(*muster.Member) {})
	for _, err := range []error{err, failed} {
		if !errors.Is(err, muster.ErrCorrupt) || muster.HintOf(err) == "" {
			t.Errorf("it is not said what to do: %v", err)
		}
	}
	_, err = members.Put(t.Context(), "alice", whole.Data, half)
	require.NoError(t, err)
	here("alice", "bob")
}
