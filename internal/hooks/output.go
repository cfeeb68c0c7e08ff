package hooks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"muster/internal/lazyregexp"
	"muster/internal/text"
)

// maxText is how much of a text of a hook, in bytes, a model or the user gets.
const maxText = 10_000

// Outcome is what the hooks of an event decide together. The zero Outcome lets everything go on as it is.
type Outcome struct {
	Blocked bool
	Reason  string // why it is blocked
	// Context is what the model is told besides.
	Context []string
	// Input is the tool's input as hooks want it, in their names; nil leaves it as it is.
	Input map[string]any
}

// output is what a hook prints as JSON.
type output struct {
	Continue      *bool  `json:"continue"`
	StopReason    string `json:"stopReason"`
	SystemMessage string `json:"systemMessage"`
	Decision      string `json:"decision"`
	Reason        string `json:"reason"`
	Specific      struct {
		Decision string         `json:"permissionDecision"`
		Reason   string         `json:"permissionDecisionReason"`
		Input    map[string]any `json:"updatedInput"`
		Context  string         `json:"additionalContext"`
	} `json:"hookSpecificOutput"`
	Context string `json:"additionalContext"`
}

// ended is how a hook ended: its exit status and what it has printed.
type ended struct {
	exit           int
	stdout, stderr string
}

// missing matches what interpreters print whose script, or a module that it needs, is not there or cannot be read.
var missing = lazyregexp.New(`(?im)cannot find module|module not found|^\S*modulenotfounderror:|no module named |` +
	`can't open file |can't open perl script|could not open input file:|cannot load such file|\(loaderror\)|` +
	`cannot open [^ ]+: no such file|no such file or directory -- |^\s*syntaxerror: |bad interpreter`)

// isBroken reports whether a hook could not start because of a mistake: its program, its interpreter or its script is
// not there or cannot be run.
func (e ended) isBroken() bool {
	switch e.exit {
	case 0, 2:
		return false
	case 126, 127:
		return true
	}
	return missing().MatchString(e.stderr)
}

// decide returns what one hook of an event decides, and what the user is to be told. An error says that what it has
// printed cannot be used.
func (e ended) decide(event Event) (o Outcome, message string, err error) {
	if e.exit == 2 {
		return Outcome{Blocked: true, Reason: clean(cmp.Or(e.stderr, "it gave no reason"))}, "", nil
	}
	text := strings.TrimSpace(e.stdout)
	if !strings.HasPrefix(text, "{") {
		// Of most events what is printed is for people.
		if text != "" && slices.Contains([]Event{SessionStart, UserPromptSubmit, TaskClaimed}, event) {
			o.Context = []string{clean(text)}
		}
		return o, "", nil
	}
	var out output
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		return o, "", err
	}
	reason := cmp.Or(out.Specific.Reason, out.Reason)
	if out.Continue != nil && !*out.Continue {
		o.Blocked, reason = event != Stop && event != TeammateIdle, cmp.Or(out.StopReason, reason)
		out.SystemMessage = cmp.Or(out.SystemMessage, reason)
	} else {
		switch cmp.Or(out.Specific.Decision, out.Decision) {
		case "block", "deny":
			o.Blocked = true
		case "ask":
			o.Blocked, reason = true, "it asks for the user, who is not asked here: "+reason
		}
	}
	if o.Blocked {
		o.Reason = clean(cmp.Or(reason, "it gave no reason"))
		return o, clean(out.SystemMessage), nil
	}
	if text := cmp.Or(out.Specific.Context, out.Context); text != "" {
		o.Context = []string{clean(text)}
	}
	if event == PreToolUse {
		o.Input = out.Specific.Input
	}
	return o, clean(out.SystemMessage), nil
}

// clean returns a text of a hook without what a terminal or a model would take for something else.
func clean(s string) string {
	return text.CutBytes(text.Clean(strings.TrimSpace(s)), maxText)
}
