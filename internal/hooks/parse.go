package hooks

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/durable"
)

// maxFile is how large a file settings.json may be.
const maxFile = 256 << 10

// group is a matcher with its hooks, as the files have it. A group with a command of its own is one hook.
type group struct {
	Matcher string    `json:"matcher" yaml:"matcher"`
	Hooks   []handler `json:"hooks" yaml:"hooks"`
	Command string    `json:"command" yaml:"command"`
	Timeout float64   `json:"timeout" yaml:"timeout"`
}

// handler is one hook, as the files have it. Handlers of other types than command have other fields, which are not
// read.
type handler struct {
	Type    string  `json:"type" yaml:"type"`
	Command string  `json:"command" yaml:"command"`
	Timeout float64 `json:"timeout" yaml:"timeout"` // seconds
	If      string  `json:"if" yaml:"-"`
	Shell   string  `json:"shell" yaml:"-"`
}

// hooks returns the hooks of a group.
func (g group) hooks(event Event) (all []Hook) {
	if g.Command != "" {
		g.Hooks = append(g.Hooks, handler{Command: g.Command, Timeout: g.Timeout})
	}
	for _, h := range g.Hooks {
		all = append(all, Hook{Event: event, Matcher: g.Matcher, Command: h.Command, Problem: h.problem(event),
			Timeout: time.Duration(math.Min(h.Timeout, maxTimeout.Seconds()) * float64(time.Second))})
	}
	return all
}

// problem returns why a hook cannot run, and "" if it can.
func (h handler) problem(event Event) string {
	switch {
	case !slices.Contains(Events(), event):
		return "muster has no event " + string(event)
	case h.Type != "" && h.Type != "command":
		return "its type is " + h.Type + ", and muster only runs commands"
	case h.If != "":
		return "its condition " + h.If + " is not read by muster: test it in the command"
	case h.Shell != "" && h.Shell != "bash":
		return "its shell is " + h.Shell
	case h.Command == "":
		return "it has no command"
	}
	return ""
}

// fromSection returns the hooks of a settings file of muster's. Every mistake in it is an error.
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
			for _, h := range g.hooks(event) {
				if h.compile(); h.Problem != "" {
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
		Hooks    map[Event]json.RawMessage `json:"hooks"`
		Disabled bool                      `json:"disableAllHooks"`
	}
	if err == nil {
		err = json.Unmarshal(muster.TrimBOM(data), &settings)
	}
	if err != nil {
		add(Hook{Problem: "the file cannot be read: " + muster.PlainText(err)})
		return all
	}
	for _, event := range slices.Sorted(maps.Keys(settings.Hooks)) {
		var groups []json.RawMessage
		if err := json.Unmarshal(settings.Hooks[event], &groups); err != nil {
			add(Hook{Event: event, Problem: "a list of matchers with hooks is expected"})
		}
		for _, text := range groups {
			var g group
			if err := json.Unmarshal(text, &g); err != nil {
				add(Hook{Event: event, Problem: "it has another form than a matcher with a list of hooks"})
				continue
			}
			for _, h := range g.hooks(event) {
				if settings.Disabled {
					h.Problem = "the file says disableAllHooks"
				}
				add(h)
			}
		}
	}
	return all
}
