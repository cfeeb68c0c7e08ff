package code

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/bmatcuk/doublestar/v4"

	"muster/llm"
	"muster/tool"
)

const (
	grepMost    = 200      // matches that are shown
	grepLine    = 300      // bytes of a line that are shown, around the match
	grepLongest = 64 << 10 // bytes of a line that are searched
	grepWorkers = 4
)

type grepInput struct {
	Pattern string `json:"pattern" jsonschema:"regular expression (RE2)"`
	Path    string `json:"path,omitempty" jsonschema:"file or directory"`
	Glob    string `json:"glob,omitempty" jsonschema:"such as *.go"`
}

func (t toolset) grep() llm.Tool {
	return tool.New("grep", "Find lines in files by what they contain; ignored files are left out.",
		func(ctx context.Context, in grepInput) (llm.Result, error) {
			s, err := t.stand(ctx)
			if err != nil {
				return tool.FromError(err)
			}
			re, err := regexp.Compile(in.Pattern)
			if err != nil {
				return llm.ErrorResult("%v (RE2 syntax: escape what is meant literally; no lookaround, no backreferences).", err), nil
			}
			if in.Pattern == "" {
				return llm.ErrorResult("pattern is empty: it would match every line."), nil
			}
			if !doublestar.ValidatePattern(in.Glob) {
				return llm.ErrorResult("glob %q is not a pattern: use *, **, ?, [a-z] and {a,b}.", in.Glob), nil
			}
			at, err := s.at(in.Path, false)
			if err != nil {
				return tool.FromError(err)
			}
			defer at.close()
			names, err := at.files(ctx)
			switch {
			case ctx.Err() != nil:
				return llm.Result{}, context.Cause(ctx)
			case err != nil:
				return tool.FromError(err)
			}
			return search(ctx, at, at.choose(names, in.Glob), re)
		}, tool.ReadOnly())
}

// choose leaves the names that glob is for: without a slash it is for names in every directory, else for the path from
// at or from where the member stands.
func (s confinedPath) choose(names []string, glob string) (chosen []string) {
	if glob == "" {
		return names
	}
	glob = strings.TrimPrefix(filepath.ToSlash(glob), "./")
	for _, name := range names {
		tries := []string{name, s.named(name)}
		if !strings.Contains(glob, "/") {
			tries = []string{path.Base(s.named(name))}
		}
		for _, t := range tries {
			if hit, _ := doublestar.Match(glob, t); hit {
				chosen = append(chosen, name)
				break
			}
		}
	}
	return chosen
}

// hits are the matches of one file: the lines to be shown and how many there are.
type hits struct {
	lines []string
	n     int
}

// search looks into the files side by side and shows the matches in order.
func search(ctx context.Context, at confinedPath, names []string, re *regexp.Regexp) (llm.Result, error) {
	all := make([]hits, len(names))
	var next, collected atomic.Int64
	var workers sync.WaitGroup
	for range min(grepWorkers, runtime.GOMAXPROCS(0), len(names)) {
		workers.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(names) {
					return
				}
				// Files are taken in order: what earlier ones have collected is shown before this one's.
				all[i] = at.matches(names[i], re, collected.Load() < grepMost)
				collected.Add(int64(len(all[i].lines)))
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		return llm.Result{}, context.Cause(ctx)
	}
	var out strings.Builder
	n, shown, files := 0, 0, 0
	for _, h := range all {
		n += h.n
		if h.n > 0 {
			files++
		}
		for _, line := range h.lines[:min(len(h.lines), grepMost-shown)] {
			out.WriteString(line)
			out.WriteByte('\n')
			shown++
		}
	}
	switch {
	case n == 0:
		return tool.Text(fmt.Sprintf("No match in %s.", count(len(names), "file"))), nil
	case n > shown:
		fmt.Fprintf(&out, "[the first %d of %d matches in %s: narrow the search]\n", shown, n, count(files, "file"))
	}
	return tool.Text(out.String()), nil
}

// matches searches one file. What is no text, or cannot be read, has none.
func (s confinedPath) matches(name string, re *regexp.Regexp, collect bool) (h hits) {
	if mode, there := s.is(name); !there || !mode.IsRegular() {
		return h // links are searched where they point to
	}
	f, err := s.root.Open(s.join(name))
	if err != nil {
		return h
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, 64<<10)
	if head, err := r.Peek(sniffed); err != nil && err != io.EOF || binary(head) {
		return h
	}
	for n := 1; ; n++ {
		line, _, err := nextLine(r, grepLongest)
		if err != nil {
			return h
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		at := re.FindIndex(line)
		if at == nil {
			continue
		}
		h.n++
		if collect && len(h.lines) < grepMost {
			h.lines = append(h.lines, fmt.Sprintf("%s:%d:%s", s.named(name), n, excerpt(line, at[0], at[1])))
		}
	}
}

// excerpt is a line, or of a long one what is around its match.
func excerpt(line []byte, from, to int) string {
	if len(line) <= grepLine {
		text, _ := valid(line)
		return text
	}
	start := max(0, min(from-grepLine/3, len(line)-grepLine))
	end := min(len(line), start+grepLine)
	text := strings.ToValidUTF8(string(line[start:end]), "") // half a character at either end goes
	if start > 0 {
		text = "..." + text
	}
	if end < len(line) {
		text += "..."
	}
	return text
}
