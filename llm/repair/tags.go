package repair

import (
	"encoding/json"
	"strings"
)

// field finds the beginning of a field in tags: those of Qwen, of Claude, MiniMax and DeepSeek, and of GLM.
// string="true" says that the value is the text as it is, and string="false" that it is JSON.
var field = lazily(`^\s*(?:<parameter=([\w.-]+)(?:>|(?m:$))|<parameter name="([\w.-]+)"(?: string="(true|false)")?>|` +
	`<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>)`)

// lastTags finds the end of a call whose fields are in tags, and cut the end of a text in which that of the last field
// of Qwen is missing.
var (
	lastTags = lazily(`^\s*(?:</function>\s*(?:</tool_call>)?|` +
		`</(?:tool_call|invoke|function_calls|tool_calls|minimax:tool_call)>)`)
	cut = lazily(`^</function>\s*</tool_call>\s*$`)
)

// markup finds tags of calls. In a value there are none: nobody could say where it ends.
var markup = lazily(`</?(?:parameter|function|invoke|function_calls|tool_calls?|minimax:tool_call|arg_key|arg_value)\b`)

// takeFields returns the fields in tags with which text begins, as JSON, and what follows the end of their call. A line
// end at both sides of a value is no part of it, unless the tag says that it is.
func takeFields(text string) (input json.RawMessage, rest string, ok bool) {
	fields := map[string]any{}
	for {
		m := field().FindStringSubmatch(text)
		if m == nil {
			break
		}
		name, kind, end := m[1]+m[2]+m[4], m[3], "</parameter>"
		if m[4] != "" {
			end = "</arg_value>"
		}
		text = text[len(m[0]):]
		at := markup().FindStringIndex(text)
		if _, isTwice := fields[name]; at == nil || isTwice {
			return nil, "", false
		}
		value, after := text[:at[0]], text[at[0]:]
		text, ok = strings.CutPrefix(after, end)
		if !ok && (m[1] == "" || !cut().MatchString(after)) {
			return nil, "", false
		}
		if kind != "true" && len(value) > 1 && value[0] == '\n' && value[len(value)-1] == '\n' {
			value = value[1 : len(value)-1]
		}
		fields[name] = value
		if kind == "false" {
			data, err := Value([]byte(value))
			if err != nil {
				return nil, "", false
			}
			fields[name] = data
		}
	}
	last := lastTags().FindString(text)
	input, err := json.Marshal(fields)
	return input, text[len(last):], last != "" && err == nil
}
