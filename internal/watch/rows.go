package watch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/face"
	"muster/internal/lazyregexp"
	"muster/internal/markdown"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
	"muster/llm"
	"muster/team"
)

// rowWriter turns what the right side shows into rows that fit. Most rows are plain text with one colour each, which
// is painted only where they are seen, so that a conversation of thousands of rows is cheap to keep.
type rowWriter struct {
	*teamState
	paint  view.Paint
	screen int // columns
	d      *detail
	events []face.Event
	gone   int // events that are not kept any more
	words  map[muster.Name]words
	// bindings are all keys, and keys is the filter of the page that shows them.
	bindings []binding
	keys     string
}

// writer returns what lays out the right side.
func (m *model) writer() rowWriter {
	return rowWriter{&m.teamState, m.paint, m.width, &m.detail, m.events, m.gone, m.words, m.bindings(), m.keys}
}

// layOut makes the rows for a width. Of a conversation only what is new is laid out, and the words that stream in,
// which stand at the end until the transcript has them.
func (w rowWriter) layOut(width int) {
	d := w.d
	if d.hasMark() {
		width -= 2
	}
	// A comment that was added, or another width, makes all rows anew.
	isNew := d.width != width
	at, ok := d.marked()
	if isNew {
		d.rows, d.fixed, d.laidOut, d.width, d.widest, d.calls = nil, 0, 0, width, 0, nil
	}
	if d.key == pageEvents {
		w.layOutEvents()
		return
	}
	if d.row.member == nil {
		if isNew {
			w.layOutText()
		}
		// The mark stays on its line where rows have come or gone above.
		same := func(r textRow) bool { return r.at == at.at }
		if i := slices.IndexFunc(d.rows, same); isNew && ok && at.at.line > 0 && i >= 0 {
			d.top, d.mark = max(d.top+i-d.mark, 0), i
		}
		return
	}
	// The words that stream in are laid out anew each time: they are few, and any of them may have changed.
	d.rows = d.rows[:d.fixed]
	top, mark := d.top, d.mark
	for _, s := range d.said[d.laidOut:] {
		if at, ok := d.calls[s.Call]; ok && s.Kind == team.SaidResult {
			w.layOutAnswer(s, at)
		} else {
			w.layOutSaid(s)
		}
	}
	if isNew { // no row has moved: all of them were made
		d.top, d.mark = top, mark
	}
	d.laidOut = len(d.said)
	d.dropRows()
	d.fixed = len(d.rows)
	w.layOutLive()
}

// layOutLive adds what the member says right now, and what its tool has printed last.
func (w rowWriter) layOutLive() {
	live := w.words[w.d.row.member.Name]
	if text := strings.TrimSpace(live.text); text != "" && !w.d.hasSaid(text) {
		w.addMarkdown(text)
	}
	if n := len(w.d.said); n > 0 && w.d.said[n-1].Kind == team.SaidResult {
		return // the tool has ended, and its output is there
	}
	for _, line := range live.progress {
		w.add("  "+line, textRow{tone: view.Faint})
	}
}

// layOutText makes the rows of everything but a conversation.
func (w rowWriter) layOutText() {
	d := w.d
	switch r := d.row; {
	case d.key == pageCost:
		s := view.NewSpending(w.o.Run, w.o.Team, w.o.Spending, w.o.Tasks)
		s.Subject = w.subject
		w.add(s.Draw(view.Screen{Width: d.width}), textRow{})
		// How full a context is, is read beside the screen, and comes a moment later.
		if len(d.windows) > 0 {
			w.add("\n"+view.Windows(d.windows).Draw(view.Screen{Width: d.width}), textRow{})
		}
	case d.key == pageKeys:
		w.layOutKeys()
	case r.need != nil && r.need.Request != nil:
		w.layOutRequest()
	case d.key == pageMail, r.need != nil && r.need.Task == nil:
		w.layOutMail()
	case w.d.taskID() != 0:
		w.layOutTask(w.task(w.d.taskID()))
	}
}

