package repair

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster/internal/lazyregexp"
	"muster/llm"
)

// The limits of the search for calls in a text: how many places are looked at, and how many calls are taken.
const (
	maxPlaces = 100
	maxLeaked = 32
)

// opener finds where a call may begin in a text: at the tokens with which models begin one, and which their servers
// should have made calls of.
var opener = lazyregexp.New(`<tool_calls?>|<tool_use>|<function=|<function_calls>|<minimax:tool_call>|<invoke name=|` +
	`<\|tool_calls?_section_begin\|>|<\|tool_call_begin\|>|<｜tool▁calls?▁begin｜>|<[|｜]{1,2}DSML[|｜]|` +
	`\]<\]minimax\[>\[<|<\|tool_call>call:|<\|start\|>assistant|<\|channel\|>|` +
	`(?:assistant|commentary)+ to=|to=functions\.|<\|python_(?:tag|start)\|>|\[TOOL_CALLS\]`)

// around finds what stands around calls and means nothing.
var around = lazyregexp.New("^(?:\\s+|</?(?:function_calls|tool_calls|minimax:tool_call)>|" +
	"\\}?\\s*</(?:tool_call|tool_use|function|function_invocation|invoke)>|<tool_call\\|>|" +
	`<\|tool_calls?_section_(?:begin|end)\|>|<\|(?:tool_call_end|python_end)\|>|` +
	"<｜tool▁calls▁(?:begin|end)｜>|(?:```\\s*)?<｜tool▁call▁end｜>|" +
	`<\|(?:im_end|eot_id|eom_id|call|return|end|observation|user)\|>|</s>|<｜end▁of▁sentence｜>)+`)

// sentinel finds the tags that DeepSeek and MiniMax mark as those of calls.
var sentinel = lazyregexp.New(`<(/?)[|｜]{1,2}DSML[|｜]{1,2}(function_calls|tool_calls|invoke|parameter)\b|` +
	`\]<\]minimax\[>\[<(/?)([\w-]+)`)

// plainTags returns text with the tags as other models write them. MiniMax names the tag of a field for the field.
func plainTags(text string) string {
	return sentinel().ReplaceAllStringFunc(text, func(tag string) string {
		m := sentinel().FindStringSubmatch(tag)
		switch slash, name := m[1]+m[3], m[2]+m[4]; {
		case m[2] != "" || name == "tool_call" || name == "invoke":
			return "<" + slash + name
		case slash != "":
			return "</parameter"
		default:
			return `<parameter name="` + name + `" string="true"`
		}
	})
}

// leaked returns the calls with which a text ends, and the text before them. All of what follows the first one must be
// calls of these tools, whole and without doubt; otherwise there are none. What stands in a fence, in quotes, within a
// line, or in thoughts that have no end, is talk about calls.
func leaked(text string, tools []string) (before string, calls []llm.Call) {
	for _, at := range opener().FindAllStringIndex(text, maxPlaces) {
		if !mayBegin(text[:at[0]], text[at[0]:at[1]]) {
			continue
		}
		tail := text[at[0]:]
		if tag := text[at[0]:at[1]]; strings.HasPrefix(tag, "]") || strings.Contains(tag, "DSML") {
			tail = plainTags(tail)
		}
		if calls := takeAll(tail, tools); len(calls) > 0 {
			return strings.TrimRight(text[:at[0]], " \t\r\n"), calls
		}
	}
	return text, nil
}

