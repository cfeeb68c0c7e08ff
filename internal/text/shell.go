package text

import "strings"

// ShellQuote returns s as one word of a POSIX shell, so that a command in a message can be pasted. A word without
// special characters stays as it is.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n\r'\"\\$`!&;()<>|*?[]{}#~") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
