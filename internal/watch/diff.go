package watch

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/difflines"
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

// isDiff reports whether there are lines of a diff on the right side, and so a mark that goes from line to line.
func (d *detail) isDiff() bool {
	return d.hasDiff && d.diff != nil && d.diff.Text != "" && d.taskID() != 0
}

// layOutDiff shows the diff of a task. Lines are not wrapped: code is read in columns, and scrolls to the side.
func (w rowWriter) layOutDiff(t *muster.Task) {
	w.add("", textRow{})
	// What was said about lines that the diff does not have any more stands before it.
	w.addComments(-1, place{})
	lines, isSplit := w.d.lines[:min(len(w.d.lines), maxDiff)], w.d.isSplit && w.d.width >= minTwoColumns
	look := view.NewDiffLook(w.paint, lines, w.screen)
	old, new := look, look
	if isSplit { // each side has its own number
		old.New, new.Old = 0, 0
	}
	for left, right := range difflines.Rows(lines, isSplit) {
		r := w.diffRow(old, lines, left)
		if isSplit && (left < 0 || lines[left].IsCode()) { // the pair can be commented on like the line that has come
			after := w.diffRow(new, lines, right)
			r.other, r.at = &after, after.at
		}
		w.d.widest = max(w.d.widest, look.NumberColumns()+ansi.StringWidthWc(r.text))
		w.d.rows = append(w.d.rows, r)
		w.addComments(right, r.at)
	}
	if len(w.d.lines) > maxDiff {
		w.add(fmt.Sprintf("... the rest: muster diff %d", t.ID), textRow{tone: view.Faint})
	}
	// The mark begins on the first line that can be commented on.
	if w.d.mark == 0 {
		w.d.mark = max(slices.IndexFunc(w.d.rows, func(r textRow) bool { return r.at.line > 0 }), 0)
	}
}

// diffRow returns a line of a difference as a row; -1: an empty one.
func (w rowWriter) diffRow(look view.DiffLook, lines []difflines.Line, i int) textRow {
	if i < 0 {
		return textRow{isCut: true}
	}
	l := lines[i]
	if hidden := w.hide(l.Text); hidden != l.Text {
		l.Text, l.Spans = hidden, nil
	}
	painted := look.Text(l, 0)
	r := textRow{text: ansi.Strip(painted), painted: painted, sgr: view.DiffCodes[l.Kind], before: look.Numbers(l),
		isCut: true}
	if l.New > 0 {
		r.at = place{l.File, l.New}
	}
	return r
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
