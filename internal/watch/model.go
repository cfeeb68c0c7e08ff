package watch

import (
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/face"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// The panes: the lists on the left from top to bottom, then the right side. The order is that in which Tab goes through
// them, and in which the cursor goes from the end of one list to the beginning of the next.
const (
	paneNeeds = iota
	paneMembers
	paneBoard
	paneDetail
)

// model is all that is on the screen. bubbletea calls its methods from one goroutine, so nothing here is locked. The
// feed and the commands reach it by messages only.
type model struct {
	teamState

	paint view.Paint
	// ask returns a command that asks the team something, beside the screen.
	ask   func(func(context.Context, teamAPI) tea.Msg) tea.Cmd
	first tea.Cmd // of what was shown before the program began; nil: nothing was

	width, height int
	events        []face.Event // the newest ones, at most keptEvents
	gone          int          // how many there were before those
	words         map[muster.Name]words
	problem       string // why the team cannot be read

	lists [paneDetail]list
	goTo  *list // the switcher; nil: it is closed
	focus int   // the pane that keys move in
	last  int   // the list that had the focus last: where Esc goes back to, and what the right side belongs to
	board boardOptions

	detail  detail
	input   *input       // nil: nothing is being typed
	cursor  tea.Position // of what is typed on the right side
	keys    string       // the filter of the page of keys
	message toldMsg
	// canStart says that teams can be started here, and isBusy that one is being started, stopped or taken from.
	canStart, isBusy bool
	landed           int           // how many tasks had landed when untaken was asked for
	untaken          *team.Untaken // nil: it is not known
	hasMouse         bool          // false: the terminal has the mouse, and selects text with it
	hasChosen        bool          // the user has pressed a key or the mouse
	answered         string        // the key of the need that the user has answered last
	goal             string        // of a run that could not begin, which is offered again
}

// newModel returns a screen without a team. Its size is that of most terminals until bubbletea says the true one.
func newModel(p view.Paint, now time.Time) *model {
	m := &model{paint: p, focus: paneMembers, last: paneMembers, hasMouse: true, width: 80, height: 24}
	m.o, m.subject = face.Empty(), func(muster.TaskID) string { return "" }
	m.hide = func(s string) string { return s }
	m.o.Now = now
	return m
}

// Init asks for what the first frame shows. The feed sends the rest.
func (m *model) Init() tea.Cmd { return tea.Batch(m.first, tea.RequestBackgroundColor) }

// Update applies one message.
func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.BackgroundColorMsg:
		m.paint.OnLight(!msg.IsDark())
	case tea.WindowSizeMsg:
		m.width, m.height = max(msg.Width, 10), max(msg.Height, 4)
	case changedMsg:
		return m, m.apply(msg)
	// Rows of events that go are counted, so that those which stay need not be laid out again.
	case eventsMsg:
		m.events = append(m.events, msg...)
		over := max(len(m.events)-keptEvents, 0)
		m.events, m.gone = m.events[over:], m.gone+over
	case tickMsg:
		return m, m.tick(time.Time(msg))
	case toldMsg:
		m.message = msg
	case teamMsg:
		if m.isBusy, m.message = false, toldMsg(msg); !msg.bad {
			m.goal = ""
		}
		return m, readUntaken(m, true)
	case untakenMsg:
		m.untaken = msg
	case saidMsg:
		if m.detail.addSaid(msg); m.detail.isStale {
			m.detail.isStale = false
			return m, m.load()
		}
	case wordsMsg:
		m.words = msg
		if m.detail.row.member != nil {
			return m, m.reload()
		}
	case textMsg:
		if m.detail.addText(msg); msg.taken > 0 {
			m.message = told(msg.err, "%s removed from your inbox", text.Count(msg.taken, "mail"))
		}
	case commentMsg:
		return m, m.addComment(msg)
	case loadDiffMsg:
		return m, loadDiff(m, string(msg))
	case tea.PasteMsg:
		if m.input != nil && m.input.key == "" {
			m.input.insert(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.MouseClickMsg:
		return m, m.click(msg.X, msg.Y)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg.X, msg.Y, msg.Button == tea.MouseWheelUp)
	}
	return m, nil
}

