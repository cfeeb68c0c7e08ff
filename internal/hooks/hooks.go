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
//   - What is wrong with a hook (it cannot be started, it takes too long, it prints nonsense) stops nobody. Only a hook
//     that says so blocks.
//   - Each run is an event of the journal.
//
// Where the events are, and what a decision means there, is not decided here: see packages teammate and landing.
package hooks

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/internal/config"
	"muster/internal/lazyregexp"
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
	Timeout time.Duration
	File    string // where it stands, as people read it
	Problem string // why it does not run; "" if it does
	// needsTrust says that the repository brings it.
	needsTrust bool
	// pattern is the matcher, and anyCase the same without regard to case.
	pattern, anyCase *regexp.Regexp
}

// untrusted is the problem of a hook that the user does not trust.
const untrusted = "you have not trusted it (muster trust)"

// plainMatcher matches a matcher that is a name, or names with bars between them.
var plainMatcher = lazyregexp.New(`^[A-Za-z0-9_|]*$`)

// compile checks the matcher, and sets the problem of the hook if there is one.
func (h *Hook) compile() {
	if h.Matcher == "*" {
		h.Matcher = ""
	}
	expr := h.Matcher
	if plainMatcher().MatchString(expr) {
		expr = "^(?:" + expr + ")$"
	}
	var err error
	if h.pattern, err = regexp.Compile(expr); err != nil && h.Problem == "" {
		h.Problem = "its matcher is neither a list of names nor a regular expression of RE2"
	}
	h.anyCase, _ = regexp.Compile("(?i)" + expr) // as the other
}

// matches reports whether the hook is for one of the names. Events that are about nothing have no names, and a matcher
// says nothing then. The tools of servers are also called by their names in any case.
func (h Hook) matches(names []string) bool {
	pattern := h.pattern
	if slices.Contains(names, callTool) {
		pattern = h.anyCase
	}
	return h.Matcher == "" || len(names) == 0 || slices.ContainsFunc(names, pattern.MatchString)
}

// String returns the hook as people read it and trust it: the matcher, the time limit and the whole command. The lines
// of a command after the first are indented, so that no command looks like two hooks.
func (h Hook) String() string {
	matcher := h.Matcher
	if matcher == "" {
		matcher = "*"
	} else if !plainMatcher().MatchString(matcher) {
		matcher = fmt.Sprintf("%q", matcher)
	}
	return fmt.Sprintf("%s (%g s): %s", matcher, h.Timeout.Seconds(), strings.ReplaceAll(h.Command, "\n", "\n    "))
}

// Gist returns the command in a few words.
func (h Hook) Gist() string {
	return text.CutBytes(text.OneLine(h.Command), 80)
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
