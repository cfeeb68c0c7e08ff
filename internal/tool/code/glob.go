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

// globMost is how many files are listed.
const globMost = 1000

type globInput struct {
	Pattern string `json:"pattern" jsonschema:"such as *.go or src/**/*_test.go"`
}

func (t toolset) glob() llm.Tool {
	return tool.New("glob", "Find files by name; ignored ones are left out. A pattern without a slash looks in every directory.",
		func(ctx context.Context, in globInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			pattern := filepath.ToSlash(in.Pattern)
			if pattern == "" || !doublestar.ValidatePattern(pattern) {
				return llm.ErrorResult("%q is not a pattern: use *, **, ?, [a-z] and {a,b}.", in.Pattern), nil
			}
			if strings.HasSuffix(pattern, "/") {
				pattern += "**"
			}
			base, rest := ".", pattern
			if strings.Contains(pattern, "/") {
				base, rest = doublestar.SplitPattern(pattern)
			} else {
				rest = "**/" + pattern // a name, wherever it is
			}
			at, err := s.at(filepath.FromSlash(base), false)
			if err != nil {
				return tool.FromError(err)
			}
			defer at.close()
			return list(ctx, at, rest, in.Pattern)
		}, tool.ReadOnly())
}

// list lists the files below at that pattern is for. asked is the whole pattern as the model wrote it.
func list(ctx context.Context, at confinedPath, pattern, asked string) (llm.Result, error) {
	all, err := at.files(ctx)
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	if err != nil {
		all = nil // that the directory is missing is the same to who asks as that it has no such file
	}
	var found []string
	n := 0
	for _, name := range all {
		if hit, _ := doublestar.Match(pattern, name); !hit || name == "." {
			continue
		}
		if _, there := at.is(name); !there {
			continue
		}
		if n++; n <= globMost {
			found = append(found, at.named(name))
		}
	}
	switch {
	case n == 0:
		if fi, err := at.root.Stat(at.join(strings.TrimPrefix(pattern, "**/"))); err == nil && fi.IsDir() {
			return tool.Text(fmt.Sprintf("%s is a directory: %s/** lists its files.", asked, strings.TrimSuffix(asked, "/"))), nil
		}
		return tool.Text(fmt.Sprintf("No file matches %s.", asked)), nil
	case n > globMost:
		found = append(found, fmt.Sprintf("[the first %d of %d files: narrow the pattern]", globMost, n))
	}
	return tool.Text(strings.Join(found, "\n")), nil
}
