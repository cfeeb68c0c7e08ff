package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/durable"
	"muster/internal/permissions"
)

// maxFile is how large a file settings.json may be.
const maxFile = 256 << 10

// group is a matcher with its hooks, as muster's files have it. A group with a command of its own is one hook.
type group struct {
	Matcher any       `yaml:"matcher"`
	Hooks   []handler `yaml:"hooks"`
	Own     handler   `yaml:",inline"`
}

// handler is one hook, as the files have it. Handlers of other types than command have other fields.
type handler struct {
	Type    string            `yaml:"type"`
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
	Cwd     string            `yaml:"cwd"`
	Async   bool              `yaml:"async"`
	If      string            `yaml:"if"`
	Shell   string            `yaml:"shell"`
	Timeout float64           `yaml:"timeout"` // seconds

	problem string
	ignored []string // fields that change what the file means, and that muster does not read
}

// hooksOf returns the hooks of a matcher.
func hooksOf(event Event, matcherText string, all []handler) (found []Hook) {
	for _, h := range all {
		found = append(found, Hook{Event: event, Matcher: matcherText, Command: h.Command, Args: h.Args, Env: h.Env,
			Cwd: h.Cwd, Async: h.Async, If: h.If, Shell: h.Shell, Problem: h.why(event), Ignored: h.ignored,
			Timeout: time.Duration(math.Min(h.Timeout, maxTimeout.Seconds()) * float64(time.Second))})
	}
	return found
}

// why returns why a hook cannot run, and "" if it can.
func (h handler) why(event Event) string {
	switch {
	case !slices.Contains(Events(), event):
		return "muster has no event " + string(event)
	case h.problem != "":
		return h.problem
	case h.Type != "" && h.Type != "command":
		return "its type is " + h.Type + ", and muster only runs commands"
	case h.If != "":
		return conditionProblem(event, h.If)
	case h.Shell != "" && h.Shell != "bash" && h.Shell != "sh":
		return "its shell is " + h.Shell
	case h.Command == "":
		return "it has no command"
	}
	return ""
}

// conditionProblem returns why a condition cannot be read, and "" if it can.
func conditionProblem(event Event, text string) string {
	if _, err := permissions.ParseRule(permissions.Deny, text, ""); err != nil || !isToolEvent(event) {
		return "its condition " + text + " is not one that muster reads: test it in the command"
	}
	return ""
}

// matcherText returns a matcher that is a text or a list of texts as a text.
func matcherText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case []any:
		var names []string
		for _, item := range v {
			name, ok := item.(string)
			if !ok {
				return "", false
			}
			names = append(names, name)
		}
		return strings.Join(names, ", "), true
	}
	return "", false
}

// fromSection returns the hooks of a settings file of muster's. Every mistake in it is an error, but for a matcher that
// fits nothing: what it names may be of another version.
func fromSection(s config.Section) (all []Hook, err error) {
	entries, err := s.Entries()
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		event := Event(e.Name)
		if !slices.Contains(Events(), event) {
			return nil, s.Errorf(e.Key, "there is no event %q: there are %v", e.Name, Events())
		}
		var groups []group
		if err := s.Decode(e.Value, &groups); err != nil {
			return nil, err
		}
		for _, g := range groups {
			text, ok := matcherText(g.Matcher)
			if !ok {
				return nil, s.Errorf(e.Value, "a matcher of %s is neither a text nor a list of texts", e.Name)
			}
			if g.Own.Command != "" {
				g.Hooks = append(g.Hooks, g.Own)
			}
			for _, h := range hooksOf(event, text, g.Hooks) {
				if h.compile(); h.Problem != "" && !h.matcher.isUnfit {
					return nil, s.Errorf(e.Value, "a hook of %s cannot run: %s", e.Name, h.Problem)
				}
				h.File, h.needsTrust = s.File, !s.IsTrusted()
				all = append(all, h)
			}
		}
	}
	return all, nil
}

