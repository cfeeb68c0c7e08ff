package tmuxtest

import "strings"

// Unframed returns a screen without its rules, and without its frames except those of questions, which have text in
// their edges. So a test reads only what stands in them.
func Unframed(screen string) string {
	var rows []string
	for row := range strings.SplitSeq(screen, "\n") {
		// Below an empty input.
		hint := strings.HasPrefix(row, "╰─ /help ·")
		if row != "" && strings.Trim(row, "╭─╮╰╯") == "" || hint {
			continue
		}
		if inner, ok := strings.CutPrefix(row, "│ "); ok && strings.HasSuffix(inner, " │") {
			row = strings.TrimRight(strings.TrimSuffix(inner, " │"), " ")
			if row == ">" || row == "> or write a message" || strings.HasPrefix(row, "> say what is to be done") {
				row = "> " // the prompt alone
			}
		}
		rows = append(rows, row)
	}
	return strings.Join(rows, "\n")
}
