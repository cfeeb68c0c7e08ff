package policy

import (
	"path"
	"strings"
)

// Task is a bug and its repository. Paths are relative to Root.
type Task struct {
	Root   string // absolute
	Search string // a text of the file with the bug
	File   string // with the bug
	Old    string // a part of a line of it
	New    string
	Line   string // the whole line, as a patch needs it
	Test   string // the file with the tests
	Before string // the line of it before which a test is added
	Added  string // the lines of the test
	Check  string // the command that runs the tests
	Words  string // at the end
}

type input = map[string]any

// ClaudeCode is the habit of models that know the tools of Claude Code: absolute paths, and commands that begin with a
// cd to the repository.
func ClaudeCode(t Task) Habit {
	at := func(rel string) string { return path.Join(t.Root, rel) }
	bash := func(command, what string) Call {
		return Call{Tool: "Bash", Input: input{"command": "cd " + t.Root + " && " + command, "description": what},
			Other: &Call{Tool: "Bash", Input: input{"command": command, "description": what}}}
	}
	read := func(file string) Call { return Call{Tool: "Read", Input: input{"file_path": file}} }
	todo := func(first, second string) Call {
		return Call{Tool: "TodoWrite", Input: input{"todos": []input{
			{"content": "Fix the bug", "status": first, "activeForm": "Fixing the bug"},
			{"content": "Run the tests", "status": second, "activeForm": "Running the tests"}}}}
	}
	edit := func(file, old, new string) Call {
		return Call{Tool: "Edit", Input: input{"file_path": at(file), "old_string": old, "new_string": new,
			"replace_all": false}}
	}
	return Habit{Words: t.Words, Read: read, Steps: [][]Call{
		{{Tool: "LS", Input: input{"path": t.Root, "ignore": []string{"node_modules"}}},
			bash("git log --oneline | head -5", "Show recent commits")},
		{{Tool: "Grep", Input: input{"pattern": t.Search, "path": t.Root, "output_mode": "content", "-n": true}},
			{Tool: "Glob", Input: input{"pattern": "**/" + path.Base(t.Test), "path": t.Root}}},
		{read(at(t.File)), read(at(t.Test))},
		{todo("in_progress", "pending")},
		{bash(t.Check, "Run the tests")},
		{edit(t.File, t.Old, t.New)},
		{edit(t.Test, t.Before, t.Added+"\n"+t.Before)},
		{bash(t.Check, "Run the tests")},
		{todo("completed", "completed")},
	}}
}

// Codex is the habit of models that know the tools of Codex: lists of words as commands, a directory for each, which
// may be that of the container of their training, and patches, also in the shell.
func Codex(t Task) Habit {
	shell := func(workdir string, command ...string) Call {
		in := input{"command": command, "workdir": workdir, "timeout_ms": 10000}
		if len(command) == 1 {
			in["command"] = []string{"bash", "-lc", command[0]}
		}
		return Call{Tool: "shell", Input: in, Other: &Call{Tool: "shell", Input: input{"command": in["command"]}}}
	}
	plan := func(first, second string) Call {
		return Call{Tool: "update_plan", Input: input{"explanation": "", "plan": []input{
			{"step": "Fix the bug", "status": first}, {"step": "Run the tests", "status": second}}}}
	}
	patch := func(file, lines string) string {
		return "*** Begin Patch\n*** Update File: " + file + "\n@@\n" + lines + "\n*** End Patch"
	}
	fix := patch(t.File, "-"+t.Line+"\n+"+strings.Replace(t.Line, t.Old, t.New, 1))
	added := "+" + strings.ReplaceAll(t.Added, "\n", "\n+") + "\n " + t.Before
	return Habit{Words: t.Words, Read: func(file string) Call { return shell(t.Root, "cat", file) }, Steps: [][]Call{
		{shell("/workspace/"+path.Base(t.Root), "ls -la && git log --oneline | head -5")},
		{shell(t.Root, "grep", "-rn", t.Search, ".")},
		{plan("in_progress", "pending"), shell(t.Root, "sed -n '1,200p' "+t.File),
			shell(t.Root, "sed -n '1,200p' "+path.Join(t.Root, t.Test))},
		{shell(t.Root, t.Check)},
		{shell(t.Root, "cd "+t.Root+" && apply_patch <<'EOF'\n"+fix+"\nEOF")},
		{{Tool: "apply_patch", Input: input{"input": patch(path.Join(t.Root, t.Test), added)}}},
		{shell(t.Root, t.Check)},
		{plan("completed", "completed")},
	}}
}

// Pi is the habit of models that know the tools of pi: relative paths, few tools.
func Pi(t Task) Habit {
	bash := func(command string) Call {
		return Call{Tool: "bash", Input: input{"command": command, "timeout": 60}}
	}
	read := func(file string) Call { return Call{Tool: "read", Input: input{"path": file}} }
	return Habit{Words: t.Words, Read: read, Steps: [][]Call{
		{{Tool: "ls", Input: input{"limit": 100}}, bash("git log --oneline | head -5")},
		{{Tool: "grep", Input: input{"pattern": t.Search, "ignoreCase": false, "literal": true, "limit": 20}},
			{Tool: "find", Input: input{"pattern": path.Base(t.Test), "path": "."}}},
		{read(t.File), read(t.Test)},
		{bash(t.Check)},
		{{Tool: "edit", Input: input{"path": t.File, "oldText": t.Old, "newText": t.New}}},
		{{Tool: "edit", Input: input{"path": t.Test,
			"edits": []input{{"oldText": t.Before, "newText": t.Added + "\n" + t.Before}}}}},
		{bash(t.Check)},
	}}
}
