package watch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// The pages of the right side that belong to no row.
const (
	pageEvents = "events"
	pageCost   = "cost"
	pageKeys   = "keys"
)

// diffDelay is how long a task must stay selected before its diff is read, so that moving through the board starts no
// git for each task.
const diffDelay = 150 * time.Millisecond

// maxRows is how many rows of a conversation are kept; the older ones are in the transcript.
const maxRows = 20_000

// detail is what the right side shows.
type detail struct {
	key string // the row or the page that it belongs to
	row row    // as it was when it was selected: a request that was answered stays readable

	said    []team.Said // of a member
	pos     muster.Pos  // the place in its transcript
	isAsked bool        // for more of it
	request *muster.Request
	mail    []muster.Message
	diff    *string // nil: it was not read yet
	problem string

	hasDiff bool // the diff is shown
	isWhole bool // the output of tools, and the details of events, are shown whole

	rows []textRow
	// laidOut is how many of said are in rows, and width for which width. A width of 0 lays out everything again.
	laidOut, width int
	top            int // the first row that is seen
	follows        bool
}

// textRow is a line of text that fits, in one colour.
type textRow struct {
	text string
	tone view.Tone
	who  string
	sgr  string // a colour of its own, of a diff
}

// loadDiffMsg asks for a diff, if what it names is still selected.
type loadDiffMsg string

// load asks for what the right side shows and the overview does not have.
func (m *model) load() tea.Cmd {
	d := &m.detail
	key, after := d.key, d.pos
	switch {
	case d.row.member != nil && !d.isAsked:
		d.isAsked = true
		name := d.row.member.Name
		return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
			said, err := t.Said(ctx, name, after)
			return saidMsg{key, after, said, err}
		})
	case d.row.need != nil && d.row.need.Name == "mail":
		return m.loadMail(false)
	case d.hasDiff && m.detailTask() != 0:
		return tea.Tick(diffDelay, func(time.Time) tea.Msg { return loadDiffMsg(key) })
	}
	return nil
}

// loadMail asks for the mail of the user, and takes it from the inbox if take is true.
func (m *model) loadMail(take bool) tea.Cmd {
	key := m.detail.key
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		all, err := t.Mail(ctx, take)
		return textMsg{key: key, mail: all, err: err}
	})
}

// loadDiff asks for the diff of what is still selected.
func (m *model) loadDiff(key string) tea.Cmd {
	id := m.detailTask()
	if key != m.detail.key || id == 0 {
		return nil
	}
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		diff, err := t.Diff(ctx, id)
		if errors.Is(err, muster.ErrNotFound) { // nobody has begun it
			diff, err = "", nil
		}
		return textMsg{key: key, diff: &diff, err: err}
	})
}

// refresh brings the right side up to date with a new overview.
func (m *model) refresh() tea.Cmd {
	d := &m.detail
	switch {
	case d.row.member != nil:
		return m.load()
	case d.row.need != nil && d.row.need.Request != nil && d.request == nil:
		for _, r := range m.o.Requests {
			if r.ID == d.row.need.Request.ID {
				return nil
			}
		}
		// It waits no more. It stays readable, with how it was decided.
		key, id := d.key, d.row.need.Request.ID
		return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
			r, err := t.Request(ctx, id)
			return textMsg{key: key, request: &r, err: err}
		})
	}
	before := m.task(m.detailTask())
	for _, l := range m.lists {
		for _, r := range l.rows {
			if r.key == d.key {
				d.row = r
			}
		}
	}
	d.width = 0
	if now := m.task(m.detailTask()); before != nil && now != nil && before.UpdatedAt != now.UpdatedAt {
		return m.load()
	}
	return nil
}

// detailTask is the task that the right side is about, or 0.
func (m *model) detailTask() muster.TaskID {
	switch r := m.detail.row; {
	case r.task != nil:
		return r.task.ID
	case r.need != nil && r.need.Task != nil:
		return r.need.Task.ID
	case r.need != nil && r.need.Request != nil:
		return r.need.Request.TaskID
	}
	return 0
}

