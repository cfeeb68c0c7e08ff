package replay

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"muster/bench/habits/session"
)

// lineOf is a numbered line of a read in an export.
var lineOf = regexp.MustCompile(`^ *(\d+)(?:→|\t)(.*)$`)

// lines returns the lines of a read by their numbers, and the first number.
func lines(result string) (all map[int]string, first int) {
	all = map[int]string{}
	for line := range strings.SplitSeq(result, "\n") {
		m := lineOf.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, _ := strconv.Atoi(m[1])
		if len(all) == 0 {
			first = n
		}
		all[n] = strings.TrimSuffix(m[2], "\r")
	}
	return all, first
}

// arguments returns the arguments of a call, under the names that the agent's tool has, or ok false if the export does
// not have what the call needs. here translates a path.
func arguments(agent string, c *session.Call, here func(string) string) (input map[string]any, ok bool) {
	input = map[string]any{}
	for _, name := range c.Names { // an export that names the arguments has all of them
		input[name] = decoded(c.Args[name])
	}
	first := ""
	if len(c.Paths) > 0 {
		first = here(c.Paths[0])
	}
	switch c.Does {
	case session.Read:
		input[pathName(agent, c)] = first
		if all, from := lines(c.Result); len(all) > 0 && (from > 1 || input["offset"] == nil) {
			input["offset"], input["limit"] = from, len(all)
		}
		return input, first != ""
	case session.Write:
		input[pathName(agent, c)] = first
		_, has := input["content"]
		if !has {
			input["content"], has = c.Args["content"], c.Args["content"] != ""
		}
		return input, has && first != ""
	case session.Edit:
		return editArguments(agent, c, input, first, here)
	case session.Search:
		return searchArguments(c, input, here)
	}
	return nil, false
}

// said are the names by which models call tools of which exports have an editor's own names.
var said = map[string]string{"read_file_v2": "read_file", "copilot_readFile": "read_file", "ripgrep_raw_search": "grep",
	"copilot_findFiles": "file_search", "copilot_listDirectory": "list_dir",
	"list_dir_v2": "list_dir", "copilot_replaceString": "replace_string_in_file", "copilot_createFile": "create_file",
	"copilot_applyPatch": "apply_patch", "copilot_searchCodebase": "semantic_search"}

// decoded returns a value of JSON, or the text itself.
func decoded(text string) any {
	var v any
	if json.Unmarshal([]byte(text), &v) == nil {
		if _, isText := v.(string); !isText {
			return v
		}
	}
	return text
}

// pathName is the name of the path's argument.
func pathName(agent string, c *session.Call) string {
	for _, name := range c.Names {
		switch name {
		case "filePath", "file_path", "path", "target_file", "absolute_path":
			return name
		}
	}
	switch {
	case agent == "Copilot":
		return "filePath"
	case agent == "Cursor" && c.Does == session.Read:
		return "target_file"
	}
	return "file_path"
}

// editArguments returns the arguments of an edit. Cursor exports the diff of what was done: the lines of its one chunk
// stand for the texts of the call.
func editArguments(agent string, c *session.Call, input map[string]any, first string, here func(string) string) (
	map[string]any, bool) {
	if patch := c.Args["input"]; strings.Contains(patch, "*** ") {
		for _, p := range c.Paths {
			patch = strings.ReplaceAll(patch, " File: "+p+"\n", " File: "+here(p)+"\n")
		}
		if !strings.Contains(patch, "*** Begin Patch") {
			patch = "*** Begin Patch\n" + patch + "*** End Patch"
		}
		return map[string]any{"input": patch}, true
	}
	if _, ok := input["oldString"].(string); ok {
		input[pathName(agent, c)] = first
		return input, first != ""
	}
	if chunks := chunksOf(c.Args["diff"]); len(chunks) == 1 && first != "" && chunks[0].old != "" {
		return map[string]any{"file_path": first, "old_string": chunks[0].old, "new_string": chunks[0].now}, true
	}
	return nil, false
}

// searchArguments returns the arguments of a search.
func searchArguments(c *session.Call, input map[string]any, here func(string) string) (map[string]any, bool) {
	for _, name := range []string{"pattern", "include"} {
		if v := c.Args[name]; v != "" && input[name] == nil {
			input[name] = v
		}
	}
	if c.Tool == "copilot_findTextInFiles" { // whether its text is a pattern is not in the export
		return nil, false
	}
	pattern, _ := input["pattern"].(string)
	switch p := c.Args["path"]; {
	case p != "":
		input["path"] = here(p)
	case c.Tool == "Glob" && strings.Contains(pattern, "/") && !strings.HasPrefix(pattern, "**/"):
		// It is below the session's working directory.
		input["pattern"] = here(pattern)
	}
	if strings.HasPrefix(c.Result, "Found ") && strings.EqualFold(c.Tool, "grep") {
		input["output_mode"] = "files_with_matches"
	}
	return input, input["pattern"] != nil || input["query"] != nil
}

// chunk is a part of a diff: the lines from the number on, before and after.
type chunk struct {
	old, now string
	from     int
}

// chunkHead begins a chunk.
var chunkHead = regexp.MustCompile(`^@@ -(\d+)(?:,\d+)? \+\d+(?:,\d+)? @@`)

// chunksOf returns the chunks of a diff as Cursor's exports have it: two characters before each line.
func chunksOf(diff string) (chunks []chunk) {
	var old, now []string
	end := func() {
		if n := len(chunks); n > 0 {
			chunks[n-1].old, chunks[n-1].now = strings.Join(old, "\n"), strings.Join(now, "\n")
		}
		old, now = nil, nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		if m := chunkHead.FindStringSubmatch(line); m != nil {
			end()
			from, _ := strconv.Atoi(m[1])
			chunks = append(chunks, chunk{from: from})
			continue
		}
		text := ""
		if len(line) > 2 {
			text = line[2:]
		}
		switch {
		case strings.HasPrefix(line, "-"):
			old = append(old, text)
		case strings.HasPrefix(line, "+"):
			now = append(now, text)
		default:
			old, now = append(old, text), append(now, text)
		}
	}
	end()
	return chunks
}

// apply makes the changes of a diff at the lines that it names. ok is false if the text has other lines there.
func apply(text string, chunks []chunk) (after string, ok bool) {
	all := strings.Split(text, "\n")
	shift := 0
	for _, c := range chunks {
		old, now := strings.Split(c.old, "\n"), strings.Split(c.now, "\n")
		at := max(c.from-1+shift, 0)
		if at+len(old) > len(all) {
			return "", false
		}
		for i, line := range old {
			if strings.TrimRight(all[at+i], " \r\t") != strings.TrimRight(line, " \r\t") {
				return "", false
			}
		}
		all = append(all[:at:at], append(now, all[at+len(old):]...)...)
		shift += len(now) - len(old)
	}
	return strings.Join(all, "\n"), true
}
