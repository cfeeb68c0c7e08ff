package journal

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// An event that is read in one pass is the one that encoding/json reads.
func TestPlainEvents(t *testing.T) {
	some := 0
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.String().AsAny(), rapid.Float64().AsAny(), rapid.Bool().AsAny(), rapid.SliceOf(rapid.String()).AsAny(), rapid.Just[any](nil))
		in := muster.Event{Kind: rapid.String().Draw(t, "kind"), At: float64(rapid.Int64Range(0, 1<<52).Draw(t, "us")) / 1e6,
			Member: muster.Name(rapid.String().Draw(t, "member")), Task: muster.TaskID(rapid.IntRange(0, 1000).Draw(t, "task")),
			Fields: rapid.MapOf(rapid.SampledFrom([]string{"text", "Event", "TS", "seconds", "é", "event", "ſ"}), value).Draw(t, "fields")}
		data, err := muster.Line(in)
		if err != nil {
			t.Skip(err)
		}
		var want muster.Event
		if err := json.Unmarshal(data, &want); err != nil {
			return
		}
		if got, ok := new(decoder).plain(data); ok {
			some++
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%s is read as %#v, not %#v", data, got, want)
			}
		}
	})
	if some == 0 {
		t.Error("no event was read")
	}
}
