package code

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	goscanner "go/scanner"
	"go/token"
	"io"
	"path/filepath"
	"strings"

	"muster/internal/yamldoc"
)

const (
	maxCheckedBytes = 512 << 10 // of a file that is checked after an edit; a larger one takes too long
	maxSyntaxErrors = 3         // that are shown
)

// newSyntaxErrors returns what a model reads of the errors of syntax that a change of a file has made, or "". A file
// that had errors before says nothing: the change may be one of several that mend it.
func (t toolset) newSyntaxErrors(ctx context.Context, at confinedPath, before, after string) string {
	if max(len(before), len(after)) > maxCheckedBytes {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, syntaxTimeout)
	defer cancel()
	problems := t.syntaxErrors(ctx, at, after)
	if len(problems) == 0 || before != "" && (len(t.syntaxErrors(ctx, at, before)) > 0 || ctx.Err() != nil) {
		return ""
	}
	more := ""
	if n := len(problems) - maxSyntaxErrors; n > 0 {
		problems, more = problems[:maxSyntaxErrors], fmt.Sprintf("\nand %d more", n)
	}
	return fmt.Sprintf("\n[%s has errors of syntax since this change:\n%s%s]\n", at.show,
		strings.Join(problems, "\n"), more)
}

// syntaxErrors returns the errors of syntax of a text by the ending of its file's name. Most checks run in this
// process, and take some milliseconds at most for a usual file.
func (t toolset) syntaxErrors(ctx context.Context, at confinedPath, text string) []string {
	switch strings.ToLower(filepath.Ext(at.rel)) {
	case ".go":
		return goErrors(text)
	case ".json":
		return jsonErrors(text)
	case ".yaml", ".yml":
		return yamlErrors(text)
	case ".py", ".pyi":
		return t.pythonErrors(ctx, at, text)
	case ".js", ".mjs", ".cjs":
		return t.scriptErrors(ctx, at, text)
	}
	return nil
}

// goErrors returns the errors of syntax of a Go file.
func goErrors(text string) (problems []string) {
	_, err := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if list, ok := errors.AsType[goscanner.ErrorList](err); ok {
		for _, e := range list {
			problems = append(problems, fmt.Sprintf("line %d: %s", e.Pos.Line, e.Msg))
		}
	}
	return problems
}

// jsonErrors returns the first error of a JSON file, which may hold several values. One with comments is not checked.
func jsonErrors(text string) []string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "//") || strings.HasPrefix(line, "/*") {
			return nil
		}
	}
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var v json.RawMessage
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			continue
		}
		at := int(d.InputOffset())
		if e, ok := errors.AsType[*json.SyntaxError](err); ok {
			at = max(at, int(e.Offset)-1)
		}
		return []string{fmt.Sprintf("line %d: %v", lineNumber(text, min(at, len(text))), err)}
	}
}

// yamlErrors returns the first error of a YAML file, which may have several documents. A template is not checked.
func yamlErrors(text string) []string {
	// Each document is read with as many empty lines before it as the file has. Reading takes more than linear time.
	const maxDocuments, maxBytes = 20, 48 << 10
	documents := strings.Split(text, "\n---")
	if strings.Contains(text, "{{") || strings.Contains(text, "{%") || len(documents) > maxDocuments ||
		len(text) > maxBytes {
		return nil
	}
	line := 0
	for _, d := range documents {
		_, err := yamldoc.Parse("line", []byte(strings.Repeat("\n", line)+d))
		if err != nil {
			return []string{err.Error()}
		}
		line += strings.Count(d, "\n") + 1
	}
	return nil
}
