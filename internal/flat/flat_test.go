package flat_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster/internal/flat"
)

// read decodes an object with this package alone; false: it leaves it to encoding/json.
func read(data []byte) (map[string]any, bool) {
	m := map[string]any{}
	r := flat.Read(data)
	for r.Next() {
		m[string(r.Name())] = r.Any()
	}
	return m, !r.Bad()
}

// agrees fails when an object is read otherwise than by encoding/json. It reports whether it was read.
func agrees(t rapid.TB, data []byte) bool {
	t.Helper()
	got, ok := read(data)
	if !ok {
		return false
	}
	var want map[string]any
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatalf("%s is read, and is not JSON: %v", data, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s is read as %#v, not %#v", data, got, want)
	}
	return true
}

func TestReadsWhatIsPlain(t *testing.T) {
	for _, s := range []string{`{}`, ` { } `, `{"a":1}`, "{\n  \"a\": \"x\",\n  \"b\": [1, 2]\n}\n", `{"a":"\"\\\/\b\f\n\r\t"}`, `{"a":"é\u00e9"}`,
		`{"a":1763725382.123456,"b":-1,"c":0.5,"d":1e3,"e":0,"f":9007199254740993,"g":0.1234567890123}`, `{"a":true,"b":false,"c":null}`,
		`{"a":{"b":["}",{"c":"]"}]},"d":1}`, `{"a":1,"a":2}`, `{"":""}`} {
		if !agrees(t, []byte(s)) {
			t.Errorf("%s is not read", s)
		}
	}
}

func TestLeavesWhatIsNone(t *testing.T) {
	for _, s := range []string{``, `{`, `}`, `{}{}`, `{} x`, `[]`, `null`, `1`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,"a":1}`, `{"a":01}`, `{"a":1.}`,
		`{"a":.5}`, `{"a":+1}`, `{"a":-}`, `{"a":1e}`, `{"a":tru}`, `{"a":"x}`, `{"a":"\`, `{"a":"\x"}`, "{\"a\":\"\n\"}", `{"a":[}`, `{"a":[1,]}`,
		`{"a":{"b":}}`, `{"a" 1}`, `{"a":1 "b":2}`, `{"a":1.2.3}`, `{'a':1}`} {
		if m, ok := read([]byte(s)); ok {
			t.Errorf("%s is read as %v", s, m)
		}
	}
}

// Any object, and any damage to it, is read as encoding/json reads it, or left to it.
func TestAgreesWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Just[any](nil), rapid.Bool().AsAny(), rapid.String().AsAny(), rapid.Float64().AsAny(), rapid.Int().AsAny(),
			rapid.SliceOf(rapid.Int()).AsAny(), rapid.MapOf(rapid.String(), rapid.String()).AsAny())
		data, err := json.Marshal(rapid.MapOf(rapid.String(), value).Draw(t, "object"))
		if err != nil {
			t.Skip(err)
		}
		agrees(t, data)
		if len(data) > 2 {
			data[rapid.IntRange(0, len(data)-1).Draw(t, "place")] = rapid.SampledFrom([]byte("{}[],:\"\\0123456789.eE+-tfn x\n")).Draw(t, "byte")
			if utf8.Valid(data) {
				agrees(t, data)
			}
		}
	})
}

func TestLists(t *testing.T) {
	for s, want := range map[string][]int{`{"a":[]}`: {}, `{"a":[ 1 , -2,3]}`: {1, -2, 3}} {
		r := flat.Read([]byte(s))
		r.Next()
		if got := r.Ints(); !reflect.DeepEqual(got, want) || r.Next() || r.Bad() {
			t.Errorf("%s: %v", s, got)
		}
	}
	for _, s := range []string{`{"a":[1.5]}`, `{"a":["1"]}`, `{"a":[1 2]}`, `{"a":[1`, `{"a":null}`, `{"a":[01]}`, `{"a":[1234567890123456789]}`} {
		r := flat.Read([]byte(s))
		r.Next()
		if r.Ints(); !r.Bad() {
			t.Errorf("%s is read", s)
		}
	}
}