// tick lets ages grow while nothing happens.
func (m *model) tick(now time.Time) tea.Cmd {
	if !m.hasTeam {
		return nil
	}
	// The run's time grows only while a process works on it.
	if m.o.Alive && m.o.Run.EndedAt == 0 {
		m.o.Lived += now.Sub(m.o.Now)
	}
	m.o.Now = now
	if m.detail.row.member != nil { // what was said after the last event
		return m.reload()
	}
	return nil
}

// apply takes over how the team stands now. What the user looks at, and where, stays. After an error the last overview
// that could be read stays too, below a line that says so.
func (m *model) apply(msg changedMsg) tea.Cmd {
	if m.problem = ""; msg.err != nil {
		m.problem = told(msg.err, "").text
		return nil
	}
	isFirst, hadNeeds := !m.hasTeam, len(m.lists[paneNeeds].rows) > 0
	m.o, m.hasTeam, m.subject = msg.overview, true, msg.overview.Subjects()
	_, m.isLeft = m.o.Run.Left(m.o.Tasks)
	m.setRows()
	untaken := readUntaken(m, false)
	hasNeeds := len(m.lists[paneNeeds].rows) > 0
	switch {
	case hasNeeds && (isFirst || !hadNeeds && !m.hasChosen):
		// The screen opens on what waits for the user, and goes there while the user has chosen nothing else.
		m.focus, m.last = paneNeeds, paneNeeds
	case !isFirst && m.answered != "" && m.detail.key == m.answered && !m.lists[paneNeeds].has(m.answered):
		// What was answered gives way to what the cursor is on now.
		if m.answered = ""; !hasNeeds {
			m.last = paneMembers
		}
		m.focus = m.last
	case !isFirst:
		return tea.Batch(untaken, m.refresh())
	}
	shown := m.show()
	if !isFirst {
		m.detail.arrived = time.Now()
	}
	return tea.Batch(untaken, shown)
}

// setRows fills the lists from the overview. A list that has lost its last row while it had the focus gives it to the
// members, of which there always are some.
func (m *model) setRows() {
	var needs, members []row
	for _, n := range m.o.Needs() {
		r := row{key: "need " + n.Name, need: &n}
		switch i := slices.IndexFunc(m.o.Members, func(x view.Member) bool { return x.Name == n.Member }); {
		case n.Name == view.NeedBudget:
			r.key = pageCost
		case i >= 0:
			r.key, r.member = memberKey(n.Member), &m.o.Members[i]
		}
		needs = append(needs, r)
	}
	for i := range m.o.Members {
		members = append(members, row{key: memberKey(m.o.Members[i].Name), member: &m.o.Members[i]})
	}
	m.lists[paneNeeds].set(needs)
	m.lists[paneMembers].set(members)
	m.lists[paneBoard].set(m.board.rows(m.o.Tasks, m.lists[paneBoard].filter))
	m.lists[paneBoard].all = len(m.o.Tasks)
	if m.goTo != nil {
		m.goTo.set(m.destinations())
	}
	if m.focus != paneDetail && m.lists[m.focus].all == 0 {
		m.focus = paneMembers
	}
}

// show shows what is selected on the right side. Only the user's moves call it, never a refresh. What is shown already
// stays where it was scrolled to.
func (m *model) show() tea.Cmd {
	r, ok := m.lists[m.last].selected()
	if !ok || r.key == m.detail.key {
		return nil
	}
	m.detail = detail{key: r.key, row: r, wishes: m.detail.wishes, follows: r.member != nil}
	return m.load()
}

// showPage shows one of the pages that belong to no row. The focus goes with it, so that the arrows scroll it, and Esc
// comes back to the row that was shown before.
func (m *model) showPage(key string) tea.Cmd {
	m.detail = detail{key: key, wishes: m.detail.wishes, follows: key == pageEvents}
	m.focus = paneDetail
	return m.load()
}
