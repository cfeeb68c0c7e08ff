// Package markdown draws the Markdown that models write as rows for a terminal. Headings are bold, lists hang, code is
// indented and coloured by its language, tables are aligned, and links are text with the address behind it. Nothing
// that was written is left out, but for the marks that the form of the row replaces. Without colour, the marks of
// emphasis and of code stay.
//
// Draw draws a whole text. A Writer draws one that arrives in pieces, and gives away each block once it has ended. Both
// make the same rows, however the text is cut.
//
// The invariant is that a text steers nothing: the only control sequences in a row are those of the package itself, for
// colour, and each row ends without colour.
package markdown

import (
	"strings"

	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Draw returns a text as rows of at most width columns. A word that is longer is broken. Rows may be wider only where
// width is less than 2.
func Draw(source string, width int, colour bool) []string {
	w := Writer{Colour: colour}
	return append(w.Add(source, width), w.End(width)...)
}

// Marked is Draw that keeps the marks of emphasis and of code also in colour, so that a search finds what was written.
func Marked(source string, width int, colour bool) []string {
	w := Writer{Colour: colour, Marks: true}
	return append(w.Add(source, width), w.End(width)...)
}

// newParser returns a parser of Markdown. Links are looked up within their own text only: a block is drawn before later
// ones are known, so the definition of a link stays where it was written.
func newParser() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...))
}

// newInlineParser returns a parser of a text that is part of a line, such as a cell of a table.
func newInlineParser() parser.Parser {
	return parser.NewParser(parser.WithBlockParsers(util.Prioritized(parser.NewParagraphParser(), 0)),
		parser.WithInlineParsers(parser.DefaultInlineParsers()...))
}

// draw returns the text as rows of a terminal.
func (d *drawer) draw(width int) (all []string) {
	var rows []row
	if isTooDeep(string(d.source)) {
		rows = textRows(string(d.source), 0, width)
	} else {
		rows = d.children(newParser().Parse(text.NewReader(d.source)), width)
	}
	for _, r := range rows {
		all = append(all, r.encode(d.colour))
	}
	return all
}

// maxDepth is how many quotes and items may begin one within another on one line.
const maxDepth = 20

// isTooDeep reports whether a text nests more than people do. To parse thousands of levels would take seconds.
func isTooDeep(source string) bool {
	for line := range strings.Lines(source) {
		for depth := 0; ; depth++ {
			line = strings.TrimLeft(line, " ")
			rest := strings.TrimPrefix(trimMarker(line), ">")
			if len(rest) == len(line) {
				break
			}
			if line = rest; depth >= maxDepth {
				return true
			}
		}
	}
	return false
}
