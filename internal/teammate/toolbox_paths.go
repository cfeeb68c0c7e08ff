package teammate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/paths"
	"muster/internal/shellcommands"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/llm"
	"muster/tool"
)

// onePath makes a path below the repository mean the same file where the member's tools run, commands among them: in
// its lane, or in its view of what has landed. Models name files by the path that the first message says. The team's
// own directories keep their paths.
type onePath struct {
	home       paths.Dir
	isConfined bool // the checkout is protected from commands
	refused    guarded[bool]
}

// around maps the paths of a call. It is outside of the rules of permissions and of hooks, which see the file that is
// meant.
func (o *onePath) around(t llm.Tool, dir code.Place) func(context.Context, llm.Call, tool.Next) (llm.Result, error) {
	name := t.Spec().Name
	if !strings.HasPrefix(name, "mcp__") && !slices.Contains([]string{"bash", "read_file", "write_file", "edit_file",
		"apply_patch", "glob", "grep", "call_tool"}, name) {
		return nil
	}
	home, _ := json.Marshal(string(o.home)) // as it stands in the input of a call
	home = bytes.Trim(home, `"`)
	return func(ctx context.Context, c llm.Call, next tool.Next) (llm.Result, error) {
		if !bytes.Contains(c.Input, home) {
			return next(ctx, c)
		}
		at, err := dir.Workdir(ctx)
		if err != nil { // the tool says what is wrong
			return next(ctx, c)
		}
		c.Input = o.mapped(name, tool.Fit(t, c.Input), at)
		if name == "bash" {
			return o.command(ctx, c, at.Dir, next)
		}
		return next(ctx, c)
	}
}

// mapped returns the input of a call with its paths mapped: those in the fields that name files, in a patch, and of a
// server's tool each text that is a path as a whole. What can be read by its path, such as a skill, is read there.
func (o *onePath) mapped(name string, input json.RawMessage, at code.Workdir) json.RawMessage {
	dir := at.Dir
	isReadable := func(path string) bool {
		return !writesFiles(name) && slices.ContainsFunc(at.ReadOnly, func(dir string) bool {
			rel, err := filepath.Rel(dir, path)
			return err == nil && filepath.IsLocal(rel)
		})
	}
	var in map[string]any
	d := json.NewDecoder(bytes.NewReader(input))
	d.UseNumber()
	if d.Decode(&in) != nil {
		return input
	}
	isServers := name == "call_tool" || strings.HasPrefix(name, "mcp__")
	changed := false
	var walk func(field string, v any) any
	walk = func(field string, v any) any {
		switch v := v.(type) {
		case string:
			mapped := v
			switch {
			case isReadable(v):
			case name == "bash" && field == "command" && isPatch(v):
				mapped = code.MapPatchPaths(v, func(path string) string { return o.path(path, dir) })
			case name == "apply_patch" && field == "input":
				mapped = code.MapPatchPaths(v, func(path string) string { return o.relative(path, at) })
			case name == "glob" || name == "grep" && field == "path":
				mapped = o.relative(v, at) // what is found is named as the model names it
			case isServers || field == "path", name == "bash" && field == "workdir":
				mapped = o.path(v, dir)
			}
			changed = changed || mapped != v
			return mapped
		case []any:
			for i := range v {
				v[i] = walk(field, v[i])
			}
		case map[string]any:
			for field := range v {
				v[field] = walk(field, v[field])
			}
		}
		return v
	}
	for field := range in {
		in[field] = walk(field, in[field])
	}
	if !changed {
		return input
	}
	data, err := json.Marshal(in)
	if err != nil {
		return input
	}
	return data
}

// isPatch reports whether a command does nothing but apply a patch.
func isPatch(command string) bool {
	_, _, ok := shellcommands.Patch(command)
	return ok
}

// path returns the path in dir that a path below the repository means, and any other text as it is.
func (o *onePath) path(path, dir string) string {
	if rel, ok := o.below(path, dir); ok {
		return filepath.Join(dir, rel)
	}
	return path
}

// relative is path with a result relative to where relative paths begin.
func (o *onePath) relative(path string, at code.Workdir) string {
	if rel, ok := o.below(path, at.Dir); ok {
		if rel, err := filepath.Rel(cmp.Or(at.Sub, "."), rel); err == nil {
			return filepath.ToSlash(rel)
		}
	}
	return path
}

// below returns the path relative to the repository of one that is below it, but neither below dir nor below a
// directory of the team.
func (o *onePath) below(path, dir string) (rel string, ok bool) {
	if !filepath.IsAbs(path) || strings.ContainsAny(path, "\n\x00") {
		return "", false
	}
	path = filepath.Clean(path)
	if in, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(in) {
		return "", false
	}
	rel, err := filepath.Rel(string(o.home), path)
	others := append(slices.Clip(paths.Excluded), "/.git/")
	// The user may have lanes made elsewhere in the repository.
	lanes, laneErr := filepath.Rel(string(o.home), filepath.Dir(dir))
	if laneErr == nil && filepath.IsLocal(lanes) && lanes != "." {
		others = append(others, "/"+filepath.ToSlash(lanes)+"/")
	}
	if err != nil || !filepath.IsLocal(rel) || paths.IsBelow(filepath.ToSlash(rel), others) {
		return "", false
	}
	return rel, true
}

// command runs a command that may name the repository. Its words mean files of dir, as paths of other tools do. Where
// another part of it names the repository, such as code in another language, what a program reads there is what the
// user has, without the changes of the lane, and the result says so. Where nothing protects the user's files, such a
// command is not run the first time.
func (o *onePath) command(ctx context.Context, c llm.Call, dir string, next tool.Next) (llm.Result, error) {
	in := map[string]json.RawMessage{}
	var command string
	if json.Unmarshal(c.Input, &in) != nil || json.Unmarshal(in["command"], &command) != nil {
		return next(ctx, c)
	}
	mapped, others := shellcommands.MapPaths(command, string(o.home), func(path string) (string, bool) {
		rel, ok := o.below(path, dir)
		// The characters that are new must mean themselves in any quotes, and without them.
		added := strings.TrimPrefix(dir, string(o.home))
		if !ok || text.ShellQuote(added) != added {
			return "", false
		}
		if strings.ContainsAny(rel, " \t") { // a path, or a sentence that begins with one
			_, err := os.Lstat(filepath.Join(dir, rel))
			return dir, err == nil
		}
		return dir, true
	})
	if mapped != command {
		in["command"], _ = muster.MarshalLine(mapped)
		c.Input, _ = muster.MarshalLine(in)
	}
	isUsers := func(path string) bool { _, ok := o.below(path, dir); return ok }
	if isPatch(mapped) || !slices.ContainsFunc(others, isUsers) {
		return next(ctx, c)
	}
	hint := fmt.Sprintf("%s is the user's checkout, without your changes. Your files are in %s, where each command "+
		"starts.", o.home, dir)
	isFirst := false
	o.refused.change(func(refused *bool) { isFirst, *refused = !o.isConfined && !*refused, true })
	if isFirst {
		return llm.ErrorResult("The command was not run: %s Use relative paths. If you mean the user's checkout, run "+
			"it again.", hint), nil
	}
	r, err := next(ctx, c)
	if err == nil {
		r.Parts = append(r.Parts, llm.Text{Text: "\n[" + hint + "]"})
	}
	return r, err
}
