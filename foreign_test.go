package muster

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestForeignFieldsAreAlwaysFound compares the quick look for fields that are not ours with decoding all of them.
func TestForeignFieldsAreAlwaysFound(t *testing.T) {
	known := map[string]bool{"a": true, "b": true, "c\"": true}
	var value func(depth int) *rapid.Generator[any]
	value = func(depth int) *rapid.Generator[any] {
		plain := rapid.OneOf(rapid.StringMatching(`[abx\\",:{}\[\]é]{0,5}`).AsAny(), rapid.Int().AsAny(), rapid.Bool().AsAny(), rapid.Just[any](nil))
		if depth == 0 {
			return plain
		}
		return rapid.OneOf(plain, rapid.SliceOfN(value(depth-1), 0, 3).AsAny(),
			rapid.MapOfN(rapid.StringMatching(`[abx"\\]{0,2}`), value(depth-1), 0, 3).AsAny())
	}
	rapid.Check(t, func(t *rapid.T) {
		doc := rapid.MapOfN(rapid.StringMatching(`[abcx"\\:,]{0,2}`), value(2), 0, 4).Draw(t, "document")
		data, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "indented") {
			data, _ = json.MarshalIndent(doc, "", "  ")
		}
		want := false
		for name := range doc {
			want = want || !known[name]
		}
		if got := foreign(data, known); want && !got {
			t.Fatalf("a field that is none of %v was not found in\n%s", known, data)
		} else if got && !want && !strings.Contains(string(data), `\`) {
			t.Fatalf("there is none in\n%s", data)
		}
	})
}
