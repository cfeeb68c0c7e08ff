package teammate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/llm"
)

// Gist is a call in a few words, for people: its most telling value.
func Gist(c llm.Call) string {
	var in map[string]any
	if json.Unmarshal(c.Input, &in) != nil {
		return ""
	}
	for _, key := range []string{"command", "path", "pattern", "subject", "to", "name", "task_id", "prompt"} {
		if v, ok := in[key]; ok && v != nil && v != "" {
			line, _, _ := strings.Cut(fmt.Sprint(v), "\n")
			return text.OneLine(line)
		}
	}
	return ""
}

// namedPaths returns the paths that a call names in its fields, whatever the model calls them, or in a patch.
func namedPaths(c llm.Call) (paths []string) {
	var in map[string]any
	// Input that does not fit names no path that the tool has taken.
	if json.Unmarshal(c.Input, &in) != nil {
		return nil
	}
	for _, field := range slices.Sorted(maps.Keys(in)) {
		text, isText := in[field].(string)
		name := strings.ToLower(field)
		switch {
		case !isText || text == "":
		case c.Name == "apply_patch":
			paths = append(paths, code.PatchPaths(text)...)
		case strings.Contains(name, "path"), strings.Contains(name, "file"), strings.Contains(name, "dir"):
			paths = append(paths, text)
		}
	}
	return paths
}

func writesFiles(tool string) bool {
	return slices.Contains([]string{"write_file", "edit_file", "apply_patch"}, tool)
}

func touchedFiles(call llm.Call) (reads, writes []string) {
	switch {
	case call.Name == "read_file":
		return namedPaths(call), nil
	case writesFiles(call.Name):
		return nil, namedPaths(call)
	}
	return nil, nil
}