// layOutRequest shows a question whole, then the task that it is about.
func (w rowWriter) layOutRequest() {
	r := w.d.question()
	if r.Status != muster.RequestPending {
		tone := view.Bad
		if r.Status == muster.RequestApproved {
			tone = view.Good
		}
		w.add(fmt.Sprintf("%s by %s at %s   %s", view.RequestWord(r.Status), r.ResolvedBy,
			view.Clock(muster.Time(r.ResolvedAt), w.o.Now),
			r.Response), textRow{tone: tone})
	}
	w.add(fmt.Sprintf("%s of %s, asked %s, request %s", view.Question(*r), r.From,
		view.Clock(muster.Time(r.CreatedAt), w.o.Now), r.ID), textRow{tone: view.Faint})
	w.add("\n"+cmp.Or(r.Plan, r.Reason), textRow{})
	if r.Change != "" {
		w.add("\n"+r.Change, textRow{})
	}
	w.add(" ", textRow{})
	if t := w.task(r.TaskID); t != nil {
		w.add("TASK", textRow{sgr: bold})
		w.layOutTask(t)
	}
}

// layOutTask shows a task: its record, what it waits for, and its diff where that was asked for.
func (w rowWriter) layOutTask(t *muster.Task) {
	if t == nil {
		w.add("the task is not on the board any more", textRow{tone: view.Faint})
		return
	}
	_, record, _ := strings.Cut(view.Task(view.Paint{}, *t, w.o.Now), "\n") // the title says its name
	w.add(record, textRow{})
	if len(t.BlockedBy) > 0 {
		w.add("\nwaits for", textRow{})
	}
	for _, id := range t.BlockedBy {
		if b := w.task(id); b != nil {
			w.add(fmt.Sprintf("  %s   %s %s", w.taskName(id), view.TaskWord(*b), b.Owner), textRow{})
		}
	}
	switch {
	case !w.d.hasDiff:
		w.add("\nd shows what it has changed", textRow{tone: view.Faint})
	case w.d.diff == nil:
		w.add("\nreading what it has changed ...", textRow{tone: view.Faint})
	case w.d.diff.Text == "":
		w.add("\nit has changed nothing yet", textRow{tone: view.Faint})
	default:
		w.layOutDiff(t)
	}
}

// layOutMail shows the mail of the user and the lead: what waits, and then what the lead has read.
func (w rowWriter) layOutMail() {
	// The mail comes sorted: each box has its title once.
	title := ""
	for _, x := range w.d.mail {
		t := "for " + string(x.box)
		if x.box == muster.User {
			t = "for you"
		}
		if !x.waits {
			t += ", read"
		}
		if t != title {
			w.add(t, textRow{sgr: bold})
			title = t
		}
		w.add(fmt.Sprintf("%s  %s", view.Clock(muster.Time(x.At), w.o.Now), x.From), textRow{who: string(x.From)})
		w.add(x.Content+"\n ", textRow{})
	}
	if len(w.d.mail) == 0 {
		w.add("there is no mail", textRow{tone: view.Faint})
	}
}

// dropRows drops the oldest rows where there are more than are kept. The reader stays at the same words.
func (d *detail) dropRows() {
	if over := len(d.rows) - maxRows; over > 0 {
		d.rows, d.top, d.mark = d.rows[over:], max(d.top-over, 0), max(d.mark-over, 0)
		for id := range d.calls {
			if d.calls[id] -= over; d.calls[id] < 0 {
				delete(d.calls, id) // its line has gone
			}
		}
	}
}

// layOutEvents shows what has happened, the newest at the end. Those that are laid out already stay: a busy team writes
// thousands a second.
func (w rowWriter) layOutEvents() {
	first := max(w.d.laidOut-w.gone, 0)
	w.d.laidOut = w.gone + len(w.events)
	defer w.d.dropRows()
	for _, e := range w.events[first:] {
		if !e.Show && !w.d.isWhole {
			continue
		}
		r := textRow{who: e.Who}
		switch e.Tone {
		case "good":
			r = textRow{tone: view.Good}
		case "bad":
			r = textRow{tone: view.Bad}
		}
		w.addHanging(fmt.Sprintf("%s  %-8s %-6s %s", muster.Time(e.At).Local().Format(time.TimeOnly), e.Who, e.Verb,
			e.Text), 10, r)
	}
}

// shortOutput is how many lines of a tool's output, and of what a member was told, are seen unless the user asks for
// all of it. The words between them are what tells how the member gets on.
const shortOutput = 8

