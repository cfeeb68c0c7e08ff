package tmuxtest

import "strings"

// Unframed returns a screen without rules and without frames that have no text in their edges, so that a test reads
// what is in them.
func Unframed(screen string) string {
	var rows []string
	for row := range strings.SplitSeq(screen, "\n") {
		if row != "" && strings.Trim(row, "╭─╮╰╯") == "" {
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
