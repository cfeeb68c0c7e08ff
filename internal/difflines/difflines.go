// Package difflines reads differences line by line, for all faces that draw them: each line with its numbers in the old
// and the new file, with the words that were changed, and with the pieces of its code.
//
// Parse reads the text of git diff, and Mark finds words and code. What the lines hold is foreign text, and a face that
// shows it makes it safe.
package difflines

import (
	"cmp"
	"strconv"
	"strings"

	"muster/internal/highlight"
	"muster/internal/lazyregexp"
)

// Kind says what a line of a difference is.
type Kind string

// The kinds of lines.
const (
	File    Kind = "file" // the head of a file
	Meta    Kind = "meta" // more about the file, such as that it is new, or about the line before
	Hunk    Kind = "hunk" // the head of a hunk
	Gap     Kind = "gap"  // lines that are not shown lie between the lines around it
	Removed Kind = "removed"
	Added   Kind = "added"
	Context Kind = "context" // in the file before and after
)

// Line is a line of a difference.
type Line struct {
	Kind Kind
	// Text is the line without its sign and its newline. A head is whole.
	Text string
	// File is the path of the file, where it is known.
	File string
	// Old and New are the numbers of the line in the file before and after; 0: unknown, or not in it.
	Old, New int
	// Spans are the pieces of Text, which Mark finds. Without them it is one plain piece.
	Spans []Span
}

// Span is a piece of a line.
type Span struct {
	Len       int // bytes
	Code      highlight.Kind
	IsChanged bool // it is not in the line that this one replaces, or in the one that it is replaced by
}

// Sign is what stands before the text in a difference.
func (l *Line) Sign() string {
	switch l.Kind {
	case Added:
		return "+"
	case Removed:
		return "-"
	case Context:
		return " "
	}
	return ""
}

// IsCode reports whether the line is one of the file before or after.
func (l *Line) IsCode() bool { return l.Sign() != "" }

// hunkHead is the head of a hunk. It says how many lines of both sides follow.
var hunkHead = lazyregexp.New(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// Parse returns the lines of a text of git diff, one for each line of the text. The paths of the files come from names,
// in their order, because git quotes odd ones in the text.
func Parse(patch string, names []string) []Line {
	number := func(s string) int { n, _ := strconv.Atoi(cmp.Or(s, "1")); return n }
	all := make([]Line, 0, strings.Count(patch, "\n")+1)
	file, name := -1, ""
	var at, left struct{ old, new int }
	for text := range strings.Lines(patch) {
		l := Line{Kind: Meta, Text: strings.TrimSuffix(text, "\n")}
		// A line that looks like a head within a hunk is a line, so they are counted.
		isHead := left.old <= 0 && left.new <= 0 || strings.IndexByte(" +-\\\r\n", text[0]) < 0
		switch hunk := hunkHead().FindStringSubmatch(text); {
		case isHead && strings.HasPrefix(text, "diff --git "):
			l.Kind, name = File, ""
			if file++; file < len(names) {
				name = names[file]
			}
		case isHead && hunk != nil:
			l.Kind = Hunk
			at.old, left.old, at.new, left.new = number(hunk[1]), number(hunk[2]), number(hunk[3]), number(hunk[4])
		case isHead || text[0] == '\\': // another head, or that the last line has no end
		default:
			l.Kind, l.Old, l.New = Context, at.old, at.new
			switch text[0] {
			case '-':
				l.Kind, l.New = Removed, 0
			case '+':
				l.Kind, l.Old = Added, 0
			}
			if strings.IndexByte("\r\n", text[0]) < 0 { // an editor may have taken away the blank of an empty line
				l.Text = l.Text[1:]
			}
			if l.Kind != Added {
				at.old, left.old = at.old+1, left.old-1
			}
			if l.Kind != Removed {
				at.new, left.new = at.new+1, left.new-1
			}
		}
		l.File = name
		all = append(all, l)
	}
	return all
}

// maxMarked is how many lines of a difference have their words and code found.
const maxMarked = 20_000

// Mark finds the changed words and the code of lines.
func Mark(lines []Line) {
	lines = lines[:min(len(lines), maxMarked)]
	// The code before and after are two texts, which share the lines of context.
	var before, after highlight.Lexer
	file := ""
	for i := range lines {
		l := &lines[i]
		if !l.IsCode() || l.File != file {
			before = highlight.ForFile(l.File)
			after = before
		}
		file = l.File
		var code []highlight.Span
		switch l.Kind {
		case Removed:
			code = before.Line(l.Text)
		case Added:
			code = after.Line(l.Text)
		case Context:
			before.Line(l.Text)
			code = after.Line(l.Text)
		}
		l.Spans = nil
		for _, x := range code {
			l.Spans = append(l.Spans, Span{Len: x.Len, Code: x.Kind})
		}
	}
	for i := 0; i < len(lines); {
		removed, next := run(lines, i, Removed)
		added, end := run(lines, next, Added)
		if len(removed) > 0 && len(added) > 0 {
			markWords(lines, removed, added)
		}
		i = max(end, i+1)
	}
}

// run returns which lines from i on are of a kind, and where the run ends. That a file has no newline at its end may
// stand between them.
func run(lines []Line, i int, kind Kind) (all []int, end int) {
	for ; i < len(lines); i++ {
		if lines[i].Kind == kind {
			all = append(all, i)
		} else if len(all) == 0 || lines[i].Kind != Meta || !strings.HasPrefix(lines[i].Text, `\`) {
			break
		}
	}
	return all, i
}
