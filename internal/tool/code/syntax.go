package code

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	goscanner "go/scanner"
	"go/token"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/internal/proc"
	"muster/internal/text"
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
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(t.options.syntaxTimeout, syntaxTimeout))
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

// The limits of a check by a program. One that meets a limit says nothing.
const (
	syntaxTimeout     = 5 * time.Second // of all runs after one change
	maxCheckerOutput  = 2 << 20         // bytes; node prints the whole line that it does not like
	maxSyntaxMessage  = 300             // bytes of one message
	pythonSyntaxError = 3               // exit status
)

// pythonCheck compiles what it reads, without running it or writing it anywhere.
const pythonCheck = `import sys
try:
    compile(sys.stdin.buffer.read(), "file", "exec", 0, True)
except SyntaxError as e:
    sys.stdout.buffer.write(b"%d %s" % (e.lineno or 1, str(e.msg).encode()))
    sys.exit(3)
`

// pythonErrors returns the first error of a Python file as python3 reads it.
func (t toolset) pythonErrors(ctx context.Context, at confinedPath, text string) []string {
	// -I and -S: neither the environment nor the working directory nor site-packages add any code.
	out, exit := t.checker(ctx, at, text, "python3", "-I", "-S", "-B", "-W", "ignore", "-c", pythonCheck)
	number, message, _ := strings.Cut(out, " ")
	line, err := strconv.Atoi(number)
	if exit != pythonSyntaxError || err != nil {
		return nil
	}
	return []string{syntaxMessage(line, message, "python3")}
}

// scriptErrors returns the first error of a JavaScript file as node reads it. What kind of module a file is may be said
// elsewhere, so that an error counts if it is one in each kind. A file in a dialect of JavaScript is not checked.
func (t toolset) scriptErrors(ctx context.Context, at confinedPath, text string) []string {
	var kinds []string
	switch strings.ToLower(filepath.Ext(at.rel)) {
	case ".cjs":
		kinds = []string{"commonjs"}
	case ".mjs":
		kinds = []string{"module"}
	default:
		kinds = []string{"commonjs", "module"}
		for _, sign := range []string{"</", "/>", "@flow"} { // of JSX and of Flow
			if strings.Contains(text, sign) {
				return nil
			}
		}
	}
	line, message := 0, ""
	for _, kind := range kinds {
		out, exit := t.checker(ctx, at, text, "node", "--no-warnings", "--check", "--input-type="+kind, "-")
		n, m := nodeError(out)
		if exit != 1 || m == "" {
			return nil
		}
		if n >= line { // the kind that reads on further is the right one
			line, message = n, m
		}
	}
	return []string{syntaxMessage(line, message, "node")}
}

// nodeError returns what node says of a file that it cannot parse: "[stdin]:2", the line, and "SyntaxError: " with why.
func nodeError(out string) (line int, message string) {
	place, rest, _ := strings.Cut(out, "\n")
	line, err := strconv.Atoi(strings.TrimPrefix(place, "[stdin]:"))
	_, message, _ = strings.Cut(rest, "\nSyntaxError: ")
	if message, _, _ = strings.Cut(message, "\n"); err != nil {
		return 0, ""
	}
	return line, message
}

// syntaxMessage returns an error as a model reads it, with the program that has found it: another version of the
// language may have it otherwise.
func syntaxMessage(line int, message, program string) string {
	message = text.Clean(strings.ToValidUTF8(message, "\uFFFD"))
	message, _, _ = strings.Cut(message, "\n")
	return fmt.Sprintf("line %d: %s (%s)", line, text.CutBytes(message, maxSyntaxMessage), program)
}

// checker runs a program that reads a text and returns what it printed. exit is -1 if it did not run to its end. It
// must be the user's own, and nothing in the repository may change what it does: it starts in the root of the file
// system, where it finds no settings, and without the variables that have node load code.
func (t toolset) checker(ctx context.Context, at confinedPath, text string, argv ...string) (out string, exit int) {
	if t.launcher == nil {
		return "", -1
	}
	dir := filepath.VolumeName(at.root.Name()) + string(filepath.Separator)
	env := slices.DeleteFunc(Environ(ctx, t.options.Environ, dir), func(kv string) bool {
		return strings.HasPrefix(kv, "NODE_")
	})
	program, env := proc.FindOutside(argv[0], env, t.options.Root, at.root.Name())
	if program == "" {
		return "", -1
	}
	var printed boundedBuffer
	p, err := t.launcher.Start(ctx, proc.Spec{Argv: slices.Concat([]string{program}, argv[1:]), Dir: dir, Env: env,
		Stdin: strings.NewReader(text), Out: &printed})
	if err != nil {
		return "", -1
	}
	exit, err = p.Wait()
	if err != nil {
		return "", -1
	}
	return printed.String(), exit
}

// boundedBuffer keeps what a program prints, up to most bytes; 0 is maxCheckerOutput.
type boundedBuffer struct {
	bytes.Buffer
	most int
}

// Write fails when it is too much, which ends the program.
func (b *boundedBuffer) Write(p []byte) (int, error) {
	if b.Len()+len(p) > cmp.Or(b.most, maxCheckerOutput) {
		return 0, errors.New("too much output")
	}
	return b.Buffer.Write(p)
}