// fromSettings returns the hooks of another program's settings file below base. Its path is relative to base, and show
// stands for base in what people read.
func fromSettings(base, show, path string) (all []Hook) {
	file := show + path
	add := func(h Hook) {
		h.File, h.needsTrust = file, show == ""
		all = append(all, h)
	}
	name := filepath.Join(base, filepath.FromSlash(path))
	data, err := durable.ReadBelow(base, name, maxFile)
	if show != "" { // the user may keep their own file elsewhere, behind a link
		data, err = durable.ReadRegular(name, maxFile)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var settings struct {
		Hooks    map[string]json.RawMessage `json:"hooks"`
		Disabled bool                       `json:"disableAllHooks"`
	}
	if err == nil {
		err = json.Unmarshal(muster.TrimBOM(data), &settings)
	}
	if err != nil {
		add(Hook{Problem: "the file cannot be read: " + muster.PlainText(err)})
		return all
	}
	for _, name := range slices.Sorted(maps.Keys(settings.Hooks)) {
		event := eventNamed(name)
		var groups []json.RawMessage
		switch data := settings.Hooks[name]; {
		case json.Unmarshal(data, &groups) == nil:
		case data[0] == '{': // one without its list
			groups = []json.RawMessage{data}
		default:
			add(Hook{Event: event, Problem: "a list of matchers with hooks is expected"})
		}
		for _, text := range groups {
			for _, h := range readGroup(event, text) {
				if settings.Disabled {
					h.Problem = disabled
				}
				add(h)
			}
		}
	}
	return all
}

// eventNamed returns the event of a name as other programs write it: preToolUse and pre_tool_use too.
func eventNamed(name string) Event {
	folded := strings.NewReplacer("_", "", "-", "").Replace(name)
	for _, e := range Events() {
		if strings.EqualFold(string(e), folded) {
			return e
		}
	}
	return Event(name)
}

// Problems of hooks that their file turns off. Who has written so knows it.
const (
	disabled   = "the file says disableAllHooks"
	notEnabled = "the file says that it is not enabled"
)

// harmless are fields of groups and hooks that change nothing of what runs and what it decides.
var harmless = strings.Fields("statusMessage description name id title comment $comment _comment // suppressOutput")

// readGroup returns the hooks of a matcher in another program's file.
func readGroup(event Event, data json.RawMessage) []Hook {
	form := []Hook{{Event: event, Problem: "it has another form than a matcher with a list of hooks"}}
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil {
		return form
	}
	var m any
	var list []json.RawMessage
	if fields["matcher"] != nil {
		_ = json.Unmarshal(fields["matcher"], &m) // it was decoded
	}
	text, ok := matcherText(m)
	if !ok || fields["hooks"] != nil && json.Unmarshal(fields["hooks"], &list) != nil {
		return form
	}
	delete(fields, "matcher")
	delete(fields, "hooks")
	var all []handler
	if fields["command"] != nil || fields["bash"] != nil { // the short form
		all = append(all, readHandler(data))
		fields = nil
	} else if list == nil {
		return form
	}
	outer := handler{}
	outer.readFields(fields)
	var ignored []string // muster reads no field of a matcher but whether it is enabled
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(harmless, name) && name != "enabled" && name != "disabled" {
			ignored = append(ignored, name+" of the matcher")
		}
	}
	for _, item := range list {
		h := readHandler(item)
		if outer.problem == notEnabled {
			h.problem = notEnabled
		}
		h.ignored = append(h.ignored, ignored...)
		all = append(all, h)
	}
	return hooksOf(event, text, all)
}

// readHandler returns a hook of another program's file.
func readHandler(data json.RawMessage) (h handler) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil || fields == nil {
		return handler{problem: "it has another form than a hook"}
	}
	delete(fields, "matcher")
	delete(fields, "hooks")
	h.readFields(fields)
	if h.Type != "" && h.Type != "command" { // it has other fields
		h.ignored = nil
	}
	return h
}

// readFields reads the fields of a hook.
func (h *handler) readFields(fields map[string]json.RawMessage) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value, ok := fields[name], true
		switch name {
		case "type":
			ok = json.Unmarshal(value, &h.Type) == nil
		case "command", "bash":
			ok = json.Unmarshal(value, &h.Command) == nil
		case "args":
			ok = json.Unmarshal(value, &h.Args) == nil
		case "env":
			h.Env, ok = texts(value)
		case "cwd":
			ok = json.Unmarshal(value, &h.Cwd) == nil
		case "async":
			ok = json.Unmarshal(value, &h.Async) == nil
		case "if":
			ok = json.Unmarshal(value, &h.If) == nil
		case "shell":
			ok = json.Unmarshal(value, &h.Shell) == nil
		case "timeout", "timeoutSec":
			h.Timeout, ok = seconds(value)
		case "enabled", "disabled":
			var is bool
			ok = json.Unmarshal(value, &is) == nil
			if ok && is == (name == "disabled") {
				h.problem = notEnabled
			}
		default:
			isUnset := slices.Contains([]string{"false", "null", `""`, "[]", "{}"}, string(value))
			if !isUnset && !slices.Contains(harmless, name) {
				h.ignored = append(h.ignored, name)
			}
		}
		if !ok && h.problem == "" {
			h.problem = fmt.Sprintf("its field %s has a value that muster does not read: %.60s", name, value)
		}
	}
}

// texts returns an object of scalars with texts in their place.
func texts(value json.RawMessage) (map[string]string, bool) {
	var in map[string]any
	if json.Unmarshal(value, &in) != nil {
		return nil, false
	}
	all := map[string]string{}
	for name, v := range in {
		switch v.(type) {
		case string, float64, bool:
			all[name] = fmt.Sprint(v)
		default:
			return nil, false
		}
	}
	return all, true
}

// seconds returns a time limit: a number of seconds, also as a text, or a duration such as 30s.
func seconds(value json.RawMessage) (n float64, ok bool) {
	if json.Unmarshal(value, &n) == nil {
		return n, true
	}
	var text string
	if json.Unmarshal(value, &text) != nil {
		return 0, false
	}
	if json.Unmarshal([]byte(text), &n) == nil {
		return n, true
	}
	d, err := time.ParseDuration(text)
	return d.Seconds(), err == nil
}
