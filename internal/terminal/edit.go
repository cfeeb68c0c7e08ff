package terminal

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A paste beyond these is folded: shown as one thing, submitted whole.
const (
	foldLines = 8
	foldBytes = 4000
)

// buffer is the text that is being edited.
type buffer struct {
	text   []cluster
	cursor int // an index into text
	killed []cluster
}

func (b *buffer) set(s string) {
	b.text = nil
	b.cursor = 0
	b.paste(s)
}

// value is the text as it will be submitted.
func (b *buffer) value() string {
	var s strings.Builder
	for _, c := range b.text {
		s.WriteString(c.text)
	}
	return s.String()
}

// display is the text as it is shown, with pastes folded.
func (b *buffer) display() string {
	var s strings.Builder
	for _, c := range b.text {
		if c.text == "\n" {
			s.WriteByte('\n')
		}
		s.WriteString(c.shown)
	}
	return s.String()
}

func (b *buffer) empty() bool { return len(b.text) == 0 }

// insert puts clean text in at the cursor. What stands around is split again with it, for a combining mark joins
// the letter before it.
func (b *buffer) insert(s string) {
	if s == "" {
		return
	}
	from := b.cursor
	if first, _ := utf8.DecodeRuneInString(s); first >= utf8.RuneSelf && from > 0 && !b.text[from-1].folded() && b.text[from-1].text != "\n" {
		from--
		s = b.text[from].text + s
	}
	b.replace(from, b.cursor, clusters(s))
}

func (b *buffer) replace(from, to int, with []cluster) {
	rest := b.text[to:]
	b.text = append(append(append([]cluster{}, b.text[:from]...), with...), rest...)
	b.cursor = from + len(with)
}

// paste puts in clean text of any size.
func (b *buffer) paste(s string) {
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	label := ""
	switch {
	case lines > foldLines:
		label = fmt.Sprintf("[%d lines pasted]", lines)
	case len(s) > foldBytes:
		label = fmt.Sprintf("[%d characters pasted]", utf8.RuneCountInString(s))
	default:
		b.insert(s)
		return
	}
	b.replace(b.cursor, b.cursor, []cluster{{text: s, shown: label, width: len(label)}})
}

func (c cluster) folded() bool { return len(c.text) > len(c.shown) && strings.HasPrefix(c.shown, "[") }

func (b *buffer) left()  { b.cursor = max(0, b.cursor-1) }
func (b *buffer) right() { b.cursor = min(len(b.text), b.cursor+1) }

func (b *buffer) lineStart() int {
	i := b.cursor
	for i > 0 && b.text[i-1].text != "\n" {
		i--
	}
	return i
}

func (b *buffer) lineEnd() int {
	i := b.cursor
	for i < len(b.text) && b.text[i].text != "\n" {
		i++
	}
	return i
}

func (b *buffer) wordLeft() int {
	i := b.cursor
	for i > 0 && !b.text[i-1].inWord() {
		i--
	}
	for i > 0 && b.text[i-1].inWord() {
		i--
	}
	return i
}

func (b *buffer) wordRight() int {
	i := b.cursor
	for i < len(b.text) && !b.text[i].inWord() {
		i++
	}
	for i < len(b.text) && b.text[i].inWord() {
		i++
	}
	return i
}

// blankLeft is where Ctrl-W deletes to: the word before the cursor as blanks bound it.
func (b *buffer) blankLeft() int {
	i := b.cursor
	for i > 0 && b.text[i-1].isSpace() {
		i--
	}
	for i > 0 && !b.text[i-1].isSpace() {
		i--
	}
	return i
}

func (c cluster) inWord() bool {
	r, _ := utf8.DecodeRuneInString(c.text)
	return c.folded() || unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_'
}

func (c cluster) isSpace() bool { return !c.folded() && strings.TrimSpace(c.text) == "" }

// remove deletes text between two places and leaves the cursor there.
func (b *buffer) remove(from, to int) []cluster {
	if from >= to {
		return nil
	}
	gone := append([]cluster{}, b.text[from:to]...)
	b.replace(from, to, nil)
	return gone
}

// kill is remove, for Ctrl-Y to put back.
func (b *buffer) kill(from, to int) {
	if gone := b.remove(from, to); gone != nil {
		b.killed = gone
	}
}

func (b *buffer) yank() { b.replace(b.cursor, b.cursor, b.killed) }

// transpose swaps the two clusters before the end of the line or around the cursor.
func (b *buffer) transpose() {
	i := b.cursor
	if i == b.lineEnd() {
		i--
	}
	if i <= b.lineStart() {
		return
	}
	b.text[i-1], b.text[i] = b.text[i], b.text[i-1]
	b.cursor = i + 1
}

// offset gives the cursor in bytes of value.
func (b *buffer) offset() int {
	n := 0
	for _, c := range b.text[:b.cursor] {
		n += len(c.text)
	}
	return n
}
