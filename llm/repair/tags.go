package repair

import (
	"encoding/json"
	"regexp"
	"strings"

	"muster/llm"
)

// tags is a form of calls in which each argument stands between two tags. An argument is its text as it is, but for one
// line end at each side. open has the tool's name, and field the name of an argument; raw, if it is "false", says that
// the argument is JSON.
type tags struct {
	open, field func() *regexp.Regexp
	end         string // of a field
	close       func() *regexp.Regexp
}

// forms are those of Qwen, of Claude, MiniMax and DeepSeek, and of GLM.
var forms = []tags{
	{lazily(`^(?:<tool_call>\s*)?<function=([\w.:-]+)>\s*`),
		lazily(`^\s*<parameter=([\w.-]+)()>`), "</parameter>", lazily(`^\s*</function>\s*(?:</tool_call>)?`)},
	{lazily(`^<invoke name="([\w.:-]+)">\s*`),
		lazily(`^\s*<parameter name="([\w.-]+)"(?: string="(true|false)")?>`), "</parameter>",
		lazily(`^\s*</invoke>`)},
	{lazily(`^<tool_call>\s*([\w.:-]+)\s*`),
		lazily(`^\s*<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>()`), "</arg_value>",
		lazily(`^\s*</tool_call>`)},
}

// markup finds tags of calls within an argument: then nobody can say where the argument ends.
var markup = lazily(`</?(?:parameter|function|invoke|tool_call|arg_key|arg_value)\b`)

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
		value, after, hasEnd := strings.Cut(text[len(m[0]):], form.end)
		if _, isTwice := input[m[1]]; !hasEnd || isTwice || markup().MatchString(value) {
			return nil, "", false
		}
		input[m[1]] = strings.TrimSuffix(strings.TrimPrefix(value, "\n"), "\n")
		if m[2] == "false" {
			data, err := Value([]byte(value))
			if err != nil {
				return nil, "", false
			}
			input[m[1]] = data
		}
		text = after
	}
}
