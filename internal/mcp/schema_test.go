package mcp

import (
	"encoding/json"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// Schemas as servers write them become ones that model servers take.
func TestSchemas(t *testing.T) {
	p := func(s string) string { return `{"properties":` + s + `,"type":"object"}` }
	for schema, want := range map[string]string{
		`null`:              p(`{}`),
		`true`:              p(`{}`),
		`{"type":"string"}`: p(`{}`),
		`{"type":"object","properties":{"a":{"type":"string"}},"required":"a"}`: `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
		`{"properties":{"a":{"type":"string","required":true}}}`:                `{"properties":{"a":{"type":"string"}},"required":["a"],"type":"object"}`,
		`{"properties":{"a":{}},"required":["a","a","b",3]}`:                    `{"properties":{"a":{}},"required":["a"],"type":"object"}`,
		`{"properties":{"a":{}},"required":null}`:                               p(`{"a":{}}`),
		`{"properties":{"a":{"type":"array"}}}`:                                 p(`{"a":{"items":{},"type":"array"}}`),
		`{"properties":{"a":{"type":"array","items":[{"type":"string"}]}}}`:     p(`{"a":{"items":{"anyOf":[{"type":"string"}]},"type":"array"}}`),
		`{"properties":{"a":{"type":"str"},"b":{"type":["String","NULL"]}}}`:    p(`{"a":{"type":"string"},"b":{"type":["string","null"]}}`),
		`{"properties":{"a":{"type":"file"},"b":{"type":"string|null"}}}`:       p(`{"a":{},"b":{"type":["string","null"]}}`),
		`{"properties":{"a":"string","b":"the name","c":null,"d":true}}`:        p(`{"a":{"type":"string"},"b":{"description":"the name"},"c":{},"d":{}}`),
		`{"properties":[{"name":"a","type":"string"}]}`:                         p(`{"a":{"type":"string"}}`),
		`{"properties":{"a":{"minimum":1,"exclusiveMinimum":true}}}`:            p(`{"a":{"exclusiveMinimum":1}}`),
		`{"properties":{"a":{"minLength":-1,"maxLength":"9","multipleOf":0}}}`:  p(`{"a":{}}`),
		`{"properties":{"a":{"enum":[],"description":5,"examples":"x"}}}`:       p(`{"a":{}}`),
		`{"properties":{"a":{"pattern":"^(?!x)","format":7}}}`:                  p(`{"a":{}}`),
		`{"properties":{"a":{"anyOf":[]},"b":{"oneOf":{"type":"int"}}}}`:        p(`{"a":{},"b":{"oneOf":[{"type":"integer"}]}}`),
		`{"properties":{"a":{"$ref":"#/definitions/none"}}}`:                    p(`{"a":{}}`),
		`{"properties":{"a":{"$ref":"https://example.org/s.json"}}}`:            p(`{"a":{}}`),
		`{"$id":"urn:x","$schema":"x","id":"y","additionalProperties":"false"}`: `{"additionalProperties":false,"properties":{},"type":"object"}`,
		`{"properties":{"id":{"type":"int"}}}`:                                  p(`{"id":{"type":"integer"}}`),
		`{"anyOf":[{"properties":{"a":{"const":1}}},{"properties":{"a":{"const":2},"b":{}},"required":["b"]}]}`: p(
			`{"a":{"anyOf":[{"const":1},{"const":2}]},"b":{}}`),
		`{"allOf":[{"properties":{"a":{}},"required":["a"]}]}`:                               `{"properties":{"a":{}},"required":["a"],"type":"object"}`,
		`{"$ref":"#/definitions/In","definitions":{"In":{"properties":{"a":{}}}}}`:           `{"definitions":{"In":{"properties":{"a":{}}}},"properties":{"a":{}},"type":"object"}`,
		`{"properties":{"filter[id]":{"type":"string"},"$top":{"type":"integer"}}}`:          p(`{"filter_id":{"type":"string"},"top":{"type":"integer"}}`),
		`{"properties":{"o":{"properties":{"a b":{}},"required":["a b"]}},"required":["o"]}`: `{"properties":{"o":{"properties":{"a_b":{}},"required":["a_b"]}},"required":["o"],"type":"object"}`,
		`{"properties":{"a:b":{"type":"string"},"c":{"$ref":"#/properties/a:b"},"d":{"$ref":"#/properties/a%3Ab"}}}`: p(
			`{"a_b":{"type":"string"},"c":{"$ref":"#/properties/a_b"},"d":{"$ref":"#/properties/a_b"}}`),
		`{"properties":{"a":{"default":{"properties":"x","type":"str"}}}}`: p(`{"a":{"default":{"properties":"x","type":"str"}}}`),
	} {
		var v any
		require.NoError(t, json.Unmarshal([]byte(schema), &v))
		if got, _, ok := offered(v); string(got) != want || !ok {
			t.Errorf("%s\nbecomes %s\nwant    %s", schema, got, want)
		}
	}
}

// The server gets the real names of properties, at any depth, and other names and numbers as they are.
func TestRealNames(t *testing.T) {
	var v any
	schema := `{"properties":{"$top":{},"top":{},"sort by":{"type":"array","items":{"properties":{"größe":{}}}},"` +
		strings.Repeat("x", 70) + `":{}}}`
	require.NoError(t, json.Unmarshal([]byte(schema), &v))
	data, renamed, _ := offered(v)
	var s struct{ Properties map[string]any }
	require.NoError(t, json.Unmarshal(data, &s))
	if len(s.Properties) != 4 || len(renamed) != 4 {
		t.Fatalf("%s, %v", data, renamed)
	}
	for shown, real := range renamed {
		if len(shown) > maxProperty || sanitize(shown) != shown {
			t.Errorf("%s is shown as %s", real, shown)
		}
	}
	tool := Tool{Renamed: map[string]string{"top_1": "$top", "sort_by": "sort by", "gr__e": "größe"}}
	got := string(tool.realInput(json.RawMessage(`{"top":1,"top_1":12345678901234567890,"sort_by":[{"gr__e":"top_1"}]}`)))
	if want := `{"$top":12345678901234567890,"sort by":[{"größe":"top_1"}],"top":1}`; got != want {
		t.Errorf("the server gets %s, want %s", got, want)
	}
}

// A call has the real names.
func TestCallsHaveRealNames(t *testing.T) {
	p := prepared(t, "odd")
	if s := p.tool("mcp__odd__say").Spec(); !strings.Contains(string(s.Schema), `"answer_x"`) || !s.Optional {
		t.Errorf("the tool is %+v", s)
	}
	p.want("mcp__odd__say", `{"answer_x":"a"}`, false, `{"answer[x]":"a"}`)
}
