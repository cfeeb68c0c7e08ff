package journal

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// asByJSON fails when d reads a line otherwise than encoding/json.
func asByJSON(t rapid.TB, d *decoder, line []byte) {
	t.Helper()
	var want muster.Event
	bad := json.Unmarshal(line, &want) != nil || want.Kind == ""
	before := slices.Clone(line)
	got, err := d.decode(line, nil)
	if (err != nil) != bad || !bad && !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %#v, %v, not %#v", line, got, err, want)
	}
	if !slices.Equal(line, before) {
		t.Errorf("%s has become %s", before, line)
	}
}

func TestOddEvents(t *testing.T) {
	d, other := new(decoder), new(decoder)
	if _, ok := d.decodeCompact([]byte(`{"event":"a","n":1,"text":"a","ts":1.5,"task_id":1,"member":"alice"}`), nil); !ok {
		t.Error("an ordinary line is not read the quick way")
	}
	for _, s := range []string{`"n":1`, `"n":2`, `"n":12`, `"n":1`, `"n":15`, `"n":01`, `"n":1.`, `"n":.5`, `"n":-`, `"n":-0`, `"n":+1`, `"n":1e3`, `"n":1e`, `"n":0.10`,
		`"n":`, `"n"`, `"n":1,`, `"n":1 `, ` "n":1`, `"n" :1`, `"n": 1`, `"n":1,"n":2`, `"n":null`, `"n":tru`, `"n":true`, `"n":truex`, `"n":false`, `"n":true`, `"n":[1]`, `"n":{"a":1}`,
		`"text":"a"`, `"text":"ab"`, `"text":"a`, `"text":"a"b`, `"text":"a\"`, `"text":"a\"b"`, `"text":"a\x"`, `"text":"\u00e9"`, "\"text\":\"a\nb\"", "\"text\":\"a\xff\"", `"text":"é"`,
		"\"te\xffxt\":1", `"te\u0078t":1`, `"Text":1`, `"EVENT":"b"`, `"ts":1.5`, `"ts":"1"`, `"TS":2`, `"ts":1.25,"ts":null`, `"task_id":1`, `"task_id":01`, `"task_id":1.0`, `"task_id":-1`,
		`"task_id":1e1`, `"task_id":12345678901234567890`, `"member":"bob"`, `"member":7`, `"member":null`, `"event":"b"`, `"event":null`, `"event":""`, `"event":5`, `"":1`, `"":""`} {
		for _, d := range []*decoder{d, other, new(decoder)} {
			asByJSON(t, d, []byte(`{"event":"a",`+s+`}`))
		}
		asByJSON(t, d, []byte(`{"event":"a","n":1,"text":"a","ts":1.5,"task_id":1,"member":"alice"}`))
	}
	for _, s := range []string{``, `{`, `{}`, `}`, `[]`, `null`, `{"event":"a"}x`, `{"event":"a"}}`, `{"event":"a"`, `,"event":"a"}`, ` {"event":"a"} `, `{"event"`, `{"event":`, `{"event":"a","n":`} {
		asByJSON(t, d, []byte(s))
	}
}
