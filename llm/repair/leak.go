package repair

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"muster/llm"
)

// The limits of the search for calls in a text: how many places are looked at, and how many calls are taken.
const (
	maxPlaces = 100
	maxLeaked = 32
)

// lazily returns a pattern that is compiled when it is first needed: commands that ask no model never need one.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// opener finds where a call may begin in a text: at the tokens with which models begin one, and which their servers
// should have made calls of.
var opener = lazily(`<tool_call>|<function=|<function_calls>|<tool_calls>|<minimax:tool_call>|<invoke name=|` +
	`<\|tool_calls_section_begin\|>|<\|tool_call_begin\|>|<｜tool▁calls?▁begin｜>|<｜DSML｜|` +
	`<\|start\|>assistant|<\|channel\|>|(?:assistant)?commentary to=|<\|python_tag\|>|\[TOOL_CALLS\]`)

// around finds what stands between calls and after the last one, and means nothing.
var around = lazily(`^(?:\s+|</?(?:function_calls|tool_calls|minimax:tool_call)>|` +
	`<\|tool_calls_section_(?:begin|end)\|>|<｜tool▁calls▁(?:begin|end)｜>|` +
	`<\|(?:im_end|eot_id|eom_id|call|return|end)\|>|` +
	`</s>|<｜end▁of▁sentence｜>)+`)

// leaked returns the calls with which a text ends, and the text before them. All of what follows the first one must be
// calls of these tools, whole and without doubt; otherwise there are none. What stands in a fence, in quotes, within a
// line, or in thoughts that have no end, is talk about calls.
func leaked(text string, tools []string) (before string, calls []llm.Call) {
	if !strings.Contains(text, "<") && !strings.Contains(text, "[TOOL_CALLS]") && !strings.Contains(text, " to=") {
		return text, nil
	}
	for _, at := range opener().FindAllStringIndex(text, maxPlaces) {
		if !mayBegin(text[:at[0]]) {
			continue
		}
		tail := text[at[0]:]
		if strings.HasPrefix(tail, "<｜DSML｜") { // DeepSeek marks its tags so
			tail = strings.ReplaceAll(strings.ReplaceAll(tail, "</｜DSML｜", "</"), "<｜DSML｜", "<")
		}
		if calls := takeAll(tail, tools); len(calls) > 0 {
			return strings.TrimRight(text[:at[0]], " \t\r\n"), calls
		}
	}
	return text, nil
}

// mayBegin reports whether a call may follow this text: on a line of its own, or right behind a sentence.
func mayBegin(before string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	last, _ := utf8.DecodeLastRuneInString(line)
	if isOwn := strings.Trim(line, " ") == "" && len(line) < 4; !isOwn && !strings.ContainsRune(".!?:>", last) ||
		strings.Count(line, "`")%2 == 1 || strings.HasPrefix(strings.TrimSpace(line), ">") {
		return false
	}
	fence := ""
	for l := range strings.Lines(before) {
		mark := strings.TrimLeft(l, " \t")
		mark = mark[:min(len(mark), 3)]
		switch {
		case mark != "```" && mark != "~~~":
		case fence == "":
			fence = mark
		case fence == mark:
			fence = ""
		}
	}
	return fence == "" && strings.LastIndex(before, "<think>") <= strings.LastIndex(before, "</think>")
}

// takeAll returns the calls that text consists of, or none.
func takeAll(text string, tools []string) (calls []llm.Call) {
	for {
		text = text[len(around().FindString(text)):]
		if text == "" {
			return calls
		}
		taken, rest := take(text)
		if len(taken) == 0 || len(calls)+len(taken) > maxLeaked {
			return nil
		}
		for _, c := range taken {
			if c.Name = Name(c.Name, tools); c.Name == "" {
				return nil
			}
			calls = append(calls, c)
		}
		text = rest
	}
}

// The beginnings of a call that has JSON as its arguments, with the name of the tool in them, and what may follow the
// JSON. In whole, JSON has the name, too.
var (
	named = []func() *regexp.Regexp{
		// Kimi
		lazily(`^<\|tool_call_begin\|>\s*([\w.:-]+)\s*<\|tool_call_argument_begin\|>\s*`),
		// DeepSeek
		lazily("^<｜tool▁call▁begin｜>\\s*(?:function<｜tool▁sep｜>)?([\\w.:-]+)" +
			"(?:<｜tool▁sep｜>|\\s)\\s*(?:```json\\s)?\\s*"),
		// gpt-oss
		lazily(`^(?:<\|start\|>assistant)?(?:<\|channel\|>|assistant)?(?:commentary|analysis)?\s*to=([\w.:-]+)` +
			`\s*(?:<\|channel\|>(?:commentary|analysis))?\s*` +
			`(?:<\|constrain\|>)?(?:json|code)?\s*(?:<\|message\|>)?\s*`),
		// Llama, Qwen
		lazily(`^(?:<tool_call>\s*)?<function=([\w.:-]+)>\s*`),
		// Mistral
		lazily(`^\[TOOL_CALLS\]\s*([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*`),
	}
	whole      = lazily(`^(?:<tool_call>|<\|python_tag\|>|\[TOOL_CALLS\])\s*`)
	afterCalls = lazily("^\\s*(?:```\\s*)?" +
		"(?:<\\|tool_call_end\\|>|<｜tool▁call▁end｜>|</function>\\s*(?:</tool_call>)?|</tool_call>)")
)

// take returns the calls with which text begins, and the rest of it.
func take(text string) (calls []llm.Call, rest string) {
	if call, rest, ok := takeTags(text); ok {
		return []llm.Call{call}, rest
	}
	for _, begin := range named {
		m := begin().FindStringSubmatch(text)
		if m == nil || !strings.HasPrefix(text[len(m[0]):], "{") {
			continue
		}
		if input, rest, ok := takeValue(text[len(m[0]):]); ok {
			return []llm.Call{{Name: m[1], Input: input}}, rest
		}
	}
	m := whole().FindString(text)
	if m == "" {
		return nil, ""
	}
	value, rest, ok := takeValue(text[len(m):])
	if !ok {
		return nil, ""
	}
	list := []json.RawMessage{value}
	if value[0] == '[' {
		if json.Unmarshal(value, &list) != nil {
			return nil, ""
		}
	}
	for _, v := range list {
		c, ok := wholeCall(v)
		if !ok {
			return nil, ""
		}
		calls = append(calls, c)
	}
	return calls, rest
}

// takeValue returns the value of JSON with which text begins, and what follows it and the end of its call.
func takeValue(text string) (value json.RawMessage, rest string, ok bool) {
	p := parser{in: text}
	if p.value() != nil {
		return nil, "", false
	}
	rest = text[p.pos:]
	return p.out.Bytes(), rest[len(afterCalls().FindString(rest)):], true
}

// wholeCall reads a call that is one object.
func wholeCall(data json.RawMessage) (llm.Call, bool) {
	var c struct {
		Name                         string
		Arguments, Parameters, Input json.RawMessage
	}
	if json.Unmarshal(data, &c) != nil || c.Name == "" {
		return llm.Call{}, false
	}
	var given []json.RawMessage
	for _, args := range []json.RawMessage{c.Arguments, c.Parameters, c.Input} {
		if args != nil {
			given = append(given, args)
		}
	}
	if len(given) != 1 {
		return llm.Call{}, false
	}
	input, err := Object(given[0])
	return llm.Call{Name: c.Name, Input: input}, err == nil
}
