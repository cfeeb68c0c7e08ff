package roster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/store/mem"
)

// An update that changes nothing writes nothing, also where a field of another program is spaced otherwise in the
// document: each write costs every process a look.
func TestAnUpdateThatChangesNothingWritesNothing(t *testing.T) {
	engines(t, func(t *testing.T, open func() muster.Store) {
		s := open()
		r := process(s)
		add(t, r, muster.Member{Name: "alice", Role: "coder"})
		ask := func(m *muster.Member) { m.Extra = muster.Extra{"asked": json.RawMessage(`["bob",{"of":[1]}]`)} }
		var revs []muster.Rev
		for range 3 {
			_, err := r.Update(t.Context(), "alice", ask)
			must(t, err)
			doc, err := s.Table(muster.TableMembers).Get(t.Context(), "alice")
			must(t, err)
			revs = append(revs, doc.Rev)
		}
		if revs[1] != revs[0] || revs[2] != revs[0] {
			t.Errorf("the revisions are %v", revs)
		}
	})
}

// The list is in the order in which members joined, whatever comes, changes and leaves.
func TestTheListKeepsItsOrder(t *testing.T) {
	r := process(mem.New())
	for n, at := range rand.New(rand.NewPCG(1, 2)).Perm(40) {
		add(t, r, muster.Member{Name: muster.Name(fmt.Sprint("m", n)), JoinedAt: float64(at + 1)})
		_, err := r.Update(t.Context(), muster.Name(fmt.Sprint("m", n/2)), func(m *muster.Member) {
			m.Doing = fmt.Sprint("step ", n)
			if n%5 == 0 {
				m.JoinedAt += 0.5
			}
		})
		must(t, err)
		got, err := r.List(t.Context())
		must(t, err)
		want := slices.SortedFunc(slices.Values(got), func(a, b muster.Member) int { return joined(&a, &b) })
		if d := cmp.Diff(want, got); d != "" || len(got) != n+1 {
			t.Fatalf("after %d members:\n%s", n+1, d)
		}
	}
}
