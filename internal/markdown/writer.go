package markdown

import (
	"strings"

	"muster/internal/highlight"
	"muster/internal/text"
)

// maxBlock is how many bytes a block may have. What grows further is drawn in parts, so that drawing it again and again
// while it grows stays cheap.
const maxBlock = 16 << 10

// Writer draws a text that arrives in pieces. The zero value is ready, and a copy goes on by itself.
type Writer struct {
	// Colour allows colour.
	Colour bool
	// Marks keeps the marks of emphasis and of code where there is colour. Without colour they always stay.
	Marks bool

	// partial is the beginning of a character whose other bytes have not come yet.
	partial string
	// line is the beginning of a line that has not ended, and block the lines of the block that grows.
	line, block string
	// blanks are the blank lines behind an item of a list. Whether they end it, only the next line tells.
	blanks int
	// fence is the code that grows. Its lines are drawn one by one, because a program may be long.
	fence fence
	// inner is code that grows within an item of a list. Its blank lines do not end the item.
	inner fence
	// number is that of the next item, where an item with a number has come last.
	number int
	// hasRows says that rows were drawn, and gap that a blank one comes before the next.
	hasRows, gap bool
}

// Add appends s and returns the rows of the blocks that have ended with it.
func (w *Writer) Add(s string, width int) (rows []string) {
	s = w.partial + s
	whole := text.WholeRunes(s)
	w.partial = s[len(whole):]
	w.line += strings.ReplaceAll(text.Clean(whole), "\r", "")
	for {
		line, rest, ok := strings.Cut(w.line, "\n")
		if !ok {
			break
		}
		w.line = rest
		rows = append(rows, w.addLine(line, width)...)
	}
	// A line without an end is not kept either.
	if len(w.line) > maxBlock {
		rows = append(rows, w.addLine(w.line, width)...)
		rows = append(rows, w.endBlock(width)...)
		w.line = ""
	}
	return rows
}

// End ends the text and returns the rows of its last block. The next text begins anew.
func (w *Writer) End(width int) (rows []string) {
	if w.line != "" {
		rows = w.addLine(w.line, width)
	}
	rows = append(rows, w.endBlock(width)...)
	*w = Writer{Colour: w.Colour, Marks: w.Marks}
	return rows
}

// Growing returns the rows of what has not ended yet, as they would be if it ended now.
func (w Writer) Growing(width int) []string { return w.End(width) }

// IsGrowing reports whether something has not ended yet.
func (w *Writer) IsGrowing() bool { return w.line != "" || w.block != "" || w.fence.mark != "" }

// addLine takes a line without its end, and returns the rows of what it ends.
func (w *Writer) addLine(line string, width int) (rows []string) {
	if w.fence.mark != "" {
		if w.fence.isEndedBy(line) {
			w.fence = fence{}
			return nil
		}
		return w.give(codeRows(w.fence.dedent(line), w.fence.language, &w.fence.lexer, width, w.Colour))
	}
	isIndented := strings.HasPrefix(line, "  ") || strings.HasPrefix(line, "\t")
	if w.inner.mark != "" && (isIndented || isBlank(line)) {
		if w.inner.isEndedBy(strings.TrimSpace(line)) {
			w.inner = fence{}
		}
		return w.grow(line, width)
	}
	w.inner = fence{}
	isItem := isListItem(line)
	inList := isListItem(w.block)
	opened, isFence := openFence(line)
	switch {
	case isBlank(line) && inList:
		w.blanks++
		return nil
	case isBlank(line):
		rows = w.endBlock(width)
		w.gap = true
		return rows
	case inList && isIndented: // it belongs to the item, whatever it is
	// A block ends before code, before an item, and before what follows a list behind a blank line.
	case isFence || isItem || inList && w.blanks > 0:
		rows = w.endBlock(width)
	}
	if isFence && w.block == "" {
		w.fence, w.number = opened, 0
		return rows
	}
	if opened, ok := openFence(strings.TrimSpace(trimMarker(line))); ok && (inList || isItem) {
		w.inner = opened
	}
	return append(rows, w.grow(line, width)...)
}

// grow appends a line to the block, and ends the block where it is too large.
func (w *Writer) grow(line string, width int) []string {
	w.block += strings.Repeat("\n", w.blanks) + line + "\n"
	w.blanks = 0
	if len(w.block) > maxBlock {
		return w.endBlock(width)
	}
	return nil
}

// endBlock returns the rows of the block that grows, which ends.
func (w *Writer) endBlock(width int) []string {
	if w.block == "" {
		return nil
	}
	block, blanks := w.block, w.blanks
	w.block, w.blanks, w.inner = "", 0, fence{}
	d := drawer{source: []byte(block), colour: w.Colour, marks: w.Marks || !w.Colour,
		number: w.number}
	rows := w.give(d.draw(width))
	w.gap, w.number = blanks > 0, 0
	if isListItem(block) {
		w.number = d.number
	}
	return rows
}

// give returns rows with the blank one that comes before them. Of several blank lines one is left, and none at the
// beginning.
func (w *Writer) give(rows []string) []string {
	if w.gap && w.hasRows && len(rows) > 0 {
		rows = append([]string{""}, rows...)
	}
	w.gap, w.hasRows = false, w.hasRows || len(rows) > 0
	return rows
}

// fence is how code was opened.
type fence struct {
	mark     string // the characters that opened it; "" for none
	indent   int    // before the mark
	language string
	lexer    highlight.Lexer
}

// openFence returns the fence that a line opens.
func openFence(line string) (f fence, ok bool) {
	text := strings.TrimLeft(line, " ")
	f.indent = len(line) - len(text)
	f.mark = text[:len(text)-len(strings.TrimLeft(text, "`"))]
	if f.mark == "" {
		f.mark = text[:len(text)-len(strings.TrimLeft(text, "~"))]
	}
	info := strings.TrimSpace(text[len(f.mark):])
	if f.indent > 3 || len(f.mark) < 3 || f.mark[0] == '`' && strings.Contains(info, "`") {
		return fence{}, false
	}
	f.language, _, _ = strings.Cut(info, " ")
	f.lexer = highlight.For(f.language)
	return f, true
}

// isEndedBy reports whether a line closes the code.
func (f fence) isEndedBy(line string) bool {
	text := strings.TrimSpace(line)
	return strings.HasPrefix(text, f.mark) && strings.Trim(text, f.mark[:1]) == ""
}

// dedent returns a line of the code without the blanks that stood before its fence.
func (f fence) dedent(line string) string {
	for n := f.indent; n > 0 && strings.HasPrefix(line, " "); n-- {
		line = line[1:]
	}
	return line
}

// isBlank reports whether a line has no text.
func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// isListItem reports whether a text begins with an item of a list that is not within another.
func isListItem(text string) bool {
	return len(trimMarker(text)) < len(text) && !strings.HasPrefix(text, "    ")
}

// trimMarker returns a text without the marker of an item at its beginning.
func trimMarker(text string) string {
	rest := strings.TrimLeft(text, " ")
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	switch {
	case digits > 9:
		return text
	case digits > 0:
		rest = rest[digits:]
		if !strings.HasPrefix(rest, ".") && !strings.HasPrefix(rest, ")") {
			return text
		}
	case !strings.HasPrefix(rest, "-") && !strings.HasPrefix(rest, "*") && !strings.HasPrefix(rest, "+"):
		return text
	}
	if rest = rest[1:]; !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
		return text // such as 1.5, **bold** and -x
	}
	return rest
}
