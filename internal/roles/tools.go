package roles

import (
	"path"
	"slices"
	"strings"

	"muster"
	"muster/internal/frontmatter"
	"muster/internal/permissions"
)

// access says which tools a role has. The zero access is all of them.
type access struct {
	isLimited       bool     // tools: names some
	granted, denied []string // our names of tools, and patterns
	commands        []string // that bash may run, as rules of package permissions have them; nil: all
	missing         []string // names of tools that muster does not have
}

// newAccess reads the tools in the head of a role.
func newAccess(head frontmatter.Fields) (a access) {
	// A field with nothing behind it is one that was left out; an empty list is none of the tools.
	names, _ := head["tools"].([]any)
	a.isLimited = head.Text("tools") != "" || names != nil
	runsAll := false
	for _, name := range head.List("tools") {
		if fold(name) == "bash" {
			command, isLimited := commandsOf(name)
			runsAll = runsAll || !isLimited
			a.commands = append(append([]string{}, a.commands...), command...) // never nil
		}
		if name == "*" || strings.EqualFold(name, "all") {
			a.isLimited = false
		}
		ours, isKnown := ours(name)
		if a.granted = append(a.granted, ours...); !isKnown {
			a.missing = append(a.missing, name)
		}
	}
	if runsAll || !a.isLimited {
		a.commands = nil
	}
	for _, name := range head.List("disallowedtools") {
		ours, _ := ours(name)
		a.denied = append(a.denied, ours...)
	}
	if head.Text("permissionmode") == "plan" { // whoever only plans changes nothing
		a.denied = append(a.denied, "edit_file", "write_file")
	}
	return a
}

// fold returns the name of a tool in small letters, without what stands behind it in parentheses.
func fold(name string) string {
	name, _, _ = strings.Cut(name, "(")
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

// commandsOf returns the commands in the parentheses behind a name, as in Bash(git diff:*, go test *).
func commandsOf(name string) (commands []string, isLimited bool) {
	_, list, isLimited := strings.Cut(strings.TrimSuffix(name, ")"), "(")
	for command := range strings.SplitSeq(list, ",") {
		if command = strings.TrimSpace(command); command == "*" {
			return nil, false
		} else if command != "" {
			before, isPrefix := strings.CutSuffix(command, "*")
			if isPrefix {
				command = strings.TrimRight(before, ": ") + " *"
			}
			commands = append(commands, command)
		}
	}
	return commands, isLimited
}

// ours returns our tools for a name of a tool that a file has: one of ours, or one that Claude Code's files use. A
// pattern in parentheses is left out. isKnown is false for a name that no tool of muster's has.
func ours(name string) (tools []string, isKnown bool) {
	name, _, _ = strings.Cut(name, "(")
	if strings.HasPrefix(name, "mcp__") {
		if strings.Count(name, "__") == 1 { // a server means all of its tools
			name += "__*"
		}
		return []string{name}, true
	}
	switch fold(name) {
	case "read", "readfile", "notebookread":
		return []string{"read_file"}, true
	case "grep":
		return []string{"grep"}, true
	case "glob", "ls":
		return []string{"glob"}, true
	case "edit", "editfile", "multiedit", "notebookedit":
		return []string{"edit_file"}, true
	case "write", "writefile":
		return []string{"write_file"}, true
	case "bash":
		return []string{"bash"}, true
	case "task", "agent", "subagent":
		return []string{"subagent"}, true
	case "applypatch":
		return []string{"edit_file", "write_file"}, true
	case "bashoutput", "killshell", "killbash", "checkbackground", "stopbackground", // whoever has bash has them
		"todowrite", "todoread", "todo", "skill", "loadskill", "searchskills", "exitplanmode", "submitplan",
		"sendmessage", "readinbox", "taskcreate", "taskget", "tasklist", "taskupdate", "claimtask", "completetask",
		"releasetask", "respondshutdown", "idle", "compact", "*", "all", "tools":
		return nil, true // every member has them, or no role can take them away
	}
	return []string{name}, false // a tool of an embedder may have the name
}

// Allows reports whether the members of a role have one of the tools with which they work: those for files, commands
// and subagents, and those of embedders and servers. writes says that the tool can change something. The tools by which
// a member takes part in the team are not asked for here: every member has them.
//
// A role that can neither write nor edit files has no tool that changes anything, unless its file names a tool of an
// embedder or a server. It has no bash, whatever its file says: a command can write. Its subagents only read.
func (r Role) Allows(tool string, writes bool) bool {
	switch tool {
	case "check_background", "stop_background":
		tool = "bash" // they serve it
	case "apply_patch":
		return r.tools.has("edit_file") && r.tools.has("write_file")
	}
	switch {
	case !r.tools.has(tool):
		return false
	case tool == "bash" || writes && tool != "subagent" && !r.tools.names(tool):
		return r.Writes()
	}
	return true
}

// MayRun returns nil if the members of a role may run a command. A role whose file has commands behind bash, in
// parentheses, runs no others. That keeps a model to what it is meant to do: what such a command runs is not looked at.
func (r Role) MayRun(command string) error {
	if r.tools.commands == nil {
		return nil
	}
	policy := permissions.Policy{Mode: permissions.AskFirst}
	for _, pattern := range r.tools.commands {
		rule, err := permissions.ParseRule(permissions.Allow, "bash("+pattern+")", "")
		if err != nil {
			return err
		}
		policy.Rules = append(policy.Rules, rule)
	}
	if d := policy.Decide(permissions.Call{Tool: "bash", Command: command, Writes: true},
		nil); d.Action != permissions.Allow {
		return muster.Errorf(muster.Invalid,
			"your role runs these commands only, and none that can be known only when it "+
				"runs: %s; it was %s", strings.Join(r.tools.commands, ", "), d.Subject)
	}
	return nil
}

// Writes reports whether the members of a role can change files.
func (r Role) Writes() bool { return r.tools.has("write_file") || r.tools.has("edit_file") }

// Tools returns the names of the tools for files, commands and subagents that the role has, and the patterns for those
// of servers. all says that it has every tool.
func (r Role) Tools() (names []string, all bool) {
	for _, name := range []string{"bash", "read_file", "write_file", "edit_file", "glob", "grep", "subagent"} {
		if !r.Allows(name, false) {
			continue
		}
		if name == "bash" && r.tools.commands != nil {
			name += "(" + strings.Join(r.tools.commands, ", ") + ")"
		}
		names = append(names, name)
	}
	for _, name := range r.tools.granted {
		if !slices.Contains(names, name) && strings.HasPrefix(name, "mcp__") && r.tools.isLimited {
			names = append(names, name)
		}
	}
	return names, !r.tools.isLimited && len(r.tools.denied) == 0
}

// Missing returns the names in the file that no tool of muster's has.
func (r Role) Missing() []string { return r.tools.missing }

// has reports whether the lists of a file leave a tool to the role.
func (a access) has(tool string) bool {
	return (!a.isLimited || a.names(tool)) && !slices.ContainsFunc(a.denied, matches(tool))
}

// names reports whether a file grants a tool by its name or by a pattern.
func (a access) names(tool string) bool { return slices.ContainsFunc(a.granted, matches(tool)) }

// matches returns a function that reports whether a pattern matches a tool.
func matches(tool string) func(pattern string) bool {
	return func(pattern string) bool {
		ok, err := path.Match(pattern, tool)
		return ok && err == nil || pattern == tool
	}
}
