package lineedit

import (
	"slices"
	"strings"
)

// Press does what a key does to the text or the cursor, by the name that bubbletea gives it. It returns false for a key
// that means nothing here, such as one that types a letter.
func (b *Buffer) Press(name string) bool {
	for keys, edit := range editKeys {
		if slices.Contains(strings.Fields(keys), name) {
			edit(b)
			return true
		}
	}
	return false
}

// editKeys are the keys that only change the input or move the cursor in it. Those of one entry do the same.
var editKeys = map[string]func(*Buffer){
	"alt+enter ctrl+j shift+enter": (*Buffer).insertNewline,
	"delete":                       (*Buffer).DeleteRight,
	"backspace ctrl+h":             (*Buffer).deleteLeft,
	"left ctrl+b":                  (*Buffer).left,
	"right ctrl+f":                 (*Buffer).right,
	"home ctrl+a":                  func(b *Buffer) { b.Cursor = b.startOfLine() },
	"end ctrl+e":                   func(b *Buffer) { b.Cursor = b.endOfLine() },
	"alt+b ctrl+left alt+left":     func(b *Buffer) { b.Cursor = b.wordStartBefore() },
	"alt+f ctrl+right alt+right":   func(b *Buffer) { b.Cursor = b.wordEndAfter() },
	"alt+< ctrl+home":              func(b *Buffer) { b.Cursor = 0 },
	"alt+> ctrl+end":               func(b *Buffer) { b.Cursor = len(b.Text) },
	"ctrl+k":                       (*Buffer).killToEndOfLine,
	"ctrl+u":                       func(b *Buffer) { b.kill(b.startOfLine(), b.Cursor) },
	"ctrl+w":                       func(b *Buffer) { b.kill(b.blankWordStartBefore(), b.Cursor) },
	"alt+backspace":                func(b *Buffer) { b.kill(b.wordStartBefore(), b.Cursor) },
	"alt+d":                        func(b *Buffer) { b.kill(b.Cursor, b.wordEndAfter()) },
	"ctrl+y":                       (*Buffer).yank,
	"ctrl+t":                       (*Buffer).transpose,
}
