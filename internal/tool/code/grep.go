package code

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"muster/llm"
	"muster/tool"
)

const (
	maxMatches      = 200      // that are shown
	maxShownLine    = 300      // bytes of a matching line that are shown
	maxSearchedLine = 64 << 10 // bytes of a line that are searched
	maxGrepWorkers  = 4
)

// grepInput is the input of grep. Without a path everything below the working directory is searched.
type grepInput struct {
	Pattern string `json:"pattern" jsonschema:"regular expression (RE2)"`
	Path    string `json:"path,omitempty" jsonschema:"file or directory"`
	Glob    string `json:"glob,omitempty" jsonschema:"such as *.go"`
}

// grepTool returns the tool grep.
func (t toolset) grepTool() llm.Tool {
	return tool.New("grep", "Find lines in files by what they contain; ignored files are left out.",
		t.grep, tool.ReadOnly())
}

// grep checks the input and searches the files that it names.
func (t toolset) grep(ctx context.Context, in grepInput) (llm.Result, error) {
	re, err := compile(in.Pattern)
	switch {
	case err != nil:
		return llm.ErrorResult(
			"%v (RE2 syntax: escape what is meant literally; no lookaround, no backreferences).", err), nil
	case in.Pattern == "":
		return llm.ErrorResult("pattern is empty: it would match every line."), nil
	case checkGlob(in.Glob) != "":
		return llm.ErrorResult("glob: %s", checkGlob(in.Glob)), nil
	case !doublestar.ValidatePattern(in.Glob):
		return llm.ErrorResult("glob %q is not a pattern: use *, **, ?, [a-z] and {a,b}.", in.Glob), nil
	}
	at, err := t.open(ctx, in.Path, false)
	if err != nil {
		return tool.FromError(err)
	}
	defer at.root.Close()
	// The list is complete before the search begins, so the order of matches does not depend on the workers.
	names, err := at.files(ctx)
	switch {
	case ctx.Err() != nil:
		return llm.Result{}, context.Cause(ctx)
	case err != nil:
		return tool.FromError(err)
	}
	return at.search(ctx, at.filter(names, in.Glob), re)
}

// filter drops the names that do not match glob. A glob without a slash is compared with the last element of
// each name, any other with the path from s and with the path from the working directory.
func (s confinedPath) filter(names []string, glob string) []string {
	if glob == "" {
		return names
	}
	glob = strings.TrimPrefix(filepath.ToSlash(glob), "./")
	return slices.DeleteFunc(names, func(name string) bool {
		shown := s.shown(name)
		if !strings.Contains(glob, "/") {
			return !doublestar.MatchUnvalidated(glob, path.Base(shown))
		}
		return !doublestar.MatchUnvalidated(glob, name) && !doublestar.MatchUnvalidated(glob, shown)
	})
}

// fileMatches are the matches of one file: the lines to show, and how many there are. There may be more
// matches than lines, because only as many lines are collected as can be shown.
type fileMatches struct {
	lines []string
	n     int
	isCut bool // only the beginning of the file was searched
}

// search searches the files, several at once, and shows the matches in the order of names.
func (s confinedPath) search(ctx context.Context, names []string, re *regexp.Regexp) (llm.Result, error) {
	all := make([]fileMatches, len(names))
	var next, collected, searched atomic.Int64
	var workers sync.WaitGroup
	for range min(maxGrepWorkers, runtime.GOMAXPROCS(0), len(names)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				// This is asked before a file is taken, so that only files before this one can have been
				// counted: the first matches in order are never lost to a file that another worker has
				// finished earlier.
				collect := collected.Load() < maxMatches
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				// What is left of the total is shared by files that are searched at the same time.
				scan := &scanner{ctx: ctx, left: min(maxGrepBytes, max(0, maxGrepTotal-searched.Load()))}
				begin := scan.left
				all[i] = s.searchFile(names[i], re, collect, scan)
				searched.Add(begin - max(scan.left, 0))
				collected.Add(int64(len(all[i].lines)))
			}
		})
	}
	// Each worker writes only its own elements of all, which nobody reads before Wait has returned.
	workers.Wait()
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	var lines []string
	n, files, cut := 0, 0, 0
	for _, m := range all {
		if m.isCut {
			cut++
		}
		if m.n > 0 {
			n, files = n+m.n, files+1
			lines = append(lines, m.lines...)
		}
	}
	note := ""
	if cut > 0 {
		note = fmt.Sprintf("[of %s only the beginning was searched: grep reads %s of a file and %s in all]\n",
			plural(cut, "file"), formatSize(maxGrepBytes), formatSize(maxGrepTotal))
	}
	if n == 0 {
		return tool.Text(strings.TrimSpace(fmt.Sprintf("No match in %s.\n%s", plural(len(names), "file"), note))), nil
	}
	if n > maxMatches {
		lines = append(lines[:maxMatches], fmt.Sprintf("[the first %d of %d matches in %s: narrow the search]",
			maxMatches, n, plural(files, "file")))
	}
	return tool.Text(strings.Join(lines, "\n") + "\n" + note), nil
}

// searchFile searches one file. A file that is not text, or that cannot be read, has no match. Links are
// skipped: what they point to is searched under its own name, if it is in the directory at all.
func (s confinedPath) searchFile(name string, re *regexp.Regexp, collect bool, scan *scanner) (m fileMatches) {
	if fi, err := s.root.Lstat(s.join(name)); err != nil || !fi.Mode().IsRegular() {
		return m
	}
	f, err := s.openRegular(s.join(name))
	if err != nil {
		return m
	}
	defer f.Close()
	scan.file = f
	r := bufio.NewReaderSize(scan, 64<<10)
	if head, _ := r.Peek(sniffedBytes); isBinary(head) { // after an error the first nextLine fails too, or ends
		return m
	}
	for number := 1; ; number++ {
		line, _, err := nextLine(r, maxSearchedLine)
		if err != nil {
			m.isCut = scan.isCut
			return m
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := re.FindIndex(line)
		if at == nil {
			continue
		}
		m.n++
		if collect && len(m.lines) < maxMatches {
			m.lines = append(m.lines, fmt.Sprintf("%s:%d:%s", s.shown(name), number, excerpt(line, at[0])))
		}
	}
}

// excerpt returns a line, or of a long one the part around its match, which begins at from.
func excerpt(line []byte, from int) string {
	if len(line) <= maxShownLine {
		text, _ := decode(line)
		return text
	}
	start := max(0, min(from-maxShownLine/3, len(line)-maxShownLine))
	end := start + maxShownLine
	text := strings.ToValidUTF8(string(line[start:end]), "") // drops half a character at either end
	if start > 0 {
		text = "..." + text
	}
	if end < len(line) {
		text += "..."
	}
	return text
}
