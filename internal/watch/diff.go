package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/lazyregexp"
	"muster/internal/view"
)

// maxDiff is how many lines of a diff are laid out. A longer one is read with a pager, which need not lay it out whole
// whenever something changes.
const maxDiff = 5000

// place is a line of a file as the work has it now. Only such lines can be commented on.
type place struct {
	file string
	line int
}

// commentMsg is the outcome of a comment: who got it.
type commentMsg struct {
	text string
	to   muster.Name
	err  error
}

// hunkHead is the head of a hunk. It says how many lines of both sides follow.
var hunkHead = lazyregexp.New(`^@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@`)

// isDiff reports whether there are lines of a diff on the right side, and so a mark that goes from line to line.
func (d *detail) isDiff() bool {
	return d.hasDiff && d.diff != nil && d.diff.Text != "" && d.taskID() != 0
}

// layOutDiff shows the diff of a task. Lines are not wrapped: code is read in columns, and scrolls to the side. Their
// files come from the list beside the text, because git quotes odd names in it. A line that looks like a head within a
// hunk is a line, so the lines are counted.
func (w rowWriter) layOutDiff(t *muster.Task) {
	w.add("", textRow{})
	file, number, old, left := -1, 0, 0, 0
	count := func(s string) int { n, _ := strconv.Atoi(cmp.Or(s, "1")); return n }
	first := len(w.d.rows)
	// What was said about lines that the diff does not have any more stands before it.
	w.addComments(-1, place{})
	at := -1
	for line := range strings.Lines(w.clean(w.d.diff.Text)) {
		at++
		if len(w.d.rows)-first > maxDiff {
			w.add(fmt.Sprintf("... the rest: muster diff %d", t.ID), textRow{tone: view.Faint})
			break
		}
		r := textRow{text: strings.TrimSuffix(line, "\n"), isCut: true}
		isHead := old <= 0 && left <= 0
		switch hunk := hunkHead().FindStringSubmatch(line); {
		case isHead && strings.HasPrefix(line, "diff --git "):
			file, r.sgr = file+1, bold
		case isHead && hunk != nil:
			old, number, left, r.sgr = count(hunk[1]), count(hunk[2]), count(hunk[3]), "36"
		case isHead || line[0] == '\\': // another head, or that the last line has no end
		case line[0] == '-':
			old, r.tone = old-1, view.Bad
		default:
			if left--; line[0] == '+' {
				r.tone = view.Good
			} else {
				old--
			}
			if file >= 0 && file < len(w.d.diff.Files) {
				r.at = place{w.d.diff.Files[file].File, number}
			}
			number++
		}
		w.d.widest = max(w.d.widest, ansi.StringWidthWc(r.text))
		w.d.rows = append(w.d.rows, r)
		w.addComments(at, r.at)
	}
	if w.d.isSplit && w.d.width >= minTwoColumns {
		w.d.rows = append(w.d.rows[:first:first], sideBySide(w.d.rows[first:])...)
	}
	// The mark begins on the first line that can be commented on.
	if w.d.mark == 0 {
		w.d.mark = max(slices.IndexFunc(w.d.rows, func(r textRow) bool { return r.at.line > 0 }), 0)
	}
}

// addComments adds what the user has said about a line of the diff, which is a line of a file at a place.
func (w rowWriter) addComments(row int, at place) {
	for _, c := range w.d.diff.Comments {
		if c.Row != row {
			continue
		}
		said := fmt.Sprintf("  you to %s: %s", c.To, c.Text)
		if row < 0 {
			said = fmt.Sprintf("%s:%d: %s\n%s", c.File, c.Line, c.Quoted, said)
		}
		w.addHanging(said, 4, textRow{who: string(muster.User), at: at})
	}
}

// sideBySide puts removed lines beside those that have come in their place. What is the same stands on both sides.
func sideBySide(rows []textRow) (all []textRow) {
	// Removed lines wait here for the added ones that follow them.
	var removed []textRow
	// What was removed without anything in its place has an empty side.
	flush := func() {
		for _, x := range removed {
			x.other = &textRow{isCut: true}
			all = append(all, x)
		}
		removed = nil
	}
	for _, r := range rows {
		switch {
		case r.tone == view.Bad:
			removed = append(removed, r)
			continue
		case r.tone == view.Good && len(removed) > 0: // the pair can be commented on like the line that has come
			before := removed[0]
			before.other, before.at, removed = &r, r.at, removed[1:]
			all = append(all, before)
			continue
		case r.tone == view.Good:
			all = append(all, textRow{isCut: true, other: &r, at: r.at})
			continue
		}
		flush()
		// A line of the file is on both sides; a head and a comment are not.
		if r.at.line > 0 && r.isCut {
			same := r
			r.other = &same
		}
		all = append(all, r)
	}
	flush()
	return all
}

// marked returns the row at the mark; ok is false where there is no mark.
func (d *detail) marked() (r textRow, ok bool) {
	if !d.hasMark() || d.mark >= len(d.rows) {
		return textRow{}, false
	}
	return d.rows[d.mark], true
}

// boxRow returns the row below which the box for a comment is: the last one about the line at the mark.
func (d *detail) boxRow() int {
	i := d.mark
	for i+1 < len(d.rows) && d.rows[i+1].at == d.rows[d.mark].at {
		i++
	}
	return i
}

// isInDiff reports whether the lines of a diff are being read.
func isInDiff(m *model) bool { return isReading(m) && m.detail.isDiff() }

// askComment opens a box below the line at the mark. It stays open below what was sent, for another comment, until Esc
// or an empty one closes it. The words go to the owner of the task as mail.
func askComment(m *model) tea.Cmd {
	r, _ := m.detail.marked()
	id, at := m.detail.taskID(), r.at
	if at.line == 0 {
		m.message = toldMsg{text: "no comment here: the mark is on no line that the file has now", bad: true}
		return nil
	}
	box := &input{prompt: "comment: ", isBelow: true}
	box.done = func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		box.Set("")
		m.input = box
		return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
			to, err := t.Comment(ctx, id, at, text)
			return commentMsg{text, to, err}
		})
	}
	m.input = box
	m.detail.reveal(m.detailRows() - 1) // the box takes a row
	return nil
}

// addComment reads the diff again, which has what was said below its line. What was not sent is put back into the box,
// so that it is not lost.
func (m *model) addComment(msg commentMsg) tea.Cmd {
	if msg.err == nil {
		m.message = told(nil, "comment sent to %s", msg.to)
		return loadDiff(m, m.detail.key)
	}
	m.message = told(msg.err, "")
	if m.input != nil && m.input.isBelow && m.input.IsEmpty() {
		m.input.insert(msg.text)
	}
	return nil
}
