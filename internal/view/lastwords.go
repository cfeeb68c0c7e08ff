package view

import (
	"fmt"
	"strings"

	"muster/internal/markdown"
	"muster/internal/text"
)

// maxLastLines is how many rows the lead's last words may take: the command that takes the work stands below them, and
// must stay in sight.
const maxLastLines = 20

// lastWords returns what the lead has said last, or why the run stopped, below a title. It is empty where nothing was
// said, or where the lines above have said all of it.
func (s Summary) lastWords(screen Screen) string {
	_, words := s.splitReason()
	words = strings.TrimSpace(text.Clean(words))
	const leadSays = "the lead says:"
	title, said := leadSays, ""
	switch left := len(s.unfinished) + len(s.Unreadable); {
	case s.WordsShown:
		return ""
	case s.Code != 0 && left > 0:
		title, said = "in full:", headlineReason(words)
	case s.Code != 0 && !s.CheckIsRed && len(s.offTarget) == 0:
		title = "in full:"
		said, _, _ = strings.Cut(words, "\n")
	}
	if words == "" || text.OneLine(words) == text.OneLine(said) {
		return ""
	}
	// The rows are counted as they stand on the terminal, because a model may say all in one long line.
	// Two columns are the indentation, and the last one stays free, so that no terminal wraps a full row.
	width := max(screen.Width-3, 20)
	rows := plainRows(words, width, screen.Width > 0)
	if title == leadSays && s.drawsMarkdown(screen) { // a reason is the runtime's, and no Markdown
		rows = markdown.Draw(words, width, screen.IsOn())
	}
	if more := len(rows) - maxLastLines; more > 1 {
		all := "muster " + s.RepositoryFlag + "log --member lead --json -n 1"
		rows = append(rows[:maxLastLines], fmt.Sprintf("... and %d more lines: %s", more, all))
	}
	b := new(strings.Builder)
	fmt.Fprintln(b, "\n"+title)
	for _, row := range rows {
		fmt.Fprintln(b, strings.TrimRight("  "+row, " "))
	}
	return b.String()
}

// drawsMarkdown reports whether the lead's words are drawn. A pipe has them as they were written.
func (s Summary) drawsMarkdown(screen Screen) bool { return s.Markdown && screen.Width > 0 }

// plainRows returns words as rows, of at most width columns where they are wrapped. Code stays as it is.
func plainRows(words string, width int, isWrapped bool) (rows []string) {
	for line := range strings.SplitSeq(words, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if !isWrapped || strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			rows = append(rows, line)
			continue
		}
		rows = append(rows, text.Wrap(line, width)...)
	}
	return rows
}

func headlineReason(why string) string { return text.CutColumns(text.OneLine(why), 160) }