// task returns a task of the board, or nil.
func (m *model) task(id muster.TaskID) *muster.Task {
	for i := range m.o.Tasks {
		if m.o.Tasks[i].ID == id && id != 0 {
			return &m.o.Tasks[i]
		}
	}
	return nil
}

// addSaid adds what a member has said meanwhile.
func (d *detail) addSaid(msg saidMsg) {
	if msg.key != d.key || msg.after != d.pos { // of another member, or known already
		return
	}
	d.isAsked = false
	if d.problem = ""; msg.err != nil {
		d.problem = told(msg.err, "").text
	}
	if len(msg.said) > 0 {
		d.said = append(d.said, msg.said...)
		d.pos = msg.said[len(msg.said)-1].Pos
	}
}

// addText adds what was asked for.
func (d *detail) addText(msg textMsg) {
	if msg.key != d.key {
		return
	}
	if d.problem = ""; msg.err != nil {
		d.problem = told(msg.err, "").text
	}
	d.request, d.mail, d.diff = cmp.Or(msg.request, d.request), msg.mail, cmp.Or(msg.diff, d.diff)
	d.width = 0
}

// layOut makes the rows for a width. Of a conversation only what is new is laid out.
func (m *model) layOut(width int) {
	d := &m.detail
	if d.width != width {
		d.rows, d.laidOut, d.width = nil, 0, width
		if d.row.member == nil {
			m.layOutText()
		}
	}
	if d.row.member != nil {
		for _, s := range d.said[d.laidOut:] {
			m.layOutSaid(s)
		}
		d.laidOut = len(d.said)
		if over := len(d.rows) - maxRows; over > 0 {
			d.rows, d.top = d.rows[over:], max(d.top-over, 0)
		}
	}
}

// layOutText makes the rows of everything but a conversation.
func (m *model) layOutText() {
	d := &m.detail
	switch r := d.row; {
	case d.key == pageEvents:
		m.layOutEvents()
	case d.key == pageCost:
		s := view.NewSpending(m.o.Run, m.o.Team, m.o.Spending, m.o.Tasks)
		s.Subject = m.subject
		m.add(s.Draw(view.Screen{Width: d.width}), textRow{})
	case d.key == pageKeys:
		m.layOutKeys()
	case r.need != nil && r.need.Request != nil:
		m.layOutRequest()
	case r.need != nil && r.need.Task == nil:
		for _, x := range d.mail {
			m.add(fmt.Sprintf("%s  %s", view.Clock(muster.Time(x.At), m.o.Now), x.From), textRow{who: string(x.From)})
			m.add(x.Content+"\n ", textRow{})
		}
	case m.detailTask() != 0:
		m.layOutTask(m.task(m.detailTask()))
	}
}

// layOutRequest shows a question whole, then the task that it is about.
func (m *model) layOutRequest() {
	r := m.shownRequest()
	if r.Status != muster.RequestPending {
		tone := view.Bad
		if r.Status == muster.RequestApproved {
			tone = view.Good
		}
		m.add(fmt.Sprintf("%s by %s at %s   %s", r.Status, r.ResolvedBy, view.Clock(muster.Time(r.ResolvedAt), m.o.Now),
			r.Response), textRow{tone: tone})
	}
	m.add(fmt.Sprintf("%s of %s, asked %s, request %s", view.Question(*r), r.From,
		view.Clock(muster.Time(r.CreatedAt), m.o.Now), r.ID), textRow{tone: view.Faint})
	m.add("\n"+cmp.Or(r.Plan, r.Reason)+"\n ", textRow{})
	if t := m.task(r.TaskID); t != nil {
		m.add("TASK", textRow{sgr: bold})
		m.layOutTask(t)
	}
}

