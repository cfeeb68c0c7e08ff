package code

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"muster/llm"
	"muster/tool"
)

// maxGlobFiles is how many files are listed. The rest is only counted.
const maxGlobFiles = 1000

// globInput is the input of glob.
type globInput struct {
	Pattern string `json:"pattern" jsonschema:"such as *.go or src/**/*_test.go"`
}

// globTool returns the tool glob.
func (t toolset) globTool() llm.Tool {
	return tool.New("glob", "Find files by name; ignored ones are left out. "+
		"A pattern without a slash looks in every directory.", t.glob, tool.ReadOnly())
}

// glob splits the pattern into the directory that it begins with and the rest, so that only this directory
// is listed.
func (t toolset) glob(ctx context.Context, in globInput) (llm.Result, error) {
	pattern := filepath.ToSlash(in.Pattern)
	if pattern == "" || !doublestar.ValidatePattern(pattern) {
		return llm.ErrorResult("%q is not a pattern: use *, **, ?, [a-z] and {a,b}.", in.Pattern), nil
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "**"
	}
	dir, rest := ".", "**/"+pattern
	if strings.Contains(pattern, "/") {
		dir, rest = doublestar.SplitPattern(pattern)
	}
	at, err := t.open(ctx, filepath.FromSlash(dir), false)
	if err != nil {
		return tool.FromError(err)
	}
	defer at.root.Close()
	return listMatches(ctx, at, rest, in.Pattern)
}

// listMatches lists the files below at that match pattern. asked is the whole pattern as the model wrote it.
func listMatches(ctx context.Context, at confinedPath, pattern, asked string) (llm.Result, error) {
	all, err := at.files(ctx)
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	if err != nil {
		all = nil // a missing directory has no file that matches
	}
	var found []string
	for _, name := range all {
		if name == "." || !doublestar.MatchUnvalidated(pattern, name) {
			continue
		}
		// Git also lists deleted files, and directories that are repositories of their own.
		if fi, err := at.root.Lstat(at.join(name)); err == nil && !fi.IsDir() {
			found = append(found, at.shown(name))
		}
	}
	n := len(found)
	switch {
	// A pattern that names a directory matches no file. The model is told so, or it would think that there is
	// nothing.
	case n == 0:
		dir := at.join(strings.TrimPrefix(pattern, "**/"))
		if fi, err := at.root.Stat(dir); err == nil && fi.IsDir() {
			return tool.Text(fmt.Sprintf("%s is a directory: %s/** lists its files.",
				asked, strings.TrimSuffix(asked, "/"))), nil
		}
		return tool.Text(fmt.Sprintf("No file matches %s.", asked)), nil
	case n > maxGlobFiles:
		found = append(found[:maxGlobFiles],
			fmt.Sprintf("[the first %d of %d files: narrow the pattern]", maxGlobFiles, n))
	}
	return tool.Text(strings.Join(found, "\n")), nil
}