// mayBegin reports whether a call that begins with this tag may follow this text: on a line of its own, or behind a
// sentence, or, where the tag is a token that only models write, right behind a word.
func mayBegin(before, tag string) bool {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	last, _ := utf8.DecodeLastRuneInString(line)
	ended := strings.TrimRight(line, " ")
	end, _ := utf8.DecodeLastRuneInString(ended)
	isOwn := ended == "" && len(line) < 4
	isSentence := strings.ContainsRune(".!?。！？", end) && !abbreviation().MatchString(ended)
	isToken := strings.HasPrefix(tag, "<|") || strings.HasPrefix(tag, "<｜")
	isBehind := isSentence || strings.ContainsRune(":：>", last) || isToken && unicode.IsLetter(last)
	if !isOwn && !isBehind ||
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

// abbreviation finds a period that ends no sentence: what follows is an example.
var abbreviation = lazyregexp.New(`(?i)\b(?:e\.g|i\.e|eg|ie|ex|cf|viz)\.$`)

// takeAll returns the calls that text consists of, or none.
func takeAll(text string, tools []string) (calls []llm.Call) {
	for text != "" {
		taken, rest := take(text)
		if len(taken) == 0 {
			rest = text[len(around().FindString(text)):]
		}
		if len(rest) == len(text) || len(calls)+len(taken) > maxLeaked {
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
	return calls
}

// The beginnings of a call. After those in tagged its fields follow in tags, or JSON, as after those in named. In
// whole, the JSON has the name, too.
var (
	tagged = []func() *regexp.Regexp{
		lazyregexp.New(`^(?:<tool_call>\s*)?<function=([\w.:-]+)>\s*`),  // Qwen, Llama
		lazyregexp.New(`^<invoke name="([\w.:-]+)">\s*`),                // Claude, MiniMax, DeepSeek
		lazyregexp.New(`^<tool_call>\s*([\w.:-]+)\s*(?:</arg_value>)?`), // GLM
	}
	named = []func() *regexp.Regexp{
		// Kimi
		lazyregexp.New(`^<\|tool_call_begin\|>\s*([\w.:-]+)\s*<\|tool_call_argument_begin\|>\s*`),
		// DeepSeek
		lazyregexp.New("^<｜tool▁call▁begin｜>\\s*(?:function<｜tool▁sep｜>)?([\\w.:-]+)" +
			"(?:<｜tool▁sep｜>|\\s)\\s*(?:```json\\s)?\\s*"),
		// gpt-oss
		lazyregexp.New(`^(?:<\|start\|>assistant)?(?:<\|channel\|>|assistant)?(?:commentary|analysis)?` +
			`\s*to=([\w.:-]+)\s*(?:(?:<\|channel\|>)?(?:commentary|analysis))?\s*` +
			`(?:<\|constrain\|>)?(?:json|code)?\s*(?:<\|message\|>)?\s*`),
		// Mistral
		lazyregexp.New(`^\[TOOL_CALLS\]\s*([\w.-]+)(?:\[CALL_ID\]\w+)?(?:\[ARGS\])?\s*`),
		// Gemma
		lazyregexp.New(`^<\|tool_call>call:([\w.:-]+)\s*`),
	}
	whole = lazyregexp.New(`^(?:<tool_calls?>|<tool_use>|<\|python_(?:tag|start)\|>|\[TOOL_CALLS\])\s*`)
)

// take returns the calls with which text begins, and the rest of it.
func take(text string) (calls []llm.Call, rest string) {
	for i, begin := range slices.Concat(tagged, named) {
		m := begin().FindStringSubmatch(text)
		if m == nil {
			continue
		}
		var input json.RawMessage
		rest, ok := text[len(m[0]):], false
		if strings.HasPrefix(rest, "{") {
			input, rest, ok = takeValue(rest)
		} else if i < len(tagged) {
			input, rest, ok = takeFields(rest)
		}
		if ok {
			return []llm.Call{{Name: m[1], Input: input}}, rest
		}
	}
	rest = text[len(whole().FindString(text)):]
	for isFirst := true; len(rest) < len(text) && (isFirst || strings.HasPrefix(rest, "{")); isFirst = false {
		value, after, ok := takeValue(rest)
		list := []json.RawMessage{value}
		if ok && value[0] == '[' {
			ok = json.Unmarshal(value, &list) == nil
		}
		for _, v := range list {
			var c llm.Call
			if ok {
				c, ok = wholeCall(v)
			}
			calls = append(calls, c)
		}
		if !ok {
			return nil, ""
		}
		rest = strings.TrimLeft(after, " \t\r\n")
	}
	return calls, rest
}

// takeValue returns the value of JSON with which text begins, and what follows it.
func takeValue(text string) (value json.RawMessage, rest string, ok bool) {
	p := parser{in: text}
	ok = p.value() == nil
	return p.out.Bytes(), text[p.pos:], ok
}

// wholeCall reads a call that is one object: with a name and arguments, or within a function, or with the arguments
// beside the name. What has a description is no call, but says what a tool is.
func wholeCall(data json.RawMessage) (c llm.Call, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields["description"] != nil {
		return c, false
	}
	if f := fields["function"]; len(f) > 0 && f[0] == '{' {
		return wholeCall(f)
	}
	if json.Unmarshal(fields["name"], &c.Name) != nil || c.Name == "" {
		return c, false
	}
	given := 0
	for _, name := range []string{"arguments", "parameters", "input"} {
		if args := fields[name]; args != nil {
			data, given = args, given+1
		}
	}
	if given == 0 {
		for _, name := range []string{"name", "type", "id"} {
			delete(fields, name)
		}
		data, _ = json.Marshal(fields) // it was just decoded
	}
	input, err := Object(data)
	c.Input = input
	return c, err == nil && given < 2
}

// field finds the beginning of a field in tags: those of Qwen, of Claude, MiniMax and DeepSeek, and of GLM.
// string="true" says that the value is the text as it is, and string="false" that it is JSON.
var field = lazyregexp.New(`^\s*(?:<parameter=([\w.-]+)(?:>|(?m:$))|` +
	`<parameter name="([\w.-]+)"(?: string="(true|false)")?>|` +
	`<arg_key>\s*([\w.-]+)\s*</arg_key>\s*<arg_value>)`)

// lastTags finds the end of a call whose fields are in tags, and cut the end of a text in which that of the last field
// of Qwen is missing.
var (
	lastTags = lazyregexp.New(`^\s*(?:</function>\s*(?:</tool_call>)?|` +
		`</(?:tool_call|invoke|function_calls|tool_calls|minimax:tool_call)>)`)
	cut = lazyregexp.New(`^</function>\s*</tool_call>\s*$`)
)

// markup finds tags of calls. In a value there are none: nobody could say where it ends.
var markup = lazyregexp.New(`</?(?:parameter|function|invoke|function_calls|tool_calls?|minimax:tool_call|` +
	`arg_key|arg_value)\b`)

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
