package web

import (
	"net/http"
	"strings"

	"muster/internal/difflines"
	"muster/internal/highlight"
)

// line is a line of a difference as the page draws it.
type line struct {
	Kind  difflines.Kind `json:"kind"`
	Text  string         `json:"text"`
	Old   int            `json:"old,omitempty"`
	New   int            `json:"new,omitempty"`
	Parts []part         `json:"parts,omitempty"`
}

// part is a piece of a line with a class of its own. The texts stay whole beside their parts, so that secrets are found
// in them.
type part struct {
	Length int    `json:"n"` // as JavaScript counts
	Class  string `json:"c,omitempty"`
}

// classes are the classes of the pieces of code in the style sheet.
var classes = [...]string{highlight.Plain: "", highlight.Comment: "t-comment", highlight.String: "t-string",
	highlight.Keyword: "t-keyword", highlight.Number: "t-number"}

// newLines returns lines for the page.
func newLines(lines []difflines.Line) []line {
	all := make([]line, len(lines))
	for i, l := range lines {
		all[i] = line{Kind: l.Kind, Text: strings.TrimSuffix(l.Text, "\r"), Old: l.Old, New: l.New}
		rest := l.Text
		for _, s := range l.Spans {
			class := classes[s.Code]
			if s.IsChanged {
				class = strings.TrimSpace(class + " t-changed")
			}
			all[i].Parts = append(all[i].Parts, part{utf16Length(rest[:s.Len]), class})
			rest = rest[s.Len:]
		}
	}
	return all
}

// utf16Length returns how many units of UTF-16 a text has in the page.
func utf16Length(s string) (n int) {
	for _, r := range s {
		if n++; r > 0xffff {
			n++
		}
	}
	return n
}

// code returns the pieces of the lines of a block of code. It changes nothing, and is a POST because code is long.
func (s *Server) code(r *http.Request) (any, error) {
	var in struct {
		Language string `json:"language"`
		Text     string `json:"text"`
	}
	if err := decode(r, &in); err != nil {
		return nil, err
	}
	lexer := highlight.For(in.Language)
	all := [][]part{}
	for text := range strings.SplitSeq(in.Text, "\n") {
		parts, rest := []part{}, text
		for _, s := range lexer.Line(text) {
			parts = append(parts, part{utf16Length(rest[:s.Len]), classes[s.Kind]})
			rest = rest[s.Len:]
		}
		all = append(all, parts)
	}
	return all, nil
}
