package markdown

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/util"
)

// newline ends a line within a paragraph. Models write a list of facts in lines of their own, so each line stays one.
var newline = cell{text: "\n"}

// inline returns the text within a node as one line, which may have newlines.
func (d *drawer) inline(n ast.Node, s style) (all row) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		all = append(all, d.span(c, s)...)
	}
	return all
}

// span returns one piece of text in a style.
func (d *drawer) span(n ast.Node, s style) row {
	switch n := n.(type) {
	case *ast.Text:
		text := n.Value(d.source)
		// The library leaves entities and backslashes to whoever renders.
		if !n.IsRaw() {
			text = util.UnescapePunctuations(util.ResolveNumericReferences(util.ResolveEntityNames(text)))
		}
		all := cells(strings.ReplaceAll(string(text), "\n", " "), s)
		// Both breaks count: see newline.
		if n.SoftLineBreak() || n.HardLineBreak() {
			all = append(all, newline)
		}
		return all
	case *ast.String:
		return cells(string(n.Value), s)
	case *ast.CodeSpan:
		return d.marked("`", d.inlineCode(n, s|code))
	case *ast.Emphasis:
		if n.Level == 1 {
			return d.marked("*", d.inline(n, s|italic))
		}
		return d.marked("**", d.inline(n, s|bold))
	case *ast.Link:
		return withAddress(d.inline(n, s), string(n.Destination))
	case *ast.Image:
		return withAddress(d.inline(n, s), string(n.Destination))
	case *ast.AutoLink:
		return cells(string(n.Label(d.source)), s)
	// Tags are shown as they were written: a terminal has no other use for them.
	case *ast.RawHTML:
		var all row
		for i := range n.Segments.Len() {
			at := n.Segments.At(i)
			for j, line := range strings.Split(string(at.Value(d.source)), "\n") {
				if j > 0 {
					all = append(all, newline)
				}
				all = append(all, cells(line, s)...)
			}
		}
		return all
	}
	return d.inline(n, s)
}

// inlineCode returns the text of code between words. Its newlines are blanks.
func (d *drawer) inlineCode(n ast.Node, s style) (all row) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			all = append(all, cells(strings.ReplaceAll(string(t.Value(d.source)), "\n", " "), s)...)
		}
	}
	return all
}

// marked returns text with the marks around it, which stay where colour cannot show them.
func (d *drawer) marked(mark string, text row) row {
	if !d.marks {
		return text
	}
	return append(append(cells(mark, 0), text...), cells(mark, 0)...)
}

// withAddress returns the text of a link with its address, unless that is what the text says.
func withAddress(text row, address string) row {
	var shown strings.Builder
	for _, c := range text {
		shown.WriteString(c.text)
	}
	switch {
	case shown.String() == address || address == "":
		return text
	case len(text) == 0:
		return cells(address, faint)
	}
	return append(text, cells(" ("+strings.ReplaceAll(address, "\n", " ")+")", faint)...)
}
