package tool

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"

	"muster/llm/repair"
)

// aliases are the names that other programs have for a field, as repair.Fold returns them. One counts where the tool
// has the field and no field of that name. It must mean the same whatever the tool: a name that could mean two fields
// of a tool is none of its aliases.
var aliases = map[string][]string{
	"path": {"filepath", "filename", "file", "targetfile", "absolutepath", "relativepath", "relativeworkspacepath",
		"pathname", "dirpath", "directory", "notebookpath", "targetdirectory"},
	"command": {"cmd", "script", "shellcommand", "bashcommand", "commandline"},
	"content": {"message", "text", "contents", "body", "filetext", "filecontent", "filecontents", "codecontent",
		"msg", "data"},
	"old_text":       {"oldstring", "oldstr", "old", "search", "searchtext", "oldcontent", "original"},
	"new_text":       {"newstring", "newstr", "new", "replace", "replacement", "replacetext", "newcontent"},
	"replace_all":    {"allowmultiple", "all", "replaceallmatches", "isglobal"},
	"pattern":        {"regex", "query", "searchpattern", "regexp", "globpattern", "searchterm", "searchquery"},
	"glob":           {"include", "includepattern", "filepattern", "includes", "filter"},
	"timeout":        {"timeoutseconds", "timeoutsec", "timeoutsecs"},
	"background":     {"runinbackground", "isbackground"},
	"workdir":        {"cwd", "workingdirectory", "workingdir", "directory", "dir", "dirpath"},
	"offset":         {"startline", "line", "linestart", "fromline", "startlineoneindexed"},
	"limit":          {"linecount", "maxlines", "numlines", "count"},
	"head_limit":     {"maxresults", "limit", "maxcount", "resultlimit"},
	"literal":        {"fixedstrings", "fixedstring", "isliteral", "literalsearch"},
	"subject":        {"title", "name", "tasktitle", "taskname"},
	"description":    {"details", "body", "desc", "prompt", "instructions"},
	"blocked_by":     {"blockers", "dependson", "dependencies", "deps", "addblockedby"},
	"add_blocked_by": {"blockedby", "dependson"},
	"task_id":        {"id", "task", "tasknumber"},
	"summary":        {"result", "message", "description", "notes", "report"},
	"reason":         {"message", "why", "explanation", "note"},
	"to":             {"recipient", "receiver", "target", "targetagentid", "agent", "teammate", "member", "name"},
	"teammate":       {"name", "member", "recipient", "to", "agent", "target"},
	"name":           {"teammate", "teammatename", "agentname", "lane", "worktree", "member"},
	"role":           {"subagenttype", "agenttype", "type"},
	"prompt":         {"instructions", "task", "message", "description", "instruction"},
	"kind":           {"subagenttype", "type", "agenttype", "mode"},
	"plan":           {"content", "text", "plantext"},
	"request_id":     {"id", "request", "requestid"},
	"approve":        {"approved", "accept", "decision"},
	"feedback":       {"reason", "message", "comment", "response"},
	"items":          {"todos", "list", "tasks", "plan", "todolist"},
	"text":           {"content", "title", "step", "description", "task"},
	"id":             {"jobid", "bashid", "shellid", "taskid", "sessionid"},
	"edits":          {"changes", "replacements", "modifications"},
	"input":          {"patch", "patchtext", "patchcontent", "diff", "content", "text"},
	"owner":          {"assignee", "assignedto"},
	"claim_role":     {"role"},
	"require_plan":   {"planrequired", "requiresplan", "needsplan", "planmoderequired"},
}

// opposites are the names that other programs have for a boolean field which means the opposite there, as repair.Fold
// returns them.
var opposites = map[string][]string{"literal": {"isregexp", "isregex", "useregex"}}

// milliseconds are the names that other programs have for a field of seconds, and that count milliseconds.
var milliseconds = map[string][]string{"timeout": {"timeoutms", "timeoutmillis", "timeoutmilliseconds"}}

// restricting are names of fields, as repair.Fold returns them, that say where or how little a tool is to do. A tool
// that changes something and has no such field must not run as if nothing had been said.
var restricting = []string{"dryrun", "preview", "simulate", "checkonly", "cwd", "workdir", "workingdirectory",
	"workingdir", "directory", "dir", "host", "user", "stdin", "input", "env", "environment", "expectedreplacements",
	"expectedoccurrences", "line", "startline", "endline", "insertline", "linenumber", "occurrence", "append", "mode",
	"ifnotexists", "createonly", "confirm", "edits", "viewrange", "interactive", "until", "after"}

// fieldFor returns the field of s that is meant by name, which is none: one that differs in case and separators, or
// the only one that has this name elsewhere. given are the other fields of the object.
func fieldFor(s *shape, name string, given map[string]any) string {
	folded := repair.Fold(name)
	var found []string
	for _, field := range s.PropertyOrder {
		if repair.Fold(field) == folded {
			return field
		}
		if slices.Contains(aliases[field], folded) {
			found = append(found, field)
		}
	}
	// Of two that may be meant, the one is not that has been given itself.
	if len(found) > 1 {
		found = slices.DeleteFunc(found, func(field string) bool { return given[field] != nil })
	}
	if len(found) != 1 {
		return ""
	}
	return found[0]
}

// converted returns the field of s that name means in another way, and its value: the opposite of a boolean, or seconds
// for milliseconds. Any other field is returned as it is.
func converted(s *shape, name string, given any) (string, any) {
	folded := repair.Fold(name)
	for _, field := range s.PropertyOrder {
		if is, ok := toBoolean(given); ok && slices.Contains(opposites[field], folded) {
			return field, !is.(bool)
		}
		n, ok := toNumber(given, "number")
		if !ok || !slices.Contains(milliseconds[field], folded) {
			continue
		}
		if ms, err := n.(json.Number).Float64(); err == nil {
			return field, json.Number(strconv.FormatInt(int64(math.Ceil(ms/1000)), 10))
		}
	}
	return name, given
}

// isNothing reports whether a value asks for nothing.
func isNothing(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == "" || v == "." // where it works anyway
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case map[string]any:
		return len(v) == 0
	}
	return false
}
