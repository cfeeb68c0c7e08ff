// Package hooks runs commands that people have set for moments of a team's work: before a tool is called, when a task
// is created, before work lands.
//
// The hooks are those of the settings files (their section hooks) and of the files settings.json that people keep for
// Claude Code, with the names and the JSON of that. Find reads them all; a Hook with a Problem never runs, and the
// problem says why. Those that a repository brings have the problem that they are not trusted until the user trusts
// them: Items returns what is trusted.
//
// A Runner runs the hooks of an Event, one after another, and returns what they decide together. The nil Runner has no
// hooks and costs nothing. Calls translates the call of a tool into the names that hooks know, and back.
//
// The package keeps these invariants:
//
//   - A hook has a time limit, and its output a size limit. It ends with everything that it has started.
//   - It gets no key of the environment, and no secret that it prints reaches a model or the journal.
//   - A hook that runs blocks a call only by its answer: one that takes too long or prints what is no answer does not.
//     A hook that cannot start because of a mistake refuses the calls that it was to guard.
//   - Each run is an event of the journal.
//
// Where the events are, and what a decision means there, is not decided here: see packages teammate and landing.
package hooks

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/internal/config"
	"muster/internal/permissions"
	"muster/internal/text"
	"muster/internal/trust"
)

// Event is a moment at which hooks run.
type Event string

// The events.
const (
	SessionStart     Event = "SessionStart"     // a member's conversation begins or goes on
	UserPromptSubmit Event = "UserPromptSubmit" // the user has said something to the lead
	PreToolUse       Event = "PreToolUse"       // a member, or a subagent of it, is about to call a tool
	PostToolUse      Event = "PostToolUse"      // a tool has done what it was called for
	TaskCreated      Event = "TaskCreated"      // a member is about to create a task
	TaskClaimed      Event = "TaskClaimed"      // a member has claimed a task and has its lane
	TaskCompleted    Event = "TaskCompleted"    // a member is about to complete its task
	TeammateIdle     Event = "TeammateIdle"     // a teammate is about to be idle
	Landing          Event = "Landing"          // the merged tree has passed the check and is about to land
	Notification     Event = "Notification"     // something needs the user
	Stop             Event = "Stop"             // the lead is about to end its turn
)

// Events lists all events.
func Events() []Event {
	return []Event{SessionStart, UserPromptSubmit, PreToolUse, PostToolUse, TaskCreated, TaskClaimed, TaskCompleted,
		TeammateIdle, Landing, Notification, Stop}
}

// The limits of a hook.
const (
	defaultTimeout = time.Minute
	maxTimeout     = 10 * time.Minute
	maxHooks       = 200
)

// Hook is a command for an event.
type Hook struct {
	Event   Event
	Matcher string // what the event is about, such as a tool; "" is everything
	Command string
	// Args are the arguments of Command, which is a program then; nil: Command is a script of the shell.
	Args  []string
	Env   map[string]string // variables beside those that every hook has
	Cwd   string            // relative to where the event is; "" is there
	Async bool              // nothing waits for it, and it decides nothing
	If    string            // a rule as package permissions has it: it runs only for calls that the rule may be for
	Shell string            // "", sh or bash

	Timeout time.Duration
	File    string // where it stands, as people read it
	Problem string // why it does not run; "" if it does
	// Ignored are fields of another program's file that change what the hook means, and that muster does not read.
	Ignored []string
	// MayBreak says that a guard that cannot start lets the work go on.
	MayBreak bool
	// needsTrust says that the repository brings it.
	needsTrust bool
	matcher    matcher
	condition  permissions.Policy // of If
}

// untrusted is the problem of a hook that the user does not trust.
const untrusted = "you have not trusted it (muster trust)"

// compile reads the matcher and the condition, and sets the problem of the hook if there is one.
func (h *Hook) compile() {
	if h.Matcher == "*" {
		h.Matcher = ""
	}
	var problem string
	if h.matcher, problem = newMatcher(h.Event, h.Matcher); problem != "" && h.Problem == "" {
		h.Problem = problem
	}
	if rule, err := permissions.ParseRule(permissions.Deny, h.If, ""); h.If != "" && err == nil {
		h.condition = permissions.Policy{Mode: permissions.Auto, Rules: []permissions.Rule{rule}}
	}
}

// matches reports whether the hook is for one of the names. Events without a subject have no names, and ignore the
// matcher.
func (h Hook) matches(names []string) bool { return len(names) == 0 || h.matcher.matches(names) }

// isFor reports whether the condition of a hook may hold for a moment.
func (h Hook) isFor(m Moment) bool {
	if h.If == "" || len(m.Names) == 0 {
		return true
	}
	tool := m.Names[len(m.Names)-1]
	if tool == callTool {
		tool = m.Names[0]
	}
	in, _ := m.Fields["tool_input"].(map[string]any)
	data, err := json.Marshal(in)
	if err != nil {
		return true
	}
	var paths []string
	for _, field := range []string{"file_path", "path"} {
		if path, isText := in[field].(string); isText && path != "" {
			paths = append(paths, path)
		}
	}
	return h.condition.Decide(permissions.NewCall(tool, data, m.Dir, paths), nil).Action != permissions.Allow
}

// isGuard reports whether the event of a hook waits for its decision.
func (h Hook) isGuard() bool {
	guards := []Event{UserPromptSubmit, PreToolUse, TaskCreated, TaskCompleted, Landing}
	return !h.Async && slices.Contains(guards, h.Event)
}

