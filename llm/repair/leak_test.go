package repair_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/llm"
	"muster/llm/repair"
)

// formats write a call as the servers of models leave it in the text.
var formats = map[string]func(name string, fields []field) string{
	"Hermes": func(name string, fields []field) string {
		return `<tool_call>{"name": "` + name + `", "arguments": ` + object(fields) + "}</tool_call>"
	},
	"Kimi": func(name string, fields []field) string {
		return "<|tool_calls_section_begin|><|tool_call_begin|>functions." + name + ":0<|tool_call_argument_begin|>" +
			object(fields) + "<|tool_call_end|><|tool_calls_section_end|>"
	},
	"DeepSeek V3.1": func(name string, fields []field) string {
		return "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>" + name + "<｜tool▁sep｜>" + object(fields) +
			"<｜tool▁call▁end｜><｜tool▁calls▁end｜>"
	},
	"gpt-oss": func(name string, fields []field) string {
		return "<|channel|>commentary to=functions." + name + " <|constrain|>json<|message|>" + object(fields) + "<|call|>"
	},
	"Mistral": func(name string, fields []field) string { return "[TOOL_CALLS]" + name + "[ARGS]" + object(fields) },
	"Qwen": func(name string, fields []field) string {
		return "<tool_call>\n<function=" + name + ">\n" + tagged(fields, "<parameter=%s>\n%s\n</parameter>\n") +
			"</function>\n</tool_call>"
	},
	"GLM": func(name string, fields []field) string {
		return "<tool_call>" + name + "\n" +
			tagged(fields, "<arg_key>%s</arg_key>\n<arg_value>%s</arg_value>\n") + "</tool_call>"
	},
	"DeepSeek V4": func(name string, fields []field) string {
		return "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"" + name + "\">\n" +
			tagged(fields, "<｜DSML｜parameter name=\"%s\" string=\"true\">%s</｜DSML｜parameter>\n") +
			"</｜DSML｜invoke>\n</｜DSML｜tool_calls>"
	},
	"MiniMax M3": func(name string, fields []field) string {
		return "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"" + name + "\">" +
			tagged(fields, "]<]minimax[>[<%[1]s>%[2]s]<]minimax[>[</%[1]s>") +
			"]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
	},
}

type field struct{ name, value string }

// isClear reports whether a value means the same in each format: one with the tags of two arguments is two arguments,
// and one with the end of a call may be the end of it.
func (f field) isClear() bool {
	spaceless := strings.Join(strings.Fields(f.value), "")
	for _, end := range []string{"</function></tool_call>", "</parameter></function>", "</arg_value></tool_call>"} {
		if strings.Contains(spaceless, end) {
			return false
		}
	}
	return !(strings.Contains(f.value, "</parameter>") && strings.Contains(f.value, "<parameter=x>")) &&
		!(strings.HasPrefix(f.value, "\n") && strings.HasSuffix(f.value, "\n"))
}

func object(fields []field) string {
	var all []string
	for _, f := range fields {
		value, _ := json.Marshal(f.value)
		all = append(all, fmt.Sprintf("%q: %s", f.name, value))
	}
	return "{" + strings.Join(all, ", ") + "}"
}

func tagged(fields []field, form string) (text string) {
	for _, f := range fields {
		text += fmt.Sprintf(form, f.name, f.value)
	}
	return text
}

// A leaked call is done as it was meant, or not at all, wherever its text was cut.
func TestLeakedCallsAreWholeOrNone(t *testing.T) {
	pieces := []string{"a", "\n", "\"", "\\", "}", "{", " ", "é", "<", ">", "</",
		"parameter", "function", "tool_call", "<tool_call>",
		"</tool_call>", "</parameter>", "</function>", "<parameter=x>", "</arg_value>", "<|call|>", "]", "```"}
	for _, format := range slices.Sorted(maps.Keys(formats)) {
		t.Run(format, func(t *testing.T) {
			whole := 0
			rapid.Check(t, func(t *rapid.T) {
				var fields []field
				want := map[string]any{}
				for i := range rapid.IntRange(1, 3).Draw(t, "fields") {
					value := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 6).Draw(t, "value"), "")
					f := field{fmt.Sprint("field", string(rune('a'+i))), value}
					if !f.isClear() {
						return
					}
					fields, want[f.name] = append(fields, f), value
				}
				text := formats[format]("bash", fields)
				end := rapid.OneOf(rapid.Just(len(text)), rapid.IntRange(0, len(text))).Draw(t, "end")
				reply := llm.Reply{Stop: llm.StopEnd, Message: llm.Message{Parts: []llm.Part{llm.Text{Text: text[:end]}}}}
				calls := repair.Reply(reply, nil, []string{"bash"}).Message.Calls()
				if len(calls) == 0 {
					return
				}
				var got map[string]any
				if err := json.Unmarshal(calls[0].Input, &got); err != nil || len(calls) > 1 || !reflect.DeepEqual(got, want) {
					t.Fatalf("%q\nruns %v %s", text[:end], calls, calls[0].Input)
				}
				whole++
			})
			if whole < 10 {
				t.Errorf("only %d of the calls are done", whole)
			}
		})
	}
}
