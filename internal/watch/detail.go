package watch

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/difflines"
	"muster/internal/view"
	"muster/team"
)

// The pages of the right side that belong to no row.
const (
	pageEvents = "events"
	pageCost   = "cost"
	pageKeys   = "keys"
	pageMail   = "mail"
)

// diffDelay is how long a task must stay selected before its diff is read, so that moving through the board starts no
// git for each task.
const diffDelay = 150 * time.Millisecond

// readInterval is how long a diff that is shown is good for, while the work on it goes on, and how full contexts are.
const readInterval = 3 * time.Second

// maxRows is how many rows of a conversation are kept; the older ones are in the transcript.
const maxRows = 20_000

// detail is what the right side shows. It is replaced as a whole when something else is selected.
type detail struct {
	arrived time.Time // when it was shown without a key of the user's
	key     string    // the row or the page that it belongs to
	row     row       // as it was when it was selected: a request that was answered stays readable

	// These were asked for beside the overview, and are empty until the answers have come.
	said    []team.Said // of a member
	pos     muster.Pos  // the place in its transcript
	todo    []team.Step // the list of its own steps, as it was last
	isAsked bool        // for more of it
	isStale bool        // more has happened since it was asked for
	request *muster.Request
	mail    []letter
	windows []view.Window // of the members' models
	diff    *team.Diff    // nil: it was not read yet
	lines   []difflines.Line
	readAt  time.Time // when the diff, or the windows, were read last
	problem string

	wishes

	rows []textRow
	// fixed is how many of the rows stay: those after them are of words that stream in.
	fixed int
	// laidOut is how many of said are in rows, and width is the width that they were made for. A width of 0 says that
	// all of them are to be made again.
	laidOut, width int
	// calls are those of said that are laid out and have no result yet: the row after each, by its id.
	calls   map[string]int
	top     int // the first row that is seen
	follows bool

	hits hits
	// mark is the row that the keys of a reader are about, where there is one: see hasMark.
	mark int
	// left is how many columns of the lines of a diff have gone out at the left, and widest how many the longest has.
	left, widest int
}

// wishes are how the user wants to see things. They stay when something else is shown.
type wishes struct {
	hasDiff bool // the diff is shown
	isSplit bool // ... with both sides beside each other
	isWhole bool // the output of tools, and the details of events, are shown whole
}

// textRow is a line of text that fits, in one colour, or in several. The first that is set counts: painted, who, sgr,
// tone.
type textRow struct {
	text string
	tone view.Tone
	who  string
	sgr  string // a colour of its own
	// painted is text in several colours, if it has some.
	painted string

	// These are of a diff. A row that is cut scrolls to the side, but for what stands before it. other is what stands
	// beside it.
	at     place
	before string
	isCut  bool
	other  *textRow
}

// loadDiffMsg asks for a diff, if what it names is still selected when diffDelay is over.
type loadDiffMsg string

// load asks for what the right side shows and the overview does not have. Of a conversation it asks for what follows
// the last position, and for one answer at a time, so that nothing is shown twice.
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
	case isMail(m):
		return loadMail(m, false)
	case d.key == pageCost && m.o.Now.Sub(d.readAt) >= readInterval:
		return loadWindows(m)
	case d.hasDiff && m.detail.taskID() != 0:
		return tea.Tick(diffDelay, func(time.Time) tea.Msg { return loadDiffMsg(key) })
	}
	return nil
}

// loadMail asks for the mail of the user and the lead. If take is true, the user's is removed from the inbox. Mail that
// is only looked at stays there, and is counted in what waits.
func loadMail(m *model, take bool) tea.Cmd {
	// The answer names the page: the user may have gone on when it comes.
	key := m.detail.key
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		msg := textMsg{key: key}
		if take {
			var taken []muster.Message
			taken, msg.err = t.Take(ctx)
			msg.taken = len(taken)
			for _, x := range taken { // it is still to be read
				msg.mail = append(msg.mail, letter{x, muster.User, false})
			}
			return msg
		}
		msg.mail, msg.err = t.Mail(ctx)
		return msg
	})
}

// loadWindows asks how full the contexts of the members are.
func loadWindows(m *model) tea.Cmd {
	m.detail.readAt = m.o.Now
	members := m.o.Members
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		msg := textMsg{key: pageCost}
		for _, x := range members {
			w, err := t.Window(ctx, x.Name)
			if err != nil { // of one member; the others have theirs
				continue
			}
			msg.windows = append(msg.windows, w)
		}
		return msg
	})
}

