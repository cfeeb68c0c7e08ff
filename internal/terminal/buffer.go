package terminal

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

const (
	// maxPasteLines and maxPasteBytes limit what a paste shows. A larger one is folded: shown as its size, submitted
	// whole.
	maxPasteLines = 8
	maxPasteBytes = 4000
)

// buffer is the text that is being edited, with the cursor and the text that Ctrl-Y inserts.
type buffer struct {
	text []cluster
	// cursor is an index into text.
	cursor int
	// killed is what Ctrl-Y inserts.
	killed []cluster
}

// set replaces the whole text and puts the cursor at its end.
func (b *buffer) set(s string) {
	b.text, b.cursor = nil, 0
	b.paste(s)
}

// value is the text as it is submitted.
func (b *buffer) value() string { return textOf(b.text) }

// isEmpty reports whether there is no text.
func (b *buffer) isEmpty() bool { return len(b.text) == 0 }

// insert puts clean text in at the cursor. The cluster before the cursor is split again together with the text,
// because a combining mark joins the letter before it.
func (b *buffer) insert(s string) {
	if s == "" {
		return
	}
	from := b.cursor
	if s[0] >= utf8.RuneSelf && from > 0 && !b.text[from-1].isFolded() && !b.text[from-1].isNewline() {
		from--
		s = b.text[from].text + s
	}
	b.replace(from, b.cursor, clusters(s))
}

// replace puts clusters in the place of text[from:to], with the cursor behind them. It copies the text, so that a
// saved buffer never changes.
func (b *buffer) replace(from, to int, with []cluster) {
	b.text = slices.Concat(b.text[:from], with, b.text[to:])
	b.cursor = from + len(with)
}

// replaceWord puts a text in the place of what stands between a byte offset and the cursor.
func (b *buffer) replaceWord(from int, text string) {
	start := b.cursor
	for n := b.cursorOffset(); start > 0 && n > from; start-- {
		n -= len(b.text[start-1].text)
	}
	b.replace(start, b.cursor, clusters(clean(text)))
}

// paste inserts clean text of any size. A large one becomes a single cluster, which shows only its size.
func (b *buffer) paste(s string) {
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	label := ""
	switch {
	case lines > maxPasteLines:
		label = fmt.Sprintf("[%d lines pasted]", lines)
	case len(s) > maxPasteBytes:
		label = fmt.Sprintf("[%d characters pasted]", utf8.RuneCountInString(s))
	default:
		b.insert(s)
		return
	}
	b.replace(b.cursor, b.cursor, []cluster{{text: s, shown: label, width: len(label)}})
}

// isFolded reports whether the cluster is a paste that shows only its size.
func (c cluster) isFolded() bool {
	return len(c.text) > len(c.shown) && strings.HasPrefix(c.shown, "[")
}

// left and right move the cursor by one cluster, and stop at the ends.
func (b *buffer) left()  { b.cursor = max(0, b.cursor-1) }
func (b *buffer) right() { b.cursor = min(len(b.text), b.cursor+1) }

// startOfLine and endOfLine return the ends of the cursor's line.
func (b *buffer) startOfLine() int { return b.skipLeft(b.cursor, cluster.isNewline, false) }
func (b *buffer) endOfLine() int   { return b.skipRight(b.cursor, cluster.isNewline, false) }

// wordStartBefore returns where the word before the cursor begins, over the blanks in between.
func (b *buffer) wordStartBefore() int {
	return b.skipLeft(b.skipLeft(b.cursor, cluster.isWordPart, false), cluster.isWordPart, true)
}

// wordEndAfter returns where the word after the cursor ends.
func (b *buffer) wordEndAfter() int {
	return b.skipRight(b.skipRight(b.cursor, cluster.isWordPart, false), cluster.isWordPart, true)
}

// blankWordStartBefore is where Ctrl-W deletes to: the start of the word before the cursor, where only blanks
// separate words.
func (b *buffer) blankWordStartBefore() int {
	return b.skipLeft(b.skipLeft(b.cursor, cluster.isSpace, true), cluster.isSpace, false)
}

// skipLeft returns the first index of the run of clusters that ends before i and of which a predicate is as wanted.
func (b *buffer) skipLeft(i int, is func(cluster) bool, want bool) int {
	for i > 0 && is(b.text[i-1]) == want {
		i--
	}
	return i
}

