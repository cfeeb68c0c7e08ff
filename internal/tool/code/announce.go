package code

import (
	"strings"

	"muster/internal/mailbox"
)

// Render announces jobs that have ended: what a member reads at the next boundary.
func Render(done []Job) string {
	var b strings.Builder
	b.WriteString("<background-results>\n")
	for _, job := range done {
		b.WriteString(mailbox.Escape(join(job.outcome(), indent(job.Last))))
		b.WriteByte('\n')
	}
	b.WriteString("</background-results>")
	return b.String()
}

// indent sets an output off from what is said about it.
func indent(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
