package roster

import (
	"encoding/json"
	"testing"

	"muster"
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
