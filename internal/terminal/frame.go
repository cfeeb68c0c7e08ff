package terminal

import (
	"strings"

	"github.com/charmbracelet/x/ansi"
)

// faint is the SGR code of what is there for completeness.
const faint = "2"

// frame is drawn around rows.
type frame struct {
	code string // the SGR code of its colour
	// title and note stand in the upper edge, at its left and right end, and foot in the lower one.
	title, note, foot string
}

// draw returns the rows in the frame. They have at most width-4 columns, and the frame has width.
func (f frame) draw(s *screen, rows []string, width int) []string {
	framed := []string{f.edge(s, "╭", f.title, f.note, "╮", width)}
	for _, row := range rows {
		fill := strings.Repeat(" ", max(0, width-4-ansi.StringWidthWc(row)))
		framed = append(framed, s.paint(f.code, "│")+" "+row+fill+" "+s.paint(f.code, "│"))
	}
	return append(framed, f.edge(s, "╰", f.foot, "", "╯", width))
}

// edge returns the upper or the lower edge of the frame with its texts.
func (f frame) edge(s *screen, left, title, note, right string, width int) string {
	room := width - 2
	if n := ansi.StringWidthWc(note); note != "" && n+3 < room/2 && n+ansi.StringWidthWc(title)+8 <= room {
		note = " " + note + " ─"
		room -= ansi.StringWidthWc(note)
	} else {
		note = ""
	}
	if title != "" {
		title = "─ " + ansi.TruncateWc(title, max(room-4, 0), "…") + " "
	}
	return s.paint(f.code, left+title+strings.Repeat("─", max(0, room-ansi.StringWidthWc(title)))+note+right)
}

// paint colours a text without sequences by an SGR code.
func (s *screen) paint(code, text string) string {
	if !s.options.Colour || code == "" || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[m"
}
