package terminal

import (
	"strings"

	"muster/internal/lineedit"
)

// history is what the user entered, oldest first, and the position that Up has reached in it.
type history struct {
	lines []string
	// position is the index of the line that is shown; len(lines) is the draft.
	position int
	// draft is what was being typed when Up was pressed first.
	draft string
}

// newHistory returns the history with these lines, cleaned.
func newHistory(lines []string) history {
	h := history{}
	for _, l := range lines {
		h.add(clean(l))
	}
	return h
}

// add appends a line and ends the walk. A blank line, or one equal to the last, is not added.
func (h *history) add(s string) {
	if n := len(h.lines); strings.TrimSpace(s) != "" && (n == 0 || h.lines[n-1] != s) {
		h.lines = append(h.lines, s)
	}
	h.position = len(h.lines)
	h.draft = ""
}

// move returns the line that is by lines later, or before if by is negative, which may be the draft. It keeps
// current as the draft if the walk begins here. It returns false, and does not move, beyond the ends.
func (h *history) move(by int, current string) (string, bool) {
	to := h.position + by
	if to < 0 || to > len(h.lines) {
		return "", false
	}
	if h.position == len(h.lines) {
		h.draft = current
	}
	if h.position = to; to == len(h.lines) {
		return h.draft, true
	}
	return h.lines[to], true
}

// visit goes to the newest line with a text, as if Up had reached it, and keeps current as the draft. Without such a
// line it does nothing.
func (h *history) visit(text, current string) {
	for i := len(h.lines) - 1; i >= 0; i-- {
		if h.lines[i] == text {
			if h.position == len(h.lines) {
				h.draft = current
			}
			h.position = i
			return
		}
	}
}

// search is the state of Ctrl-R: it finds the newest line that contains the query, then older ones.
type search struct {
	active bool
	query  string
	// match is the index of the line found, or the number of lines if there is none.
	match int
	// failed says that no older line contains the query.
	failed bool
	// savedInput is the input before the search, to which Ctrl-G returns.
	savedInput lineedit.Buffer
}

// findFrom looks for the query in the line at index from and in older ones. Without a match it keeps the last one and
// sets failed.
func (s *search) findFrom(h *history, from int) {
	s.failed = false
	if s.query == "" {
		s.match = len(h.lines)
		return
	}
	for i := min(from, len(h.lines)-1); i >= 0; i-- {
		if strings.Contains(h.lines[i], s.query) {
			s.match = i
			return
		}
	}
	s.failed = true
}

// prompt is what stands before the input during a search.
func (s *search) prompt() string {
	query, _, _ := strings.Cut(s.query, "\n")
	if s.failed {
		return "(no older match: " + query + ") "
	}
	return "(search: " + query + ") "
}
