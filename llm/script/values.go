package script

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// innermost is a value without another one in its name; the $ before it, if there is one, makes it plain text.
var innermost = lazily(`\$?\$\{[^${}\n]+\}`)

const builtIns = "task, task:SUBJECT, number:NAME, request, request:NAME, me"

// builtIn reports whether a value of this name may be known without a cue that captures it. Nested values are
// replaced inside out; one whose name has still a value in it is judged when it is played.
func builtIn(name string) bool {
	kind, _, of := strings.Cut(name, ":")
	switch kind {
	case "task", "request":
		return true
	case "me":
		return !of
	}
	return false
}

// valuesIn are the names of the innermost values in a text; of ${number:NAME} the NAME.
func valuesIn(text string) (names []string) {
	for _, m := range innermost().FindAllString(text, -1) {
		if !strings.HasPrefix(m, "$$") {
			names = append(names, strings.TrimPrefix(m[2:len(m)-1], "number:"))
		}
	}
	return names
}

// stringsIn appends every text inside a call's input.
func stringsIn(texts []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(texts, v)
	case []any:
		for _, e := range v {
			texts = stringsIn(texts, e)
		}
	case map[string]any:
		for _, e := range v {
			texts = stringsIn(texts, e)
		}
	}
	return texts
}

// unknown is a value that the conversation does not tell (yet).
type unknown string

func (u unknown) Error() string { return fmt.Sprintf("nothing so far tells what ${%s} is", string(u)) }

// fill puts the values into a text. number: the text is one value alone, and a number to the tools.
func (w *walk) fill(text string) (out string, number bool, err error) {
	const kept = "\x00{" // a ${ that is to stay, while others are replaced
	whole := strings.HasPrefix(text, "${")
	for {
		at := innermost().FindStringIndex(text)
		if at == nil {
			return strings.ReplaceAll(text, kept, "${"), number, nil
		}
		m := text[at[0]:at[1]]
		if strings.HasPrefix(m, "$$") {
			text = text[:at[0]] + kept + text[at[0]+3:]
			continue
		}
		name := m[2 : len(m)-1]
		v, ok := w.value(strings.TrimPrefix(name, "number:"))
		if !ok {
			return "", false, unknown(name)
		}
		alone := whole && len(m) == len(text)
		number = alone && digits().MatchString(v) && (name == "task" || strings.HasPrefix(name, "task:") || strings.HasPrefix(name, "number:"))
		text = text[:at[0]] + strings.ReplaceAll(v, "${", kept) + text[at[1]:]
	}
}

var digits = lazily(`^(0|[1-9][0-9]{0,17})$`)

// fillAll puts the values into every text of a call's input.
func (w *walk) fillAll(v any) (any, error) {
	switch v := v.(type) {
	case string:
		text, number, err := w.fill(v)
		if number {
			return json.Number(text), err
		}
		return text, err
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			var err error
			if out[i], err = w.fillAll(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			var err error
			if out[k], err = w.fillAll(e); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// value is what a name stands for here: captured by the scene or the ones around it, else read from the conversation.
func (w *walk) value(name string) (string, bool) {
	for i := len(w.frames) - 1; i >= 0; i-- {
		if v, ok := w.frames[i].captured[name]; ok {
			return v, true
		}
	}
	kind, of, _ := strings.Cut(name, ":")
	var find func(text string) string
	switch {
	case name == "me":
		return w.me, true
	case name == "task":
		if id, ok := w.last(lastOf(claimed())); ok {
			return id, true
		}
		find = lastOf(namedTask())
	case kind == "task":
		find = func(text string) string { return taskCalled(text, of) }
	case name == "request":
		find = lastOf(namedRequest())
	case kind == "request":
		find = func(text string) string { return requestOf(text, of) }
	default:
		return "", false
	}
	return w.last(find)
}

// last asks what came in, newest first.
func (w *walk) last(find func(string) string) (string, bool) {
	for i := len(w.heard) - 1; i >= 0; i-- {
		if v := find(w.heard[i]); v != "" {
			return v, true
		}
	}
	return "", false
}

var (
	claimed      = lazily(`<auto-claimed>\s*Task #(\d+)`)
	namedTask    = lazily(`(?i)\btask #?(\d+)`)
	namedRequest = lazily(`(?i)\brequest(?:_id"?\s*[:=]\s*"?|\s+)([0-9a-f]{8})\b`)
	taskLine     = lazily(`#(\d+):? ([^\n]+)`)
	taskJSON     = lazily(`"id":\s*(\d+),\s*"subject":\s*("(?:[^"\\]|\\.)*")`)
	inbox        = lazily(`(?s)<inbox>\s*(\[.*?\])\s*</inbox>`)
	requestLine  = lazily(`\b[Rr]equest ([0-9a-f]{8}) (?:of|from) ([a-z0-9-]+)`)
)

// lazily compiles a regular expression when it is first needed, so that the start of every command does not pay for it.
func lazily(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

func lastOf(re *regexp.Regexp) func(string) string {
	return func(text string) string {
		if all := re.FindAllStringSubmatch(text, -1); len(all) > 0 {
			return all[len(all)-1][1]
		}
		return ""
	}
}

// taskCalled is the last id that the text gives the task with this subject.
func taskCalled(text, subject string) (id string) {
	near := ""
	for _, m := range taskLine().FindAllStringSubmatch(text, -1) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(m[2]), subject)
		switch {
		case ok && (rest == "" || strings.HasPrefix(rest, " [")):
			id = m[1]
		case ok && strings.ContainsAny(rest[:1], ":.,;") || ok && strings.HasPrefix(rest, " ("):
			near = m[1]
		}
	}
	for _, m := range taskJSON().FindAllStringSubmatch(text, -1) {
		var s string
		if json.Unmarshal([]byte(m[2]), &s) == nil && s == subject {
			id = m[1]
		}
	}
	if id == "" {
		return near
	}
	return id
}

// requestOf is the last request id that the text has from the member.
func requestOf(text, member string) (id string) {
	for _, m := range requestLine().FindAllStringSubmatch(text, -1) {
		if m[2] == member {
			id = m[1]
		}
	}
	for _, m := range inbox().FindAllStringSubmatch(text, -1) {
		var mails []struct {
			From string `json:"from"`
			ID   string `json:"request_id"`
		}
		if json.Unmarshal([]byte(m[1]), &mails) != nil {
			continue
		}
		for _, mail := range mails {
			if mail.From == member && mail.ID != "" {
				id = mail.ID
			}
		}
	}
	return id
}