// skipRight returns the end of the run of clusters that begins at i and of which a predicate is as wanted.
func (b *buffer) skipRight(i int, is func(cluster) bool, want bool) int {
	for i < len(b.text) && is(b.text[i]) == want {
		i++
	}
	return i
}

// isNewline reports whether the cluster ends a line.
func (c cluster) isNewline() bool { return c.text == "\n" }

// isWordPart reports whether the cluster belongs to a word for Alt-B and Alt-F.
func (c cluster) isWordPart() bool {
	r, _ := utf8.DecodeRuneInString(c.text)
	return c.isFolded() || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// isSpace reports whether only blank is seen of a cluster. A folded paste is none, whatever is in it.
func (c cluster) isSpace() bool { return !c.isFolded() && strings.TrimSpace(c.text) == "" }

// insertNewline, deleteLeft and deleteRight are what the keys of that name do.
func (b *buffer) insertNewline() { b.insert("\n") }
func (b *buffer) deleteLeft()    { b.replace(max(0, b.cursor-1), b.cursor, nil) }
func (b *buffer) deleteRight()   { b.replace(b.cursor, min(b.cursor+1, len(b.text)), nil) }

// kill deletes text[from:to] and keeps it for yank.
func (b *buffer) kill(from, to int) {
	if from < to {
		b.killed = slices.Clone(b.text[from:to])
		b.replace(from, to, nil)
	}
}

// killToEndOfLine kills the rest of the line, or the newline if the cursor is at the line's end.
func (b *buffer) killToEndOfLine() {
	end := b.endOfLine()
	if end == b.cursor {
		end = min(end+1, len(b.text))
	}
	b.kill(b.cursor, end)
}

// yank inserts what was killed last.
func (b *buffer) yank() { b.replace(b.cursor, b.cursor, b.killed) }

// transpose swaps the clusters around the cursor; at the end of the line, the last two.
func (b *buffer) transpose() {
	i := b.cursor
	if i == b.endOfLine() {
		i--
	}
	if i <= b.startOfLine() {
		return
	}
	b.text[i-1], b.text[i] = b.text[i], b.text[i-1]
	b.cursor = i + 1
}

// cursorOffset returns the cursor as a byte offset into value.
func (b *buffer) cursorOffset() int { return len(textOf(b.text[:b.cursor])) }

// layout is the input broken into rows of the screen, and the cursor's place among them. It is made anew for each frame
// and each vertical move, because an input is short.
type layout struct {
	rows   []row
	indent int // columns before each row: the prompt's width
	x, y   int // where the cursor is: a column of the screen, an index into rows
}

// row is a part of the text: text[start:end].
type row struct{ start, end int }

// newLayout breaks the text into rows of at most width columns, between words. The blanks at a break stay at the end
// of the row, so each index of the text is in exactly one row.
func newLayout(b *buffer, indent, width int) layout {
	l := layout{indent: indent}
	start := 0
	for _, line := range splitLines(b.text) {
		for {
			_, next := breakAt(line, max(1, width-indent))
			l.rows = append(l.rows, row{start, start + next})
			if b.cursor >= start && b.cursor <= start+next { // at a break the next row takes it over
				l.x, l.y = indent+ansi.StringWidthWc(visible(line[:b.cursor-start])), len(l.rows)-1
			}
			start += next
			if line = line[next:]; len(line) == 0 {
				break
			}
		}
		start++ // the newline
	}
	return l
}

// clusterAt returns the index of the cluster nearest to column x of row y.
func (l layout) clusterAt(b *buffer, x, y int) int {
	column := l.indent
	r := l.rows[y]
	for i := r.start; i < r.end; i++ {
		if column += b.text[i].width; column > x {
			return i
		}
	}
	if y < len(l.rows)-1 && l.rows[y+1].start == r.end && r.end > r.start {
		return r.end - 1 // a wrapped row: its end is the next row's beginning
	}
	return r.end
}

// rowTexts returns the rows from index from to index to. The prompt stands before the first row of all; the others are
// indented by its width.
func (l layout) rowTexts(b *buffer, prompt string, from, to int) []string {
	var out []string
	for i := from; i < to; i++ {
		lead := strings.Repeat(" ", l.indent)
		if i == 0 {
			lead = prompt
		}
		out = append(out, lead+visible(b.text[l.rows[i].start:l.rows[i].end]))
	}
	return out
}
