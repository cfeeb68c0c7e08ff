package script

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"muster/internal/lazyregexp"
)

// valuePattern matches a value without another one in its name. A $ before it makes it plain text.
var valuePattern = lazyregexp.New(`\$?\$\{[^${}\n]+\}`)

// builtIns names, for people, the values that need no cue to capture them.
const builtIns = "task, task:SUBJECT, number:NAME, request, request:NAME, me"

// values returns the names of the innermost values in the turn's texts, without the number: before a name.
func (t turn) values() (names []string) {
	collect := func(text string) (any, error) {
		for _, m := range valuePattern().FindAllString(text, -1) {
			if !strings.HasPrefix(m, "$$") {
				names = append(names, strings.TrimPrefix(m[2:len(m)-1], "number:"))
			}
		}
		return text, nil
	}
	_, _ = collect(t.Say + "\n" + t.Think) // it never fails, and a value contains no newline
	for _, c := range t.Do {
		_, _ = mapTexts(c.input, collect)
	}
	return names
}

// fill puts the values into a text, the innermost first, so that a value can stand in the name of another.
// What was put in is text and not searched for values again. number says that the text is a single value
// that tools want as a number.
func (w *playback) fill(text string) (out string, number bool, err error) {
	const kept = "\x00{" // a ${ that is to stay, while others are replaced
	whole := strings.HasPrefix(text, "${")
	for {
		at := valuePattern().FindStringIndex(text)
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
			return "", false, fmt.Errorf("nothing so far tells what ${%s} is", name)
		}
		alone := whole && len(m) == len(text)
		number = alone && digits().MatchString(v) &&
			(name == "task" || strings.HasPrefix(name, "task:") || strings.HasPrefix(name, "number:"))
		text = text[:at[0]] + strings.ReplaceAll(v, "${", kept) + text[at[1]:]
	}
}

// digits matches a number that JSON can hold without losing digits.
var digits = lazyregexp.New(`^(0|[1-9][0-9]{0,17})$`)

// fillAny puts the values into a text of a call's input, which may become a number.
func (w *playback) fillAny(text string) (any, error) {
	out, number, err := w.fill(text)
	if number {
		return json.Number(out), err
	}
	return out, err
}

// mapTexts returns a copy of a call's input, or a part of it, with what f makes of every text in it.
func mapTexts(v any, f func(string) (any, error)) (_ any, err error) {
	switch v := v.(type) {
	case string:
		return f(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			if out[i], err = mapTexts(e, f); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			if out[k], err = mapTexts(e, f); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// value returns what a name stands for: what the innermost scene captured, otherwise what the conversation
// says.
func (w *playback) value(name string) (string, bool) {
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
		if id, ok := w.newestMatch(lastMatch(claimedPattern())); ok {
			return id, true
		}
		find = lastMatch(taskPattern())
	case kind == "task":
		find = func(text string) string { return lastTaskCalled(text, of) }
	case name == "request":
		find = lastMatch(requestPattern())
	case kind == "request":
		find = func(text string) string { return lastRequestOf(text, of) }
	default:
		return "", false
	}
	return w.newestMatch(find)
}

// newestMatch returns what find finds in the newest text in which it finds something: the newest word on a
// task or a request holds.
func (w *playback) newestMatch(find func(string) string) (string, bool) {
	for i := len(w.heard) - 1; i >= 0; i-- {
		if v := find(w.heard[i]); v != "" {
			return v, true
		}
	}
	return "", false
}

var (
	// Where tasks and requests stand in what the runtime and its tools tell a member. They follow the
	// wording of the tools' results, so a change of that wording needs a change here.
	claimedPattern = lazyregexp.New(`<auto-claimed>\s*Task #(\d+)`)
	taskPattern    = lazyregexp.New(`(?i)\btask #?(\d+)`)
	requestPattern = lazyregexp.New(`(?i)\brequest(?:_id"?\s*[:=]\s*"?|\s+)([0-9a-f]{8})\b`)
	taskLine       = lazyregexp.New(`#(\d+):? ([^\n]+)`)
	taskJSON       = lazyregexp.New(`"id":\s*(\d+),\s*"subject":\s*("(?:[^"\\]|\\.)*")`)
	mailPattern    = lazyregexp.New(`<mail from="([^"]*)"[^>]* request_id="([0-9a-f]{8})"`)
	requestLine    = lazyregexp.New(`\b[Rr]equest ([0-9a-f]{8}) (?:of|from) ([a-z0-9-]+)`)
)

// lastMatch returns a function that finds the first group of the last match.
func lastMatch(re *regexp.Regexp) func(string) string {
	return func(text string) string {
		if all := re.FindAllStringSubmatch(text, -1); len(all) > 0 {
			return all[len(all)-1][1]
		}
		return ""
	}
}

// lastTaskCalled reads the lines of tasks that tools print, and tasks as JSON. A line that only begins with
// the subject counts if nothing fits better. It returns the last id that the text gives the task with this
// subject.
func lastTaskCalled(text, subject string) (id string) {
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
	return cmp.Or(id, near)
}

// lastRequestOf reads the lines in which requests are mentioned, and mails. It returns the
// last request id in the text that is from the member.
func lastRequestOf(text, member string) (id string) {
	for _, m := range requestLine().FindAllStringSubmatch(text, -1) {
		if m[2] == member {
			id = m[1]
		}
	}
	for _, m := range mailPattern().FindAllStringSubmatch(text, -1) {
		if m[1] == member {
			id = m[2]
		}
	}
	return id
}