// layOutTask shows a task: its record, what it waits for, and its diff where that was asked for.
func (m *model) layOutTask(t *muster.Task) {
	if t == nil {
		m.add("the task is not on the board any more", textRow{tone: view.Faint})
		return
	}
	_, record, _ := strings.Cut(view.Task(false, *t, m.o.Now), "\n") // the title says its name
	m.add(record, textRow{})
	if len(t.BlockedBy) > 0 {
		m.add("\nwaits for", textRow{})
	}
	for _, id := range t.BlockedBy {
		if b := m.task(id); b != nil {
			m.add(fmt.Sprintf("  %s   %s %s", m.taskName(id), taskState(b), b.Owner), textRow{})
		}
	}
	switch {
	case !m.detail.hasDiff:
		m.add("\nd shows what it has changed", textRow{tone: view.Faint})
	case m.detail.diff == nil:
		m.add("\nreading what it has changed ...", textRow{tone: view.Faint})
	case *m.detail.diff == "":
		m.add("\nit has changed nothing yet", textRow{tone: view.Faint})
	default:
		m.add("", textRow{})
		for line := range strings.Lines(view.Diff(true, m.clean(*m.detail.diff))) {
			// The colour of a line is that of each of its rows.
			sgr, rest, isPainted := strings.Cut(strings.TrimPrefix(line, "\x1b["), "m")
			if !isPainted || !strings.HasPrefix(line, "\x1b[") {
				sgr, rest = "", line
			}
			m.add(ansi.Strip(rest), textRow{sgr: sgr})
		}
	}
}

// layOutEvents shows what has happened, the newest at the end.
func (m *model) layOutEvents() {
	for _, e := range m.events {
		if !e.Show && !m.detail.isWhole {
			continue
		}
		r := textRow{who: e.Who}
		switch e.Tone {
		case "good":
			r = textRow{tone: view.Good}
		case "bad":
			r = textRow{tone: view.Bad}
		}
		m.addHanging(fmt.Sprintf("%s  %-8s %-6s %s", muster.Time(e.At).Local().Format(time.TimeOnly), e.Who, e.Verb,
			e.Text), 10, r)
	}
}

// shortOutput is how many lines of a tool's output, and of what a member was told, are seen unless all of it is.
const shortOutput = 8

// layOutSaid adds one thing of a conversation.
func (m *model) layOutSaid(s team.Said) {
	text, r := strings.TrimRight(s.Text, "\n "), textRow{}
	switch s.Kind {
	case team.SaidByIt:
		m.add("\n"+text, textRow{})
		return
	case team.SaidCall:
		m.add("> "+s.Tool+" "+view.OneLine(text), textRow{who: string(m.detail.row.member.Name)})
		return
	case team.SaidToIt:
		m.add("\n"+view.Clock(muster.Time(s.At), m.o.Now)+"  told", textRow{tone: view.Faint})
	case team.SaidResult, team.SaidNote:
		r.tone = view.Faint
		if s.IsError {
			r.tone = view.Bad
		}
	}
	lines := strings.Split(text, "\n")
	more := len(lines) - shortOutput
	if m.detail.isWhole || more <= 1 {
		more = 0
	}
	m.add("  "+strings.Join(lines[:len(lines)-more], "\n  "), r)
	if more > 0 {
		m.add(fmt.Sprintf("  ... %s more (o shows all)", view.Count(more, "line")), textRow{tone: view.Faint})
	}
}

// listMark is what an item of a list begins with.
var listMark = regexp.MustCompile(`^([-*]|\d+[.)]) +`)

// add adds a text of any number of lines, in one colour. What is wrapped is indented as its line is.
func (m *model) add(text string, like textRow) { m.addHanging(text, 0, like) }

// addHanging is add that indents what is wrapped by at least hang columns.
func (m *model) addHanging(text string, hang int, like textRow) {
	width := max(m.detail.width, 1)
	for line := range strings.SplitSeq(strings.TrimSuffix(m.clean(text), "\n"), "\n") {
		like.text = strings.TrimRight(line, " ")
		if len(line) <= width {
			m.detail.rows = append(m.detail.rows, like)
			continue
		}
		words := strings.TrimLeft(like.text, " ")
		own := len(like.text) - len(words)
		// At least half of the width stays for words. What stands before them is ASCII.
		indent := min(max(hang, own+len(listMark.FindString(words))), width/2)
		head := like.text[:indent]
		for part := range strings.SplitSeq(ansi.WrapWc(like.text[indent:], width-indent, ""), "\n") {
			like.text = head + strings.TrimLeft(part, " ")
			m.detail.rows = append(m.detail.rows, like)
			head = strings.Repeat(" ", indent)
		}
	}
}
