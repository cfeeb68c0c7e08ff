// Package session reads sessions of coding agents that SpecStory has exported as Markdown.
//
// The exports differ by agent and by version: some have the arguments and the results of calls, some have neither. A
// Call has what its export has, and nothing that was guessed.
package session

import (
	"strings"
	"time"
)

// Session is one exported conversation.
type Session struct {
	ID    string // "" if the export has none
	Agent string // as the export names it, or "not named"
	Start time.Time
	// Events are in the order of the export. Calls that an export has twice are listed once.
	Events []Event
	// Copies is the number of calls that were left out because they repeat the call before them.
	Copies int
	// Broken is the number of calls without an end.
	Broken int
}

// continued begins the message in which Claude Code puts a summary in the place of a conversation.
const continued = "This session is being continued from a previous conversation"

// IsSummary reports whether what was read before the event is gone: a summary takes the place of the conversation.
func (e Event) IsSummary() bool { return e.Kind == Prompt && strings.HasPrefix(e.Text, continued) }

// Kind says what an event is.
type Kind int

// The kinds of events.
const (
	Prompt  Kind = iota + 1 // words of the user
	Words                   // words of the agent
	Thought                 // what the agent has thought
	Use                     // a call
)

// Event is a part of a conversation.
type Event struct {
	Kind Kind
	Text string
	// Side says that a subagent's conversation has the event.
	Side bool
	// Message is the number of the heading above the event. Most exports have a heading for each call.
	Message int
	// Time is that of the heading, which for a call is the time of its result. The zero time: the export has none.
	Time time.Time
	Call *Call // of a Use
}

// Call is a call of a tool, and its result.
type Call struct {
	Tool string // its name
	Does Action
	// Args are the arguments. Names are those that the export calls by their own names; it may have renamed the others.
	// Paths and Command are what the arguments or the result say.
	Args    map[string]string
	Names   []string
	Paths   []string
	Command string
	Result  string
	// HasResult says that the export has the result of the call. An empty one can be a result too.
	HasResult bool
	Failed    bool
	// Refused says that the user has not allowed the call.
	Refused bool
}

// Action is what a tool does.
type Action int

// The actions.
const (
	Other Action = iota
	Read
	Edit
	Write
	Shell
	Search
)

// String returns the action in one word.
func (a Action) String() string {
	return [...]string{"other", "read", "edit", "write", "shell", "search"}[a]
}

// actions are the tools of which it is known what they do.
var actions = map[string]Action{
	"Read": Read, "read_file": Read, "read_file_v2": Read, "copilot_readFile": Read, "ReadFile": Read, "view": Read,
	"view_file": Read, "cat": Read,
	"Edit": Edit, "MultiEdit": Edit, "edit_file": Edit, "edit_file_v2": Edit, "search_replace": Edit, "replace": Edit,
	"replace_string_in_file": Edit, "multi_replace_string_in_file": Edit, "copilot_replaceString": Edit,
	"copilot_multiReplaceString": Edit, "apply_patch": Edit, "copilot_applyPatch": Edit, "insert_edit_into_file": Edit,
	"copilot_insertEdit": Edit, "NotebookEdit": Edit, "code_edit": Edit, "StrReplace": Edit, "str_replace": Edit,
	"Write": Write, "write": Write, "write_file": Write, "create_file": Write, "copilot_createFile": Write,
	"Bash": Shell, "bash": Shell, "shell": Shell, "Shell": Shell, "shell_command": Shell, "exec_command": Shell,
	"run_terminal_cmd": Shell, "run_terminal_command_v2": Shell, "run_terminal_command": Shell,
	"run_shell_command": Shell, "run_in_terminal": Shell, "copilot_runInTerminal": Shell,
	"Grep": Search, "grep": Search, "grep_search": Search, "ripgrep_raw_search": Search, "ripgrep": Search,
	"search_file_content": Search, "copilot_findTextInFiles": Search, "codebase_search": Search,
	"semantic_search": Search, "Glob": Search, "glob": Search, "glob_file_search": Search, "file_search": Search,
	"copilot_findFiles": Search, "LS": Search, "list_dir": Search, "list_dir_v2": Search, "list_directory": Search,
	"copilot_listDirectory": Search,
}
