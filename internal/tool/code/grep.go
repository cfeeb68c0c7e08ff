package code

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"muster/internal/prompt"
	"muster/internal/text"
	"muster/llm"
	"muster/tool"
)

const (
	maxMatches   = 200    // that are shown where a call asks for no other number
	maxHeadLimit = 1000   // that a call may ask for
	maxOffset    = 50_000 // matches that a call may leave out
	maxContext   = 50     // lines around a match
	maxShownLine = 300    // bytes of a line that are shown
)

// What grep shows. The words, and those of grepInput, are the ones that models know of other programs.
const (
	showContent = "content"
	showFiles   = "files_with_matches"
	showCounts  = "count"
)

// grepInput is the input of grep. Without a path everything below the working directory is searched.
type grepInput struct {
	Pattern    string `json:"pattern" jsonschema:"regular expression (RE2)"`
	Path       string `json:"path,omitempty" jsonschema:"file or directory"`
	Glob       string `json:"glob,omitempty"`
	Type       string `json:"type,omitempty"`
	OutputMode string `json:"output_mode,omitempty"`
	Before     int    `json:"-B,omitempty"`
	After      int    `json:"-A,omitempty"`
	Context    int    `json:"-C,omitempty"`
	IgnoreCase bool   `json:"-i,omitempty"`
	Multiline  bool   `json:"multiline,omitempty" jsonschema:"matches may span lines"`
	Literal    bool   `json:"literal,omitempty"`
	HeadLimit  int    `json:"head_limit,omitempty"`
	Offset     int    `json:"offset,omitempty"`
}

// grepTool returns the tool grep.
func (t toolset) grepTool() llm.Tool {
	return tool.New("grep", prompt.Tool("grep"), t.grep, tool.ReadOnly(),
		tool.Enum("output_mode", showContent, showFiles, showCounts))
}

// grep checks the input and searches the files that it names.
func (t toolset) grep(ctx context.Context, in grepInput) (llm.Result, error) {
	if in.Pattern == "" {
		return llm.ErrorResult("pattern is empty: it would match every line."), nil
	}
	q, err := newQuery(in)
	if err != nil {
		return llm.ErrorResult(
			"%v (RE2 syntax: escape what is meant literally; no lookaround, no backreferences).", err), nil
	}
	names, problem := newNameFilter(in.Glob, in.Type)
	switch {
	case problem != "":
		return llm.ErrorResult("%s", problem), nil
	case min(in.Before, in.After, in.Context, in.HeadLimit, in.Offset) < 0:
		return llm.ErrorResult("-A, -B, -C, head_limit and offset are counts: they cannot be negative."), nil
	case in.Offset > maxOffset:
		return llm.ErrorResult("offset may be %d at most: narrow the search.", maxOffset), nil
	}
	at, err := t.open(ctx, in.Path, false)
	if err != nil {
		return tool.FromError(err)
	}
	defer at.root.Close()
	s := search{tools: t, at: at, filter: names, query: q, mode: cmp.Or(in.OutputMode, showContent),
		before: min(max(in.Before, in.Context), maxContext), after: min(max(in.After, in.Context), maxContext),
		offset: in.Offset, limit: min(cmp.Or(in.HeadLimit, maxMatches), maxHeadLimit)}
	return s.run(ctx, t.options.BashTimeout)
}

// show shows the matches of files in their order, and says what was left out.
func (s *search) show(ctx context.Context, all []fileMatches) string {
	var b strings.Builder
	entries, shown, files, matches, cut := 0, 0, 0, 0, 0
	for _, m := range all {
		if m.isCut {
			cut++
		}
		matches += m.n
		files += min(m.n, 1)
		of := m.n // entries that this file has in the list that head_limit and offset cut
		if s.mode != showContent {
			of = min(m.n, 1)
		}
		from, to := min(max(s.offset-entries, 0), of), min(s.offset+s.limit-entries, of)
		if entries += of; from >= to {
			continue
		}
		switch s.mode {
		case showFiles:
			fmt.Fprintf(&b, "%s\n", s.at.shown(m.name))
		case showCounts:
			fmt.Fprintf(&b, "%s:%d\n", s.at.shown(m.name), m.n)
		default:
			s.print(ctx, &b, m.name, from, to)
		}
		shown += to - from
	}
	return s.conclude(&b, entries, shown, matches, files, cut)
}

// conclude adds to the shown entries what the model must know of all that there are.
func (s *search) conclude(b *strings.Builder, entries, shown, matches, files, cut int) string {
	what := fmt.Sprintf("%d matches in %s", matches, text.Count(files, "file"))
	if s.mode == showFiles {
		what = text.Count(files, "file")
	}
	if s.mode == showCounts {
		what = text.Count(files, "file") + fmt.Sprintf(" with %d matches", matches)
	}
	switch {
	case s.files == 0:
		b.WriteString("There is no file to search: nothing is there that path, glob and type accept.")
	case entries == 0:
		fmt.Fprintf(b, "No match in %s.", text.Count(s.files, "file"))
	case shown == 0:
		fmt.Fprintf(b, "[nothing is left after offset %d: there are %s]\n", s.offset, what)
	case s.offset == 0 && shown < entries:
		fmt.Fprintf(b, "[the first %d of %s: narrow the search, or go on with offset %d]\n", shown, what, shown)
	case s.offset > 0 && s.offset+shown < entries:
		fmt.Fprintf(b, "[%d to %d of %s; go on with offset %d]\n", s.offset+1, s.offset+shown, what, s.offset+shown)
	case s.offset > 0:
		fmt.Fprintf(b, "[%d to %d of %s: these are the last]\n", s.offset+1, s.offset+shown, what)
	case s.mode == showCounts && files > 1:
		fmt.Fprintf(b, "[%s]\n", what)
	}
	if cut > 0 {
		if entries == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(b, "[of %s only the beginning was searched: grep reads %s of a file, and less of a very "+
			"long line]\n", text.Count(cut, "file"), formatSize(maxGrepBytes))
	}
	return b.String()
}
