package permissions

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
)

// callTool is the tool that calls one of a server's tools by its name.
const callTool = "call_tool"

// IsGuarded reports whether a tool writes files, runs commands or calls a server: the mode decides about its calls. The
// tools by which members take part in the team are not guarded: without them no member could say what it lacks.
func IsGuarded(tool string) bool {
	return slices.Contains(fileTools, tool) || slices.Contains(commandTools, tool) || tool == callTool ||
		strings.HasPrefix(tool, "mcp__")
}

// NewCall returns a call of a tool with an input, which works in a directory and names paths. The paths are those that
// the tool itself reads from the input: a patch, say, may name its files in several ways, and one that only the tool
// finds would be one that no rule is for. A tool of a server that is called by call_tool is decided about as the tool
// that it is.
func NewCall(tool string, input json.RawMessage, dir string, paths []string) Call {
	var in struct{ Command, Name string }
	_ = json.Unmarshal(input, &in) // what does not fit is refused by the tool
	c := Call{Tool: tool}
	switch {
	case slices.Contains(commandTools, tool):
		c.Command = in.Command
	case tool == callTool && in.Name != "":
		c.Tool = in.Name
	case !strings.HasPrefix(tool, "mcp__"): // a server has directories of its own
		for _, path := range paths {
			c.Paths = append(c.Paths, relative(dir, path)...)
		}
	}
	return c
}

// relative returns the names of a file relative to a directory: the one that a call has, and the one to which links
// lead. A file outside of the directory keeps its absolute name, which no pattern of files in a lane matches.
func relative(dir, path string) (names []string) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	add := func(dir, path string) {
		if rel, err := filepath.Rel(dir, path); err == nil && !strings.HasPrefix(rel, "..") {
			path = rel
		}
		if path = filepath.ToSlash(path); !slices.Contains(names, path) {
			names = append(names, path)
		}
	}
	path = filepath.Clean(path)
	add(dir, path)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return names
	}
	// What is to be written may not exist yet: its closest directory that does counts.
	rest := ""
	for at := path; ; at = filepath.Dir(at) {
		if target, err := filepath.EvalSymlinks(at); err == nil {
			add(real, filepath.Join(target, rest))
			return names
		}
		if at == filepath.Dir(at) {
			return names
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
