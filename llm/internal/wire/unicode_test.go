package wire

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"muster/llm"
)

func TestToUnicode(t *testing.T) {
	for in, want := range map[string]string{
		`{"a":"smile \ud83d"}`:          `{"a":"smile \ufffd"}`,
		`{"a":"\ud83d\ude00"}`:          `{"a":"\ud83d\ude00"}`,
		`{"a":"\uD83D\uDE00"}`:          `{"a":"\uD83D\uDE00"}`,
		`{"a":"\ude00\ud83d"}`:          `{"a":"\ufffd\ufffd"}`,
		`{"a":"\ud83d\ud83d\ude00x"}`:   `{"a":"\ufffd\ud83d\ude00x"}`,
		`{"a":"\ud83d\\ude00"}`:         `{"a":"\ufffd\\ude00"}`,
		`{"a":"\ud83d\u0041"}`:          `{"a":"\ufffd\u0041"}`,
		`{"a":"\\ud83d \\\\u0000"}`:     `{"a":"\\ud83d \\\\u0000"}`,
		`{"a":"\\\ud83d"}`:              `{"a":"\\\ufffd"}`,
		`{"\udc00":1,"a":["\u0000x"]}`:  `{"\ufffd":1,"a":["\ufffdx"]}`,
		`{"a":"\u0001\n\"\u00e9"}`:      `{"a":"\u0001\n\"\u00e9"}`,
		"{\"a\":\"\xff\xed\xa0\xbdx\"}": "{\"a\":\"\ufffdx\"}",
		`\`:                             `\`,
		`\ud83`:                         `\ud83`,
		``:                              ``,
	} {
		if got := string(toUnicode([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}

// isText reports whether JSON and each JSON in a string of it is Unicode without NUL.
func isText(t *testing.T, data []byte) bool {
	t.Helper()
	lone := regexp.MustCompile(`\\u(?i:d[89ab][0-9a-f]{2}|d[c-f][0-9a-f]{2}|0000)`)
	plain := strings.ReplaceAll(string(data), `\\`, "")
	if !utf8.Valid(data) || lone.MatchString(strings.ReplaceAll(plain, `\ud83d\ude00`, "")) {
		return false
	}
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	return everyString(v, func(s string) bool {
		return !strings.HasPrefix(s, `{"`) || !json.Valid([]byte(s)) || isText(t, []byte(s))
	})
}

// everyString reports whether is holds for each string of a value.
func everyString(v any, is func(string) bool) bool {
	switch v := v.(type) {
	case string:
		return is(v)
	case []any:
		for _, x := range v {
			if !everyString(x, is) {
				return false
			}
		}
	case map[string]any:
		for _, x := range v {
			if !everyString(x, is) {
				return false
			}
		}
	}
	return true
}

// Whatever JSON comes in, what goes out is text, means the same to a program in Go but for NUL, and is left as it is when
// it goes through once more.
func TestToUnicodeOfAnything(t *testing.T) {
	piece := rapid.SampledFrom([]string{`\ud83d`, `\ude00`, `\ud83d\ude00`, `\u0000`, `\\`, `\"`, "\xff", "x", `\u00e9`, "😀", `u`})
	rapid.Check(t, func(r *rapid.T) {
		in := `{"a":"` + strings.Join(rapid.SliceOf(piece).Draw(r, "pieces"), "") + `"}`
		var before, after struct{ A string }
		out := toUnicode([]byte(in))
		if err := json.Unmarshal([]byte(in), &before); err != nil {
			r.Skip()
		}
		if err := json.Unmarshal(out, &after); err != nil || !isText(t, out) {
			r.Fatalf("%s becomes %s: %v", in, out, err)
		}
		squeeze := func(s string) string {
			return regexp.MustCompile("\ufffd+").ReplaceAllString(strings.ReplaceAll(s, "\x00", "\ufffd"), "\ufffd")
		}
		if squeeze(before.A) != squeeze(after.A) || string(toUnicode([]byte(string(out)))) != string(out) {
			r.Fatalf("%s becomes %s", in, out)
		}
	})
}

// What servers say of characters that they refuse begins the conversation anew; what they say of other things does not.
func TestRefusedCharacters(t *testing.T) {
	p := Peer{URL: "http://h/v1", Model: "m"}
	for message, status := range map[string]int{
		"The request body is not valid JSON: no low surrogate in string: line 1 column 158520 (char 158519)":            400,
		"The request body is not valid JSON: unexpected surrogate: line 1 column 9 (char 8)":                            400,
		"the body is not JSON: a surrogate without its other half":                                                      400,
		"Failed to parse the request body as JSON: messages[3].content: lone leading surrogate in hex escape at line 1": 400,
		"Failed to deserialize the JSON body into the target type: unexpected end of hex escape at line 1 column 8812":  422,
		"'utf-8' codec can't encode character '\\ud83d' in position 12: surrogates not allowed":                         500,
		"Input should be a valid string, unable to parse raw data as a unicode string":                                  422,
		"[json.exception.parse_error.101] invalid string: surrogate U+D800..U+DBFF must be followed by U+DC00..U+DFFF":  400,
		"unsupported Unicode escape sequence: \\u0000 cannot be converted to text.":                                     400,
		"invalid byte sequence for encoding \"UTF8\": 0x00":                                                             400,
		"String field contains invalid UTF-8 data when serializing a protocol buffer":                                   400,
		"messages.4.content.0.text: null characters are not allowed":                                                    400,
		"Invalid character in string: illegal character ((CTRL-CHAR, code 0))":                                          400,
		"JSON parse error: Incomplete surrogate pair: first char 0xd83d, second 0x22":                                   400,
		"invalid \\uXXXX\\uXXXX surrogate pair":                                                                         400,
	} {
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message, "type": "invalid_request_error"}})
		if e := p.errorForResponse(status, nil, body); e.Kind != llm.BadHistory || !strings.Contains(e.Error(), "refuses a character") {
			t.Errorf("%s: %v", message, e)
		}
	}
	for message, status := range map[string]int{
		"'utf-8' codec can't decode byte 0xff in position 0: invalid start byte": 500, // of the server's own upstream
		"messages.0.content: Input should be a valid string":                     400,
		"Rate limit reached for requests with surrogate":                         429,
		"tools.0.name: string should match pattern '^[a-zA-Z0-9_-]{1,128}$'":     400,
		"temperature: null is not allowed":                                       400,
	} {
		body, _ := json.Marshal(map[string]any{"error": map[string]string{"message": message}})
		if e := p.errorForResponse(status, nil, body); e.Kind == llm.BadHistory {
			t.Errorf("%s: %v", message, e)
		}
	}
}
