package terminal

import (
	"strings"

	"muster/internal/text"
)

// clean removes everything that could steer the terminal, colour sequences included.
func clean(s string) string { return text.Clean(s) }

// cleanPaste is clean for pasted text, in which terminals send \r as the end of a line.
func cleanPaste(s string) string {
	return clean(strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n"))
}
