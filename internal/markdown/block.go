package markdown

import (
	"fmt"
	"strings"

	"github.com/yuin/goldmark/ast"

	"muster/internal/highlight"
)

// drawer draws the blocks of one text.
type drawer struct {
	source []byte
	colour bool
	marks  bool // the marks of emphasis and of code stay
	// number is that of the first item, where the text goes on with a list; 0: the one that it has. After the list it
	// is that of the next item, and 0 where the items have none.
	number int
}

// children returns the blocks within a node as rows, with a blank row where the text has blank lines.
func (d *drawer) children(n ast.Node, width int) (rows []row) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.HasBlankPreviousLines() && c.PreviousSibling() != nil {
			rows = append(rows, nil)
		}
		rows = append(rows, d.block(c, width)...)
	}
	return rows
}

// block returns one block as rows.
func (d *drawer) block(n ast.Node, width int) []row {
	switch n := n.(type) {
	case *ast.Heading:
		line := d.inline(n, bold)
		if d.marks { // nothing else would show that it is one
			line = append(cells(strings.Repeat("#", n.Level)+" ", 0), line...)
		}
		return line.wrap(width)
	case *ast.ThematicBreak:
		return []row{cells(strings.Repeat("─", min(width, 20)), faint)}
	case *ast.Blockquote:
		bar := cells("│ ", faint)
		return within(bar, bar, width, func(width int) []row { return d.children(n, width) })
	case *ast.List:
		return d.list(n, width)
	case *ast.FencedCodeBlock:
		return d.code(n, string(n.Language(d.source)), width)
	case *ast.CodeBlock:
		return d.code(n, "", width)
	case *ast.HTMLBlock:
		lines := d.lines(n)
		if n.HasClosure() {
			lines += string(n.ClosureLine.Value(d.source))
		}
		return textRows(lines, 0, width)
	case *ast.Paragraph, *ast.TextBlock:
		if before, grid, right, ok := splitTable(d.lines(n)); ok {
			return d.table(before, grid, right, width)
		}
		return d.inline(n, 0).wrap(width)
	}
	return d.children(n, width)
}

// list returns a list as rows. What belongs to an item stands below its text, and not below its marker.
func (d *drawer) list(n *ast.List, width int) (rows []row) {
	number := n.Start
	isOuter := n.Parent().Kind() == ast.KindDocument
	if isOuter {
		number = max(number, d.number) // writers may number all items 1
	}
	for item := n.FirstChild(); item != nil; item = item.NextSibling() {
		marker := "- "
		if n.IsOrdered() {
			marker = fmt.Sprintf("%d%c ", number, n.Marker)
			number++
		}
		if item.PreviousSibling() != nil && item.HasBlankPreviousLines() {
			rows = append(rows, nil)
		}
		first, rest := cells(marker, 0), cells(strings.Repeat(" ", len(marker)), 0)
		rows = append(rows, within(first, rest, width, func(width int) []row { return d.children(item, width) })...)
	}
	if isOuter {
		d.number = number
	}
	return rows
}

// lines returns the lines of a block as they were written.
func (d *drawer) lines(n ast.Node) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		at := n.Lines().At(i)
		b.Write(at.Value(d.source))
	}
	return b.String()
}

// code returns the lines of a block of code as rows.
func (d *drawer) code(n ast.Node, language string, width int) (rows []row) {
	lexer := highlight.For(language)
	for line := range strings.Lines(d.lines(n)) {
		rows = append(rows, codeLine(strings.TrimSuffix(line, "\n"), language, &lexer, width)...)
	}
	return rows
}

// codeRows returns one line of code as it is written to a terminal.
func codeRows(line, language string, lexer *highlight.Lexer, width int, colour bool) (rows []string) {
	for _, r := range codeLine(line, language, lexer, width) {
		rows = append(rows, r.encode(colour))
	}
	return rows
}

// codeLine returns one line of code as rows. It is indented, so that it is seen to be code without colour too. In a
// difference, the lines that came and went have their colours. Code of an unknown language has one colour.
func codeLine(line, language string, lexer *highlight.Lexer, width int) []row {
	var all row
	rest := line
	for _, x := range lexer.Line(line) {
		all = append(all, cells(rest[:x.Len], codeStyles[x.Kind])...)
		rest = rest[x.Len:]
	}
	// The lines that say where a part of a difference stands look like other code.
	s := code
	if lexer.IsKnown() {
		s = 0
	}
	if language == "diff" || language == "patch" {
		switch {
		case strings.HasPrefix(line, "+"):
			s = added
		case strings.HasPrefix(line, "-"):
			s = removed
		case strings.HasPrefix(line, "@@"):
		default:
			s = faint
		}
	}
	indent := cells("  ", 0)
	all = append(all, cells(rest, s)...)
	return within(indent, indent, width, func(width int) []row { return all.cut(width) })
}

// textRows returns lines that were written as they are as rows.
func textRows(text string, s style, width int) (rows []row) {
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		rows = append(rows, cells(line, s).cut(width)...)
	}
	return rows
}

// cut breaks a line where the row ends, and not between words, because in code blanks count.
func (r row) cut(width int) (rows []row) {
	n, start := 0, 0
	for i, c := range r {
		if n += c.width; n > width && i > start {
			rows = append(rows, r[start:i])
			start, n = i, c.width
		}
	}
	return append(rows, r[start:])
}
