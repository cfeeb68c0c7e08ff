package view

import (
	"strings"

	"muster/internal/text"
)

// Diff returns a text of git diff in its colours, with what below returns for a line, from 0; nil: nothing. What the
// files hold cannot steer the terminal.
func Diff(p Paint, patch string, below func(row int) string) string {
	b := new(strings.Builder)
	inHunk, row := false, -1
	for line := range strings.Lines(text.Clean(strings.ReplaceAll(patch, "\r\n", "\n"))) {
		row++
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "diff --git "):
			inHunk = false
			line = p.code("1", line)
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
			line = p.code("36", line)
		case inHunk && strings.HasPrefix(line, "+"):
			line = p.In(Good, line)
		case inHunk && strings.HasPrefix(line, "-"):
			line = p.In(Bad, line)
		}
		b.WriteString(line + "\n")
		if below != nil {
			b.WriteString(below(row))
		}
	}
	return b.String()
}
