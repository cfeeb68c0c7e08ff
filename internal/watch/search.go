package watch

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// Filtering a list and searching a text are two things: a filter leaves out what does not match, and a search leaves
// all of it and goes from match to match.

// hits is what is searched on the right side. The rows that match are found anew at each step, because a conversation
// grows meanwhile.
type hits struct {
	query   string
	pattern *regexp.Regexp // nil: nothing is searched
	nth, of int            // which of the rows that match is at the mark
}

// newHits returns the search for a query. Capital letters count only where the query has some.
func newHits(query string) hits {
	if query == "" {
		return hits{}
	}
	// The query is taken as it is: who searches for a call of a function means the bracket.
	flags := "(?i)"
	if strings.ToLower(query) != query {
		flags = ""
	}
	return hits{query: query, pattern: regexp.MustCompile(flags + regexp.QuoteMeta(query))}
}

// has reports whether a row matches.
func (h hits) has(r textRow) bool {
	return h.pattern.MatchString(r.text) || r.other != nil && h.pattern.MatchString(r.other.text)
}

// text says where the search stands.
func (h hits) text() string {
	if h.pattern == nil {
		return ""
	}
	return fmt.Sprintf("  %q %d of %d", h.query, h.nth, h.of)
}

// hasMark reports whether a mark stands before one of the rows: at the line that a comment would be about, or at the
// match that was found.
func (d *detail) hasMark() bool { return d.isDiff() || d.hits.pattern != nil }

// find moves the mark to the next row that matches, beginning at row from, downwards or upwards. After the last one it
// goes on with the first.
func (d *detail) find(from int, downwards bool, height int) {
	// Where the matches are is not kept: rows come and go while a member works.
	var all []int
	for i, r := range d.rows {
		if d.hits.has(r) {
			all = append(all, i)
		}
	}
	if d.hits.nth, d.hits.of = 0, len(all); len(all) == 0 {
		return
	}
	i, isAt := slices.BinarySearch(all, from)
	if !downwards && !isAt {
		i-- // the last one before it
	}
	i = (i + len(all)) % len(all)
	d.mark, d.hits.nth, d.follows = all[i], i+1, false
	d.reveal(height)
}

// reveal scrolls as little as it must to have the mark in sight.
func (d *detail) reveal(height int) { d.top = max(min(d.top, d.mark), d.mark-height+1, 0) }

// askSearch asks for what is searched in the text on the right side. The first match below the top is shown while it is
// typed. Enter keeps the search for n and N, and Esc ends it.
func askSearch(m *model) tea.Cmd {
	d, from := &m.detail, m.detail.top
	if d.follows { // the newest is what the reader sees
		from = max(len(d.rows)-m.detailRows(), 0)
	}
	set := func(query string) {
		d.hits = newHits(query)
		l := m.layout()
		m.writer().layOut(l.right) // the mark takes room
		if query != "" {
			d.find(from, true, m.detailRows())
		}
	}
	m.input = &input{prompt: "search: ", changed: set, cancelled: func() { set("") },
		done: func(string) tea.Cmd { return nil }}
	m.input.insert(d.hits.query)
	return nil
}

// step goes to the next match, or to the one before.
func step(downwards bool) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		from := m.detail.mark - 1
		if downwards {
			from = m.detail.mark + 1
		}
		m.detail.find(from, downwards, m.detailRows())
		return nil
	}
}