// layOutSaid adds one thing of a conversation. The member's own words stand at the margin and whole. Its calls are one
// line each in its colour, and what it was told or answered is indented and shortened.
func (w rowWriter) layOutSaid(s team.Said) {
	words, r := strings.TrimRight(s.Text, "\n "), textRow{}
	switch s.Kind {
	case team.SaidByIt:
		w.addMarkdown(words)
		return
	case team.SaidCall:
		e, isEdit := code.EditOf(llm.Call{Name: s.Tool, Input: s.Input})
		if isEdit {
			words += "  " + e.Counts()
		}
		w.add("> "+s.Tool+" "+text.OneLine(words), textRow{who: string(w.d.row.member.Name)})
		if isEdit {
			limit := face.PreviewLines
			if w.d.isWhole {
				limit = 0
			}
			lines := face.EditLines(e, limit, "")
			look := view.NewDiffLook(w.paint, lines, w.screen)
			for i := range lines {
				r := w.diffRow(look, lines, i)
				r.before, r.at = "  "+r.before, place{}
				w.d.rows = append(w.d.rows, r)
			}
		}
		if w.d.calls == nil {
			w.d.calls = map[string]int{}
		}
		w.d.calls[s.Call] = len(w.d.rows)
		return
	case team.SaidThink: // one line, unless all is wanted
		if !w.d.isWhole {
			w.add("  thought (o shows all)", textRow{tone: view.Faint})
			return
		}
		r.tone = view.Faint
	case team.SaidToIt:
		w.add("\n"+view.Clock(muster.Time(s.At), w.o.Now)+"  told", textRow{tone: view.Faint})
	case team.SaidResult, team.SaidNote:
		r.tone = view.Faint
		if s.IsError {
			r.tone = view.Bad
		}
	}
	lines := strings.Split(words, "\n")
	more := len(lines) - shortOutput
	if w.d.isWhole || more <= 1 {
		more = 0
	}
	w.add("  "+strings.Join(lines[:len(lines)-more], "\n  "), r)
	if more > 0 {
		w.add(fmt.Sprintf("  ... %s more (o shows all)", text.Count(more, "line")), textRow{tone: view.Faint})
	}
}

// layOutAnswer adds a result below its call, which is before row at: calls that run side by side end in any order. What
// is seen does not move.
func (w rowWriter) layOutAnswer(s team.Said, at int) {
	d, rows := w.d, w.d.rows
	d.rows = nil
	w.layOutSaid(s)
	n := len(d.rows)
	d.rows = slices.Insert(rows, at, d.rows...)
	delete(d.calls, s.Call)
	for id, after := range d.calls {
		if after > at {
			d.calls[id] += n
		}
	}
	if at <= d.top {
		d.top += n
	}
	if at <= d.mark {
		d.mark += n
	}
}

// addMarkdown adds what a member says below a blank row, as Markdown. The marks of emphasis and of code stay, so that a
// search finds what was written.
func (w rowWriter) addMarkdown(text string) {
	w.d.rows = append(w.d.rows, textRow{})
	for _, line := range markdown.Marked(w.clean(text), max(w.d.width, 1), w.paint.IsOn()) {
		w.d.rows = append(w.d.rows, textRow{text: ansi.Strip(line), painted: line})
	}
}

// listMark is what an item of a list begins with.
var listMark = lazyregexp.New(`^([-*]|\d+[.)]) +`)

// add adds a text of any number of lines, in one colour. What is wrapped is indented as its line is.
func (w rowWriter) add(words string, like textRow) { w.addHanging(words, 0, like) }

// addHanging is add that indents what is wrapped by at least hang columns.
func (w rowWriter) addHanging(all string, hang int, like textRow) {
	width := max(w.d.width, 1)
	for line := range strings.SplitSeq(strings.TrimSuffix(w.clean(all), "\n"), "\n") {
		like.text = strings.TrimRight(line, " ")
		if len(line) <= width {
			w.d.rows = append(w.d.rows, like)
			continue
		}
		words := strings.TrimLeft(like.text, " ")
		own := len(like.text) - len(words)
		// At least half of the width stays for words. What stands before them is ASCII.
		indent := min(max(hang, own+len(listMark().FindString(words))), width/2)
		head := like.text[:indent]
		for _, part := range text.Wrap(like.text[indent:], width-indent) {
			like.text = head + part
			w.d.rows = append(w.d.rows, like)
			head = strings.Repeat(" ", indent)
		}
	}
}

// layOutKeys shows all keys.
func (w rowWriter) layOutKeys() {
	// While a text is typed, only the keys that fit are shown, and that none does is said.
	all := matchingKeys(w.bindings, w.keys)
	if len(all) == 0 {
		w.add(fmt.Sprintf("no key is %q or has to do with it", w.keys), textRow{tone: view.Faint})
	}
	for _, b := range all {
		w.addHanging(text.PadColumns(b.name, 13)+"  "+b.what, 15, textRow{})
	}
	w.add("\nThe wheel of the mouse scrolls, and a click selects.", textRow{})
}
