package watch

import (
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/view"
)

// row is one line of a list. key says what it is, in this overview and in the next one; see detail. Exactly one of the
// pointers is set, or none for a row that only counts others.
type row struct {
	key    string
	need   *view.Need
	member *view.Member
	task   *muster.Task
	// level is how many tasks are above a task in the tree. Of the row that counts others it is their number.
	level int
	// waits marks in the switcher what waits for the user.
	waits bool
}

// list is one pane on the left: rows of which a part is seen. It does not draw: the drawing of a row needs a width, and
// is done for the rows that are seen.
type list struct {
	rows []row
	all  int // how many there are without the filter
	at   int // where the cursor is
	top  int // the first row that is seen
	// filter are words that each row must have. It stays when the rows change.
	filter string
}

// set replaces the rows. The cursor stays on what it was on, or at its place where that has gone. So a task that moves
// up the board takes the cursor with it, and a question that was answered leaves it where the next one comes.
func (l *list) set(rows []row) {
	// The number of all stays in the title, so that nobody takes the rest for gone.
	l.all = len(rows)
	if l.filter != "" {
		rows = slices.DeleteFunc(rows, func(r row) bool { return !matches(l.filter, r.text()) })
	}
	if at, ok := l.selected(); ok {
		if i := slices.IndexFunc(rows, func(r row) bool { return r.key == at.key }); i >= 0 {
			l.at = i
		}
	}
	l.rows = rows
	l.move(0)
}

// find moves the cursor to a row, and reports whether it is there.
func (l *list) find(key string) bool {
	i := slices.IndexFunc(l.rows, func(r row) bool { return r.key == key })
	if i >= 0 {
		l.at = i
	}
	return i >= 0
}

// has reports whether a row is there.
func (l *list) has(key string) bool {
	return slices.ContainsFunc(l.rows, func(r row) bool { return r.key == key })
}

// text is what a filter finds a row by.
func (r row) text() string {
	switch {
	case r.need != nil:
		return r.need.Name + " " + r.need.What
	case r.member != nil:
		return fmt.Sprintf("%s %s %s", r.member.Name, r.member.Role, r.member.Subject)
	case r.task != nil:
		t := r.task
		return fmt.Sprintf("%d %s %s %s %s", t.ID, t.Subject, t.Owner, view.TaskWord(*t), t.ClaimRole)
	}
	return ""
}

// matches reports whether a text has each word of a filter. Capital letters make no difference.
func matches(filter, text string) bool {
	text = strings.ToLower(text)
	for word := range strings.FieldsSeq(strings.ToLower(filter)) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	return true
}

// selected returns the row at the cursor; ok is false where there are no rows.
func (l *list) selected() (r row, ok bool) {
	if l.at < 0 || l.at >= len(l.rows) {
		return row{}, false
	}
	return l.rows[l.at], true
}

// move moves the cursor by n rows as far as there are any, and reports whether it moved at all.
func (l *list) move(n int) bool {
	at := max(min(l.at+n, len(l.rows)-1), 0)
	moved := at != l.at
	l.at = at
	return moved
}

// seen returns the rows that fit, with the cursor among them, and the place of the first. It scrolls no further than it
// must, so that rows stay where the eye has found them.
func (l *list) seen(height int) (rows []row, top int) {
	l.top = max(min(l.top, l.at, len(l.rows)-height), min(l.at-height+1, len(l.rows)), 0)
	return l.rows[l.top:min(l.top+max(height, 0), len(l.rows))], l.top
}
