package terminal

import "strings"

// history is what was entered, oldest first, and where Up has gone in it.
type history struct {
	lines []string
	at    int    // len(lines): at the draft
	draft string // what was being typed before Up
}

func newHistory(lines []string) history {
	h := history{}
	for _, l := range lines {
		h.add(clean(l))
	}
	return h
}

func (h *history) add(s string) {
	if n := len(h.lines); strings.TrimSpace(s) != "" && (n == 0 || h.lines[n-1] != s) {
		h.lines = append(h.lines, s)
	}
	h.at = len(h.lines)
	h.draft = ""
}

func (h *history) older(current string) (string, bool) {
	if h.at == 0 {
		return "", false
	}
	if h.at == len(h.lines) {
		h.draft = current
	}
	h.at--
	return h.lines[h.at], true
}

func (h *history) newer() (string, bool) {
	if h.at == len(h.lines) {
		return "", false
	}
	if h.at++; h.at == len(h.lines) {
		return h.draft, true
	}
	return h.lines[h.at], true
}

// search is Ctrl-R: the newest line that contains what is typed, then older ones.
type search struct {
	on     bool
	query  string
	at     int    // the line found, or len(lines)
	failed bool   // nothing older contains the query
	before buffer // what stood there before
}

// find looks for the query from a line on, towards older ones.
func (s *search) find(h *history, from int) {
	s.failed = false
	if s.query == "" {
		s.at = len(h.lines)
		return
	}
	for i := min(from, len(h.lines)-1); i >= 0; i-- {
		if strings.Contains(h.lines[i], s.query) {
			s.at = i
			return
		}
	}
	s.failed = true
}

func (s *search) prompt() string {
	query, _, _ := strings.Cut(s.query, "\n")
	if s.failed {
		return "(no older match: " + query + ") "
	}
	return "(search: " + query + ") "
}
