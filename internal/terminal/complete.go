package terminal

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// completeWord inserts what all candidates have in common. If that is nothing and Tab was pressed twice, it returns
// the candidates as text to show above the prompt.
func (s *screen) completeWord(again bool) string {
	if s.options.Complete == nil {
		return ""
	}
	text, cursor := s.input.value(), s.input.cursorOffset()
	from, candidates := s.options.Complete(text, cursor)
	if len(candidates) == 0 || from < 0 || from > cursor {
		return ""
	}
	// A single candidate replaces the word even where it is not longer: it may differ in case.
	if put := commonPrefix(candidates); len(candidates) == 1 || len(put) > cursor-from {
		start := s.input.cursor
		for n := cursor; start > 0 && n > from; start-- {
			n -= len(s.input.text[start-1].text)
		}
		s.input.replace(start, s.input.cursor, clusters(clean(put)))
		return ""
	}
	if !again {
		return ""
	}
	return formatColumns(candidates, s.width-1)
}

// commonPrefix returns the longest common prefix, cut at a whole rune: half of one would be shown as a broken
// character.
func commonPrefix(all []string) string {
	prefix := all[0]
	for _, s := range all[1:] {
		for !strings.HasPrefix(s, prefix) {
			_, n := utf8.DecodeLastRuneInString(prefix)
			prefix = prefix[:len(prefix)-n]
		}
	}
	return prefix
}

// formatColumns lays words out in columns as ls does: down first, then right.
func formatColumns(words []string, width int) string {
	const gap = 2
	widest := 0
	shown := make([]string, len(words))
	for i, w := range words {
		shown[i] = strings.TrimSpace(strings.ReplaceAll(clean(w), "\n", " "))
		widest = max(widest, ansi.StringWidthWc(shown[i]))
	}
	across := max(1, (width+gap)/(widest+gap))
	down := (len(shown) + across - 1) / across
	var b strings.Builder
	for y := range down {
		line := ""
		for x := y; x < len(shown); x += down {
			line += shown[x] + strings.Repeat(" ", widest+gap-ansi.StringWidthWc(shown[x]))
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	return b.String()
}