// loadDiff asks for the diff of what is still selected. A task that nobody has begun has none, which is no error here.
func loadDiff(m *model, key string) tea.Cmd {
	id := m.detail.taskID()
	if key != m.detail.key || id == 0 {
		return nil
	}
	m.detail.readAt = m.o.Now
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		diff, err := t.Diff(ctx, id)
		if errors.Is(err, muster.ErrNotFound) { // nobody has begun it
			diff, err = team.Diff{}, nil
		}
		return textMsg{key: key, diff: &diff, err: err}
	})
}

// refresh brings the right side up to date with a new overview. The diff of a task that is under way is read again
// after a while only: git would otherwise run several times a second.
func (m *model) refresh() tea.Cmd {
	d := &m.detail
	if d.row.member == nil && d.key != pageEvents { // of what grows at its end the rows stay
		d.width = 0
	}
	for _, l := range m.lists {
		for _, r := range l.rows {
			if r.key == d.key {
				d.row = r
				return m.reload()
			}
		}
	}
	r := d.question()
	if r == nil || r.Status != muster.RequestPending {
		return nil
	}
	// It waits no more. It stays readable, with how it was decided.
	key, id := d.key, r.ID
	return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
		r, err := t.Request(ctx, id)
		return textMsg{key: key, request: &r, err: err}
	})
}

// reload asks again for what may have changed of what is shown. A landed diff changes no more.
func (m *model) reload() tea.Cmd {
	d, t := &m.detail, m.task(m.detail.taskID())
	switch {
	case d.row.member != nil:
		d.isStale = d.isAsked // an answer that is on its way may not have the newest
		return m.load()
	case t == nil:
		return m.load()
	case d.hasDiff && t.Status != muster.Completed && m.o.Now.Sub(d.readAt) >= readInterval:
		return m.load()
	}
	return nil
}

// addSaid adds what a member has said meanwhile. Whether it is seen at once depends on whether the reader follows: a
// reader who has gone up is never moved.
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
		// Where nothing was said of the list, it is as it was.
		if todo := todoIn(msg.said); todo != nil {
			d.todo = todo
		}
	}
}

// hasSaid reports whether the transcript has what streamed in. Of a reply that streams, the transcript has nothing yet,
// and then all of it at once. Spaces make no difference: a reply has fewer of them.
func (d *detail) hasSaid(text string) bool {
	fields := func(s string) string { return strings.Join(strings.Fields(s), "") }
	for _, s := range d.said[max(len(d.said)-20, 0):] {
		if s.Kind == team.SaidByIt && strings.Contains(fields(s.Text), fields(text)) {
			return true
		}
	}
	return false
}

// addText adds what was asked for. An answer about something that is not shown any more is dropped.
func (d *detail) addText(msg textMsg) {
	if msg.key != d.key {
		return
	}
	if d.problem = ""; msg.err != nil {
		d.problem = told(msg.err, "").text
	}
	d.request = cmp.Or(msg.request, d.request)
	if msg.diff != nil {
		d.diff, d.lines = msg.diff, msg.diff.Lines()
		difflines.Mark(d.lines)
	}
	d.mail, d.windows = msg.mail, msg.windows
	d.width = 0
}

// taskID is the task that the right side is about, or 0.
func (d *detail) taskID() muster.TaskID {
	switch r := d.row; {
	case r.task != nil:
		return r.task.ID
	case r.need != nil && r.need.Task != nil:
		return r.need.Task.ID
	case r.need != nil && r.need.Request != nil:
		return r.need.Request.TaskID
	}
	return 0
}

// question is the request that the right side shows, with its answer as far as it is known here, or nil.
func (d *detail) question() *muster.Request {
	if n := d.row.need; n != nil && n.Request != nil {
		return cmp.Or(d.request, n.Request)
	}
	return nil
}

// scroll moves the mark, or scrolls where there is none. Going up stops following, and reaching the end begins it
// again. Only what grows at its end can be followed.
func (d *detail) scroll(n, height int) {
	if d.isDiff() {
		d.mark = max(min(d.mark+n, len(d.rows)-1), 0)
		d.reveal(height)
		return
	}
	d.scrollPast(n, height)
}

// scrollPast scrolls, and leaves the mark where it is.
func (d *detail) scrollPast(n, height int) {
	last := max(len(d.rows)-height, 0)
	if d.follows {
		d.top = last
	}
	d.top = max(min(d.top+n, last), 0)
	d.follows = (d.row.member != nil || d.key == pageEvents) && d.top == last
}
