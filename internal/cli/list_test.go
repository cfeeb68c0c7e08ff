package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"muster"
	"muster/internal/testing/require"
)

// A list that is printed piece by piece is what encoding/json makes of it, to the byte, with the fields of other
// programs.
func TestListsAreEncodedAsEver(t *testing.T) {
	same := func(t testing.TB, all []muster.Task) {
		want := require.Value(muster.Encode(all))(t)
		var got bytes.Buffer
		if err := writeList(&got, all); err != nil || got.String() != string(want) {
			t.Fatalf("%v\n%s\nis not\n%s", err, &got, want)
		}
	}
	for _, value := range []string{`{}`, `[]`, `{"a":{"b":[1,{}]},"c":[[],[ "x,\":{" ]]}`, `-1.5e3`, `null`, `"<é\u2028"`} {
		task := muster.Task{ID: 7, Subject: "é\x00\xff", Result: `<&> "` + "\u2028\\", BlockedBy: []muster.TaskID{7, 7}, ClaimedAt: 1.5e9,
			Landed: &muster.Landed{Commit: "abc"}, Extra: muster.Extra{"x": json.RawMessage(value), `y"`: json.RawMessage(value)}}
		same(t, []muster.Task{task, {}, task})
	}
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
