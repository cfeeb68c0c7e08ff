// Package lineedit is the editor of a line that a user types, without the terminal: the text with its cursor, and the
// keys that change it, which are those of readline. The terminal of a conversation and watch share it, so that they
// agree about characters, words and widths.
//
// It does not draw, and knows neither a history nor what Enter does.
package lineedit

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"muster/internal/text"
)

const (
	// maxPasteLines and maxPasteBytes limit what a paste shows. A larger one is folded: shown as its size, submitted
	// whole.
	maxPasteLines = 8
	maxPasteBytes = 4000
)

// Cluster is what the cursor moves over in one step: a character as people see it, a newline, a tab or a folded paste.
type Cluster struct {
	// Text is what the cluster stands for.
	Text string
	// Shown is what is drawn for it, and Width how many columns that takes. A newline has none.
	Shown string
	Width int
}

// clusters splits text that text.Clean has returned.
func clusters(s string) []Cluster {
	out := make([]Cluster, 0, len(s))
	for len(s) > 0 {
		var c Cluster
		switch {
		case s[0] == '\n':
			c = Cluster{Text: "\n", Shown: "\n"}
		case s[0] == '\t':
			c = Cluster{Text: "\t", Shown: "    ", Width: 4}
		default:
			c.Text, c.Width = text.FirstCharacter(s)
			c.Shown = c.Text
		}
		out = append(out, c)
		s = s[len(c.Text):]
	}
	return out
}

// Shown returns what is drawn for clusters.
func Shown(all []Cluster) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString(c.Shown)
	}
	return b.String()
}

// textOf returns the text that clusters stand for.
func textOf(all []Cluster) string {
	var b strings.Builder
	for _, c := range all {
		b.WriteString(c.Text)
	}
	return b.String()
}

// Buffer is the text that is being edited, with the cursor and the text that Ctrl-Y inserts.
type Buffer struct {
	Text []Cluster
	// Cursor is an index into Text.
	Cursor int
	// killed is what Ctrl-Y inserts.
	killed []Cluster
}

// Set replaces the whole text and puts the cursor at its end.
func (b *Buffer) Set(s string) {
	b.Text, b.Cursor = nil, 0
	b.Paste(s)
}

// Value is the text as it is submitted.
func (b *Buffer) Value() string { return textOf(b.Text) }

// IsEmpty reports whether there is no text.
func (b *Buffer) IsEmpty() bool { return len(b.Text) == 0 }

// Insert puts text that text.Clean has returned in at the cursor. The cluster before the cursor is split again together
// with it, because a combining mark joins the letter before it.
func (b *Buffer) Insert(s string) {
	if s == "" {
		return
	}
	from := b.Cursor
	if s[0] >= utf8.RuneSelf && from > 0 && !b.Text[from-1].isFolded() && !b.Text[from-1].isNewline() {
		from--
		s = b.Text[from].Text + s
	}
	b.replace(from, b.Cursor, clusters(s))
}

// replace puts clusters in the place of Text[from:to], with the cursor behind them. It copies the text, so that a
// saved buffer never changes.
func (b *Buffer) replace(from, to int, with []Cluster) {
	b.Text = slices.Concat(b.Text[:from], with, b.Text[to:])
	b.Cursor = from + len(with)
}

// ReplaceWord puts a text in the place of what stands between a byte offset and the cursor.
func (b *Buffer) ReplaceWord(from int, word string) {
	start := b.Cursor
	for n := b.CursorOffset(); start > 0 && n > from; start-- {
		n -= len(b.Text[start-1].Text)
	}
	b.replace(start, b.Cursor, clusters(text.Clean(word)))
}

// Paste is Insert for a text of any size. A large one becomes a single cluster, which shows only its size.
func (b *Buffer) Paste(s string) {
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	label := ""
	switch {
	case lines > maxPasteLines:
		label = fmt.Sprintf("[%d lines pasted]", lines)
	case len(s) > maxPasteBytes:
		label = fmt.Sprintf("[%d characters pasted]", utf8.RuneCountInString(s))
	default:
		b.Insert(s)
		return
	}
	b.replace(b.Cursor, b.Cursor, []Cluster{{Text: s, Shown: label, Width: len(label)}})
}

// isFolded reports whether the cluster is a paste that shows only its size.
func (c Cluster) isFolded() bool {
	return len(c.Text) > len(c.Shown) && strings.HasPrefix(c.Shown, "[")
}