// what returns what the hook runs, as far as it is more than a command: of two that are equal one runs.
func (h Hook) what() string {
	var parts []string
	add := func(name string, isSet bool, value any) {
		if isSet {
			data, _ := json.Marshal(value) // it was JSON or YAML
			parts = append(parts, name+" "+string(data))
		}
	}
	add("args", h.Args != nil, h.Args)
	add("env", len(h.Env) > 0, h.Env)
	add("cwd", h.Cwd != "", h.Cwd)
	add("if", h.If != "", h.If)
	add("async", h.Async, h.Async)
	add("ignored", len(h.Ignored) > 0, h.Ignored)
	return strings.Join(parts, ", ")
}

// String returns the hook as people read it and trust it: the matcher, the time limit, the fields that change what it
// does, and the whole command. The lines of a command after the first are indented, so that no command looks like two
// hooks.
func (h Hook) String() string {
	matcher := h.Matcher
	if matcher == "" {
		matcher = "*"
	} else if !plainMatcher().MatchString(matcher) {
		matcher = fmt.Sprintf("%q", matcher)
	}
	more := h.what()
	if more != "" {
		more = ", " + more
	}
	command := strings.ReplaceAll(h.Command, "\n", "\n    ")
	return fmt.Sprintf("%s (%g s%s): %s", matcher, h.Timeout.Seconds(), more, command)
}

// Notes returns what a hook that runs does not do as its file says.
func (h Hook) Notes() (notes []string) {
	if h.Problem != "" {
		return nil
	}
	for _, name := range h.matcher.unknown {
		notes = append(notes, "its matcher names "+name+", which is no tool of muster")
	}
	if len(h.Ignored) > 0 {
		notes = append(notes, "muster does not read "+strings.Join(h.Ignored, ", "))
	}
	if h.Async && (Hook{Event: h.Event}).isGuard() {
		notes = append(notes, "it is async, so it refuses nothing")
	}
	return notes
}

// otherEvents are events of other agents at which muster would refuse nothing.
var otherEvents = strings.Fields("PreCompact PostCompact SessionEnd SubagentStart SubagentStop Setup FileChanged " +
	"InstructionsLoaded CwdChanged WorktreeRemove PostToolUseFailure StopFailure")

// Warnings returns a line for each file with hooks that do not run, or not as the file says. Left out are those that
// the user does not trust, those that their file turns off, and those of otherEvents.
func Warnings(all []Hook) (lines []string) {
	byFile := map[string][]string{}
	var files []string
	for _, h := range all {
		why := h.Problem
		if why == "" {
			why = strings.Join(h.Notes(), ", and ")
		}
		if slices.Contains([]string{"", untrusted, disabled, notEnabled}, why) ||
			slices.Contains(otherEvents, string(h.Event)) {
			continue
		}
		if byFile[h.File] == nil {
			files = append(files, h.File)
		}
		what := strings.TrimSpace(string(h.Event) + " " + h.Gist())
		byFile[h.File] = append(byFile[h.File], strings.TrimPrefix(what+": "+text.OneLine(why), ": "))
	}
	for _, file := range files {
		lines = append(lines, fmt.Sprintf("hooks of %s do not run as they stand there (muster hooks): %s", file,
			strings.Join(byFile[file][:min(3, len(byFile[file]))], "; ")))
		if more := len(byFile[file]) - 3; more > 0 {
			lines[len(lines)-1] += fmt.Sprintf("; and %d more", more)
		}
	}
	return lines
}

// Gist returns the command in a few words.
func (h Hook) Gist() string {
	return text.CutBytes(text.OneLine(strings.Join(append([]string{h.Command}, h.Args...), " ")), 80)
}

// Items returns what the user may trust of what the repository brings: for each file and event the hooks together.
func Items(all []Hook) (items []trust.Item) {
	for _, h := range all {
		if !h.needsTrust || h.Problem != "" && h.Problem != untrusted {
			continue
		}
		name := "hooks." + string(h.Event)
		i := slices.IndexFunc(items, func(i trust.Item) bool { return i.Name == name && i.File == h.File })
		if i < 0 {
			items = append(items, trust.Item{Name: name, File: h.File, Text: h.String()})
		} else {
			items[i].Text += "\n" + h.String()
		}
	}
	return items
}

// Find returns the hooks that there are, in the order in which they run: those of muster's settings, whose sections are
// named hooks, and then those of the files settings.json, below home, unless that is "", and below root, the root of
// the repository. The error is one of muster's settings. What is wrong in another program's file is a problem of the
// hook.
func Find(root, home string, sections []config.Section, trusts func(trust.Item) bool) (all []Hook, err error) {
	for _, s := range sections {
		found, err := fromSection(s)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	if home != "" {
		all = append(all, fromSettings(home, "~/", ".claude/settings.json")...)
	}
	all = slices.Concat(all, fromSettings(root, "", ".claude/settings.json"),
		fromSettings(root, "", ".claude/settings.local.json"))
	all = all[:min(len(all), maxHooks)]
	for i := range all {
		if all[i].compile(); all[i].Timeout <= 0 {
			all[i].Timeout = defaultTimeout
		}
	}
	for _, item := range Items(all) {
		if trusts(item) {
			continue
		}
		for i, h := range all {
			if h.needsTrust && h.Problem == "" && h.File == item.File && "hooks."+string(h.Event) == item.Name {
				all[i].Problem = untrusted
			}
		}
	}
	return all, nil
}
