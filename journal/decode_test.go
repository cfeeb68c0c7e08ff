package journal

import (
	"encoding/json"
	"maps"
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

// Lines in a row, of which each may have what the one before had, are read as encoding/json reads each by itself, and
// so is any damage to them.
func TestEventsInARow(t *testing.T) {
	quick, damaged := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		// Few names and few values: they repeat, and one begins as another does.
		values := map[string][]string{"event": {`"task.claimed"`, `"task"`, `""`, `5`, `null`}, "ts": {`1`, `1.5`, `1795292064.5195151`, `1e3`, `"1"`},
			"member": {`"alice"`, `"ali"`, `null`}, "task_id": {`1`, `12`, `1.0`, `0`, `01`},
			"text": {`"go"`, `"go test"`, `""`, `"é"`, `"a\"b"`, `"\u00e9"`, `"go,\"}"`}, "n": {`1`, `12`, `1.5`, `-0`, `-1.25`, `0.5`, `1e9`, `null`, `true`, `false`, `"1"`},
			"x": {`true`, `["a"]`, `{"a":1}`, `12`}, "Text": {`1`}}
		names := slices.Sorted(maps.Keys(values))
		d := new(decoder)
		for range rapid.IntRange(2, 8).Draw(t, "lines") {
			line := []byte(`{"event":"a"`)
			for _, name := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names") {
				line = append(line, ',')
				line = append(append(append(line, '"'), name...), `":`...)
				line = append(line, rapid.SampledFrom(values[name]).Draw(t, "value")...)
			}
			line = append(line, '}')
			if rapid.IntRange(0, 3).Draw(t, "damage") == 0 {
				line[rapid.IntRange(0, len(line)-1).Draw(t, "place")] = rapid.SampledFrom([]byte("{}[],:\"\\019.eE+-tn x\n\xff")).Draw(t, "byte")
				damaged++
			}
			if rapid.IntRange(0, 9).Draw(t, "cut") == 0 {
				line = line[:rapid.IntRange(0, len(line)).Draw(t, "size")]
			}
			if _, ok := new(decoder).decodeCompact(line, nil); ok {
				quick++
			}
			asByJSON(t, d, line)
		}
	})
	if quick == 0 || damaged == 0 {
		t.Errorf("%d lines were read the quick way, %d were damaged", quick, damaged)
	}
}
