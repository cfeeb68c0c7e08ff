package hooks

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster/internal/lazyregexp"
	"muster/llm"
)

// toolNames returns the names of our tools in hooks: those of the tool, the first of which hooks are told, and then its
// fields as OURS=THEIRS.
func toolNames(tool string) (names, fields []string) {
	const paths = "; path=file_path old_text=old_string new_text=new_string"
	theirs, renamed, _ := strings.Cut(map[string]string{
		"bash": "Bash; background=run_in_background", "worktree_run": "Bash",
		"read_file": "Read" + paths, "write_file": "Write" + paths, "edit_file": "Edit MultiEdit" + paths,
		"apply_patch": "Edit MultiEdit Write", "grep": "Grep", "glob": "Glob",
		"subagent": "Task Agent; kind=subagent_type", "todo": "TodoWrite; items=todos text=content",
		"load_skill": "Skill; name=skill", "check_background": "BashOutput; id=bash_id",
		"stop_background": "KillShell KillBash; id=shell_id", "task_create": "TaskCreate",
	}[tool], ";")
	return append(strings.Fields(theirs), tool), strings.Fields(renamed)
}

// patchedFile matches a line of a patch that names a file.
var patchedFile = lazyregexp.New(`(?m)^\s*\*\*\* (?:Update File|Add File|Delete File|Move to): (.*\S)`)

// callTool is the tool that calls one of a server's tools by its name.
const callTool = "call_tool"

// ToolNames returns the names of a tool of ours, for matchers: those that people know, then ours.
func ToolNames(tool string) []string {
	names, _ := toolNames(tool)
	return names
}

// ownTools are muster's tools.
const ownTools = "apply_patch bash broadcast call_tool check_background claim_task compact complete_task edit_file " +
	"glob " +
	"grep idle list_resources list_teammates load_skill read_file read_inbox read_resource release_task " +
	"request_shutdown respond_shutdown review_plan save_memory search_skills search_tools send_message " +
	"spawn_teammate stop_background subagent submit_plan task_create task_get task_list task_update todo " +
	"verdict wait worktree_create worktree_events worktree_keep worktree_list worktree_remove worktree_run " +
	"worktree_status write_file"

// toolSubjects returns all names of muster's tools.
var toolSubjects = sync.OnceValue(func() (all []string) {
	for tool := range strings.FieldsSeq(ownTools) {
		all = append(all, ToolNames(tool)...)
	}
	return all
})

// IsTool reports whether muster has a tool with a name, which may be one that people know it by.
func IsTool(name string) bool {
	return slices.ContainsFunc(toolSubjects(), func(x string) bool { return strings.EqualFold(x, name) })
}

// ToolCall is the call of a tool as hooks see it.
type ToolCall struct {
	Names []string // ToolNames of the tool: hooks are told the first one
	Input map[string]any
	call  llm.Call
}

// Calls returns a call as hooks see it, in the directory where the tool works: a patch is one edit for each of its
// files. A call whose input is no object has none, and no tool runs it.
func Calls(c llm.Call, dir string) (all []ToolCall) {
	in, ok := decode(c.Input)
	if !ok {
		return nil
	}
	names, fields := toolNames(c.Name)
	t := ToolCall{Names: names, call: c}
	if c.Name == callTool {
		var inner struct{ Input json.RawMessage }
		_ = json.Unmarshal(c.Input, &inner) // it is an object
		data, _ := llm.Input(inner.Input)
		name, _ := in["name"].(string)
		t.Names = []string{name, callTool}
		t.Input, _ = decode(data)
		return []ToolCall{t}
	}
	if c.Name == "apply_patch" {
		patch, _ := in["input"].(string)
		for _, file := range patchedFile().FindAllStringSubmatch(patch, -1) {
			t.Input = map[string]any{"file_path": below(dir, strings.TrimSpace(file[1])), "patch": patch}
			all = append(all, t)
		}
		if len(all) > 0 {
			return all
		}
	}
	t.Input, _ = rename(in, fields, 0).(map[string]any)
	if file, isText := t.Input["file_path"].(string); isText {
		t.Input["file_path"] = below(dir, file)
	}
	scale(t.Input, "timeout", c.Name, 1000)
	return []ToolCall{t}
}

// Changed returns the call with the input that hooks want. They cannot change a patch. Whether the input is right is
// for the tool to say.
func (t ToolCall) Changed(input map[string]any) llm.Call {
	if input == nil || t.call.Name == "apply_patch" {
		return t.call
	}
	_, fields := toolNames(t.call.Name)
	in, _ := rename(input, fields, 1).(map[string]any)
	if t.call.Name == callTool {
		in = map[string]any{"name": t.Names[0], "input": in}
	}
	scale(in, "timeout", t.call.Name, 1.0/1000)
	c := t.call
	if data, err := json.Marshal(in); err == nil { // it was JSON before
		c.Input = data
	}
	return c
}

// decode returns a JSON object with its numbers as they are written.
func decode(data json.RawMessage) (in map[string]any, ok bool) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	return in, d.Decode(&in) == nil && in != nil
}

// below returns a path that is relative to dir as an absolute one.
func below(dir, path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// rename returns a value with the fields of its objects renamed, from the names on one side of each pair to the others.
func rename(v any, pairs []string, from int) any {
	switch v := v.(type) {
	case map[string]any:
		renamed := map[string]any{}
		for name, value := range v {
			i := slices.IndexFunc(pairs, func(pair string) bool { return strings.Split(pair, "=")[from] == name })
			if i >= 0 {
				name = strings.Split(pairs[i], "=")[1-from]
			}
			renamed[name] = rename(value, pairs, from)
		}
		return renamed
	case []any:
		for i := range v {
			v[i] = rename(v[i], pairs, from)
		}
	}
	return v
}

// scale multiplies a field: times of bash are milliseconds in hooks, and seconds in our tools.
func scale(in map[string]any, field, tool string, by float64) {
	n, isNumber := in[field].(json.Number)
	if f, err := n.Float64(); isNumber && err == nil && tool == "bash" {
		in[field] = int64(f * by)
	}
}
