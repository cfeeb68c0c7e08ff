package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// A list that is printed piece by piece is what encoding/json makes of it, to the byte.
func TestListsAreEncodedAsEver(t *testing.T) {
	value := rapid.OneOf(rapid.Just(`{}`), rapid.Just(`[]`), rapid.Just(`{"a":{"b":[1,{}]},"c":[[],[ "x,\":{" ]]}`), rapid.Just(`-1.5e3`), rapid.Just(`null`),
		rapid.Map(rapid.String(), func(s string) string { b, _ := muster.MarshalLine(s); return string(b) }))
	task := rapid.Custom(func(t *rapid.T) muster.Task {
		x := muster.Task{ID: muster.TaskID(rapid.IntRange(1, 9).Draw(t, "id")), Subject: rapid.String().Draw(t, "subject"), Result: `<&> "` + "\u2028\\",
			BlockedBy: rapid.SliceOfN(rapid.Just(muster.TaskID(7)), 0, 3).Draw(t, "blockers"), ClaimedAt: rapid.Float64Range(0, 2e9).Draw(t, "at")}
		if rapid.Bool().Draw(t, "landed") {
			x.Landed = &muster.Landed{Commit: "abc"}
		}
		for name, raw := range rapid.MapOfN(rapid.SampledFrom([]string{"x", "y\"", "é"}), value, 0, 3).Draw(t, "extra") {
			if x.Extra == nil {
				x.Extra = muster.Extra{}
			}
			x.Extra[name] = json.RawMessage(raw)
		}
		return x
	})
	same := func(t rapid.TB, all []muster.Task) {
		want, err := muster.Encode(all)
		if err != nil {
			t.Fatal(err)
		}
		var got bytes.Buffer
		if err := writeList(&got, all); err != nil || got.String() != string(want) {
			t.Fatalf("%v\n%s\nis not\n%s", err, &got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) { same(t, rapid.SliceOfN(task, 0, 9).Draw(t, "tasks")) })
	for _, n := range []int{0, 1, 100, 1000} { // the longest is written in several blocks
		all := make([]muster.Task, n)
		for i := range all {
			all[i] = muster.Task{ID: muster.TaskID(i), Subject: fmt.Sprint("task ", i)}
		}
		same(t, all)
	}
	bad := make([]muster.Task, 1000)
	bad[999] = muster.Task{Extra: muster.Extra{"x": json.RawMessage("{")}}
	if err := writeList(new(bytes.Buffer), bad); err == nil {
		t.Error("what cannot be encoded is printed")
	}
	if err := writeList(full{}, bad[:1]); !errors.Is(err, errFull) {
		t.Errorf("a full disk is %v", err)
	}
}

var errFull = errors.New("no room")

// full is where nothing can be written.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }
