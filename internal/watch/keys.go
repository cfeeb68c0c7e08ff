package watch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/view"
)

// binding is what some keys do. The help line shows those with a short text that can be used right now.
//
// A key that cannot be used does nothing and is not in the help line: a line of keys that do nothing teaches people not
// to read it. Letters are those of the first word of what they do, and capitals are for the rarer form of the same.
type binding struct {
	// keys are the names that bubbletea gives them.
	keys []string
	// name is what people call the keys. The help line has the first of them only.
	name string
	// short is for the help line, in a word or two. Where it is "" the key is on the page of keys only.
	short string
	// what says what the keys do, for the page of keys.
	what string
	// when says whether they can be used now; nil: always.
	when func(m *model) bool
	// do changes the model. What takes time is in the command that it returns.
	do func(m *model) tea.Cmd
}

// isMoving reports whether the focus is on a list. There the arrows select, and on the right side they scroll.
func isMoving(m *model) bool { return m.focus != paneDetail }

// isReading reports whether the focus is on the right side.
func isReading(m *model) bool { return m.focus == paneDetail }

// hasRequest reports whether a question is shown that nobody has answered, as far as is known here.
func hasRequest(m *model) bool {
	r := m.detail.question()
	return r != nil && r.Status == muster.RequestPending
}

// bindings are all keys. The first that can be used is taken, so a key may mean one thing on the lists and another on
// the right side. The order is also that of the help line: what decides something comes first.
func bindings() []binding {
	return slices.Concat(answerKeys(), viewKeys(), moveKeys())
}

// answerKeys are the keys that write something to the team. Each acts on what the right side shows, which is what the
// user has read, and not on where a refresh may have put the cursor of a list.
func answerKeys() []binding {
	isMail := func(m *model) bool { return m.detail.key == "need mail" }
	return []binding{
		{[]string{"a"}, "a", "approve", "approve the plan or question that is shown", hasRequest,
			func(m *model) tea.Cmd { return m.answer(*m.detail.question(), true, "") }},
		{[]string{"A"}, "A", "with comment", "approve it with a comment", hasRequest,
			func(m *model) tea.Cmd { return m.askText("approve, comment: ", true) }},
		{[]string{"r"}, "r", "reject", "reject it with a reason", hasRequest,
			func(m *model) tea.Cmd { return m.askText("reject, why: ", false) }},
		{[]string{"x"}, "x", "read: remove", "remove the mail that is shown from your inbox", isMail,
			func(m *model) tea.Cmd { return m.loadMail(true) }},
		{[]string{"t"}, "t", "try again", "let a task that was given up be tried again",
			func(m *model) bool {
				t := m.task(m.detail.taskID())
				return t != nil && t.Status == muster.NeedsAttention
			},
			func(m *model) tea.Cmd {
				id := m.detail.taskID()
				return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
					return told(t.Retry(ctx, id), "task %d is pending again", id)
				})
			}},
		{[]string{"m"}, "m", "mail", "write mail to the member, or to the owner of the task, that is shown",
			func(m *model) bool { return m.hasTeam }, (*model).writeMail},
	}
}

// viewKeys are the keys that change what is shown. None of them changes the team, so all of them may be tried.
func viewKeys() []binding {
	// What is switched may change the rows on both sides.
	toggle := func(field func(m *model) *bool) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd {
			*field(m) = !*field(m)
			m.detail.width = 0
			m.setRows()
			return nil
		}
	}
	hasTask := func(m *model) bool { return m.detail.taskID() != 0 }
	isBoard := func(m *model) bool { return m.focus == paneBoard }
	isLong := func(m *model) bool { return m.detail.row.member != nil || m.detail.key == pageEvents }
	return []binding{
		{[]string{"d"}, "d", "diff", "show or hide what the task has changed", hasTask, func(m *model) tea.Cmd {
			m.detail.hasDiff = !m.detail.hasDiff
			m.detail.width = 0
			return m.load()
		}},
		{[]string{"o"}, "o", "all output", "show or hide long outputs, and the details of events", isLong,
			toggle(func(m *model) *bool { return &m.detail.isWhole })},
		{[]string{"/"}, "/", "filter", "filter the board by words, while you type", isMoving, (*model).askFilter},
		{[]string{"g"}, "g", "tree", "show the board as a tree of what waits for what, or as a list", isBoard,
			toggle(func(m *model) *bool { return &m.board.isTree })},
		{[]string{"space"}, "space", "", "list or fold the tasks that are finished", isMoving,
			toggle(func(m *model) *bool { return &m.board.hasFinished })},
		{[]string{"e"}, "e", "events", "show what has happened", nil,
			func(m *model) tea.Cmd { m.showPage(pageEvents); return nil }},
		{[]string{"c"}, "c", "cost", "show what was spent", nil,
			func(m *model) tea.Cmd { m.showPage(pageCost); return nil }},
		{[]string{"M"}, "M", "", "leave the mouse to the terminal, so that it selects text; again: back", nil,
			toggle(func(m *model) *bool { return &m.hasMouse })},
		{[]string{"?"}, "?", "keys", "show all keys", nil,
			func(m *model) tea.Cmd { m.showPage(pageKeys); return nil }},
		{[]string{"q", "ctrl+c"}, "q", "quit", "quit; the team goes on", nil, func(*model) tea.Cmd { return tea.Quit }},
		{[]string{"ctrl+z"}, "Ctrl-Z", "", "suspend, as in a shell", nil, func(*model) tea.Cmd { return tea.Suspend }},
	}
}

// moveKeys are the keys that move. They are those of less and vi, beside the ones that are printed on the keys.
func moveKeys() []binding {
	move := func(n int) func(*model) tea.Cmd { return func(m *model) tea.Cmd { return m.move(n) } }
	page := func(sign int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { return m.move(sign * max(m.height-4, 1)) }
	}
	const all = 1 << 30 // more rows than there are
	return []binding{
		{[]string{"down", "j"}, "Down, j", "", "go down", nil, move(1)},
		{[]string{"up", "k"}, "Up, k", "", "go up; in a conversation this stops following", nil, move(-1)},
		{[]string{"pgdown", "ctrl+d", "space"}, "PgDn, Ctrl-D", "", "go down a page", nil, page(1)},
		{[]string{"pgup", "ctrl+u", "b"}, "PgUp, Ctrl-U", "", "go up a page", nil, page(-1)},
		{[]string{"home"}, "Home", "", "go to the beginning", nil, move(-all)},
		{[]string{"end", "G"}, "End, G", "", "go to the end, and follow", nil, move(all)},
		{[]string{"enter", "right", "l"}, "Enter, l", "read", "go to the right side, to read what is selected",
			isMoving,
			func(m *model) tea.Cmd { m.focus = paneDetail; return m.show() }},
		{[]string{"esc", "left", "h"}, "Esc, h", "back", "go back to the lists", isReading,
			func(m *model) tea.Cmd { m.focus = m.last; return m.show() }},
		{[]string{"esc"}, "Esc", "", "clear the filter", func(m *model) bool { return m.board.filter != "" },
			func(m *model) tea.Cmd { m.board.filter = ""; m.setRows(); return nil }},
		{[]string{"tab"}, "Tab", "", "go to the next pane", nil, func(m *model) tea.Cmd { return m.next(1) }},
		{[]string{"shift+tab"}, "Shift-Tab", "", "go to the pane before", nil,
			func(m *model) tea.Cmd { return m.next(-1) }},
	}
}

// press does what a key says. While a line is typed, all keys are its own, and the question that it answers stays on
// the right side.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	if i := m.input; i != nil {
		if i.press(k) {
			return nil
		}
		m.input = nil
		if k.String() == "enter" {
			return i.done(string(i.text))
		}
		if i.cancelled != nil {
			i.cancelled()
		}
		return nil
	}
	m.message = toldMsg{}
	for _, b := range bindings() {
		if slices.Contains(b.keys, k.String()) && (b.when == nil || b.when(m)) {
			return b.do(m)
		}
	}
	return nil
}

// move moves the cursor, or scrolls the right side. At the end of a list the cursor goes on to the next one, so that
// the arrows alone reach everything on the left.
func (m *model) move(n int) tea.Cmd {
	if m.focus == paneDetail {
		m.scroll(n)
		return nil
	}
	if !m.lists[m.focus].move(n) && (n == 1 || n == -1) {
		if to := m.focus + n; to >= 0 && to < paneDetail && len(m.lists[to].rows) > 0 {
			m.focus, m.last = to, to
		}
	}
	return m.show()
}

// scroll scrolls the right side. Going up stops following, and reaching the end begins it again. Only what grows at its
// end can be followed.
func (m *model) scroll(n int) {
	d := &m.detail
	last := max(len(d.rows)-m.layout().detailRows(), 0)
	if d.follows {
		d.top = last
	}
	d.top = max(min(d.top+n, last), 0)
	d.follows = (d.row.member != nil || d.key == pageEvents) && d.top == last
}

// next gives the focus to another pane that has something. The right side always has, so the search comes to an end.
func (m *model) next(n int) tea.Cmd {
	for range paneDetail {
		m.focus = (m.focus + n + paneDetail + 1) % (paneDetail + 1)
		if m.focus == paneDetail || len(m.lists[m.focus].rows) > 0 {
			break
		}
	}
	if m.focus != paneDetail {
		m.last = m.focus
	}
	return m.show()
}

// askText asks for the words of an answer. The question stays where it can be read. The request is the one that was
// shown when the key was pressed, whatever a refresh brings while the user types. A rejection without a reason is not
// sent: the member could only guess what to change.
func (m *model) askText(prompt string, approve bool) tea.Cmd {
	r := *m.detail.question()
	m.input = &input{prompt: prompt, done: func(text string) tea.Cmd {
		if !approve && strings.TrimSpace(text) == "" {
			from := view.OneLine(string(r.From))
			m.message = toldMsg{text: "not rejected: say why, so that " + from + " can do better", bad: true}
			return nil
		}
		return m.answer(r, approve, text)
	}}
	return nil
}

// askFilter asks for the filter of the board. The board is filtered while it is typed, and Esc clears it. Enter keeps
// it, also when the board becomes a tree, and the title of the board says what is left out.
func (m *model) askFilter() tea.Cmd {
	m.focus, m.last = paneBoard, paneBoard
	set := func(text string) {
		m.board.filter = strings.TrimSpace(text)
		m.setRows()
		m.focus, m.last = paneBoard, paneBoard
	}
	m.input = &input{prompt: "filter: ", changed: set, cancelled: func() { set("") },
		done: func(string) tea.Cmd { return m.show() }}
	m.input.insert(m.board.filter)
	return m.show()
}

// writeMail asks for a mail to the member that is shown, or to whose work is shown; otherwise to the lead.
func (m *model) writeMail() tea.Cmd {
	to := muster.Lead // who knows whom it concerns
	if r := m.detail.question(); r != nil {
		to = r.From
	} else if t := m.task(m.detail.taskID()); t != nil {
		to = cmp.Or(t.Owner, to)
	} else if x := m.detail.row.member; x != nil {
		to = x.Name
	}
	name := view.OneLine(string(to))
	m.input = &input{prompt: fmt.Sprintf("mail to %s: ", name), done: func(text string) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return m.ask(func(ctx context.Context, t teamAPI) tea.Msg {
			return told(t.Send(ctx, to, text), "mail sent to %s", name)
		})
	}}
	return nil
}

// help is the line of the keys that can be used now. Where not all fit, the first ones are shown, and the key that
// shows them all.
func (m *model) help(width int) string {
	line := ""
	for _, b := range bindings() {
		if b.short == "" || b.when != nil && !b.when(m) {
			continue
		}
		part := b.name
		if len(b.keys) > 1 {
			part, _, _ = strings.Cut(part, ",")
		}
		if part += " " + b.short; line != "" {
			part = "  " + part
		}
		if len(line)+len(part) > width-len("  ? keys") && b.name != "?" {
			continue
		}
		line += part
	}
	return line
}
