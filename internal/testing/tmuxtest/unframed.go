package tmuxtest

import "strings"

// Unframed returns a screen without rules, and without the frames of inputs and of all that has no text in its edges,
// so that a test reads what is in them.
func Unframed(screen string) string {
	var rows []string
	for row := range strings.SplitSeq(screen, "\n") {
		hint := strings.HasPrefix(row, "╰─ /help ·") // below an empty input
		if row != "" && strings.Trim(row, "╭─╮╰╯") == "" || hint {
			continue
		}
		if inner, ok := strings.CutPrefix(row, "│ "); ok && strings.HasSuffix(inner, " │") {
			row = strings.TrimRight(strings.TrimSuffix(inner, " │"), " ")
			if row == ">" {
				row += " " // the prompt's
			}
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "\n")
}