// left and right move the cursor by one cluster, and stop at the ends.
func (b *Buffer) left()  { b.Cursor = max(0, b.Cursor-1) }
func (b *Buffer) right() { b.Cursor = min(len(b.Text), b.Cursor+1) }

// startOfLine and endOfLine return the ends of the cursor's line.
func (b *Buffer) startOfLine() int { return b.skipLeft(b.Cursor, Cluster.isNewline, false) }
func (b *Buffer) endOfLine() int   { return b.skipRight(b.Cursor, Cluster.isNewline, false) }

// wordStartBefore returns where the word before the cursor begins, over the blanks in between.
func (b *Buffer) wordStartBefore() int {
	return b.skipLeft(b.skipLeft(b.Cursor, Cluster.isWordPart, false), Cluster.isWordPart, true)
}

// wordEndAfter returns where the word after the cursor ends.
func (b *Buffer) wordEndAfter() int {
	return b.skipRight(b.skipRight(b.Cursor, Cluster.isWordPart, false), Cluster.isWordPart, true)
}

// blankWordStartBefore is where Ctrl-W deletes to: the start of the word before the cursor, where only blanks
// separate words.
func (b *Buffer) blankWordStartBefore() int {
	return b.skipLeft(b.skipLeft(b.Cursor, Cluster.isSpace, true), Cluster.isSpace, false)
}

// skipLeft returns the first index of the run of clusters that ends before i and of which a predicate is as wanted.
func (b *Buffer) skipLeft(i int, is func(Cluster) bool, want bool) int {
	for i > 0 && is(b.Text[i-1]) == want {
		i--
	}
	return i
}

// skipRight returns the end of the run of clusters that begins at i and of which a predicate is as wanted.
func (b *Buffer) skipRight(i int, is func(Cluster) bool, want bool) int {
	for i < len(b.Text) && is(b.Text[i]) == want {
		i++
	}
	return i
}

// isNewline reports whether the cluster ends a line.
func (c Cluster) isNewline() bool { return c.Text == "\n" }

// isWordPart reports whether the cluster belongs to a word for Alt-B and Alt-F.
func (c Cluster) isWordPart() bool {
	r, _ := utf8.DecodeRuneInString(c.Text)
	return c.isFolded() || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

// isSpace reports whether only blank is seen of a Cluster. A folded paste is none, whatever is in it.
func (c Cluster) isSpace() bool { return !c.isFolded() && strings.TrimSpace(c.Text) == "" }

// insertNewline and deleteLeft are what the keys of that name do.
func (b *Buffer) insertNewline() { b.Insert("\n") }
func (b *Buffer) deleteLeft()    { b.replace(max(0, b.Cursor-1), b.Cursor, nil) }

// DeleteRight deletes the cluster at the cursor.
func (b *Buffer) DeleteRight() { b.replace(b.Cursor, min(b.Cursor+1, len(b.Text)), nil) }

// kill deletes Text[from:to] and keeps it for yank.
func (b *Buffer) kill(from, to int) {
	if from < to {
		b.killed = slices.Clone(b.Text[from:to])
		b.replace(from, to, nil)
	}
}

// killToEndOfLine kills the rest of the line, or the newline if the cursor is at the line's end.
func (b *Buffer) killToEndOfLine() {
	end := b.endOfLine()
	if end == b.Cursor {
		end = min(end+1, len(b.Text))
	}
	b.kill(b.Cursor, end)
}

// yank inserts what was killed last.
func (b *Buffer) yank() { b.replace(b.Cursor, b.Cursor, b.killed) }

// transpose swaps the clusters around the cursor; at the end of the line, the last two.
func (b *Buffer) transpose() {
	i := b.Cursor
	if i == b.endOfLine() {
		i--
	}
	if i <= b.startOfLine() {
		return
	}
	b.replace(i-1, i+1, []Cluster{b.Text[i], b.Text[i-1]})
}

// CursorOffset returns the cursor as a byte offset into value.
func (b *Buffer) CursorOffset() int { return len(textOf(b.Text[:b.Cursor])) }

// MoveTo moves the cursor to a byte offset into value, as far as a folded paste lets it.
func (b *Buffer) MoveTo(offset int) {
	for b.Cursor = 0; b.Cursor < len(b.Text) && offset > 0; b.Cursor++ {
		offset -= len(b.Text[b.Cursor].Text)
	}
}
