package repair

import (
	"encoding/json"
	"regexp"

	"muster/llm"
)

// tags is a form of calls in which each argument stands between two tags. open has the tool's name, and field the name
// of an argument; string="true" says that the argument is the text as it is, and string="false" that it is JSON. Of
// other arguments a line end at both sides is no part. cut is what ends a text whose last argument has no end.
type tags struct{ open, field, end, close, cut func() *regexp.Regexp }

// forms are those of Qwen, of Claude, MiniMax and DeepSeek, and of GLM.
var forms = []tags{
	{lazily(`^(?:<tool_call>\s*)?<function=([\w.:-]+)>\s*`), lazily(`^\s*<parameter=([\w.-]+)()(?:>|(?m:$))`),
		lazily(`^</parameter>`), lazily(`^\s*(?:</function>\s*(?:</tool_call>)?|</tool_call>)`),
		lazily(`^</function>\s*</tool_call>\s*$`)},
	{lazily(`^<invoke name="([\w.:-]+)">\s*`),
		lazily(`^\s*<parameter name="([\w.-]+)"(?: string="(true|false)")?>`),
		lazily(`^</parameter>`), lazily(`^\s*</(?:invoke|function_calls|tool_calls|minimax:tool_call)>`), never},
	{lazily(`^<tool_call>\s*([\w.:-]+)\s*(?:</arg_value>)?`),
		lazily(`^\s*<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>()`),
		lazily(`^</arg_value>`), lazily(`^\s*</tool_call>`), never},
}

// never matches nothing.
var never = lazily(`^\b\B`)

// markup finds tags of calls. In an argument there are none: nobody could say where it ends.
var markup = lazily(`</?(?:parameter|function|invoke|function_calls|tool_calls?|minimax:tool_call|arg_key|arg_value)\b`)

// takeTags returns the call in tags with which text begins, and what follows it.
func takeTags(text string) (c llm.Call, rest string, ok bool) {
	for _, form := range forms {
		m := form.open().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		input, rest, ok := form.arguments(text[len(m[0]):])
		end := form.close().FindString(rest)
		if !ok || end == "" {
			continue
		}
		data, err := json.Marshal(input)
		if err != nil {
			return c, "", false
		}
		return llm.Call{Name: m[1], Input: data}, rest[len(end):], true
	}
	return c, "", false
}

// arguments returns the arguments with which text begins, and what follows them.
func (form tags) arguments(text string) (input map[string]any, rest string, ok bool) {
	input = map[string]any{}
	for {
		m := form.field().FindStringSubmatch(text)
		if m == nil {
			return input, text, true
		}
		text = text[len(m[0]):]
		at := markup().FindStringIndex(text)
		if _, isTwice := input[m[1]]; at == nil || isTwice {
			return nil, "", false
		}
		value, after := text[:at[0]], text[at[0]:]
		end := form.end().FindString(after)
		if end == "" && !form.cut().MatchString(after) {
			return nil, "", false
		}
		text = after[len(end):]
		if m[2] != "true" && len(value) > 1 && value[0] == '\n' && value[len(value)-1] == '\n' {
			value = value[1 : len(value)-1]
		}
		input[m[1]] = value
		if m[2] == "false" {
			data, err := Value([]byte(value))
			if err != nil {
				return nil, "", false
			}
			input[m[1]] = data
		}
	}
}
