package watch

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/terminal"
)

// binding is what some keys do. The help line shows those with a short text that can be used right now.
//
// A key that cannot be used does nothing and is not in the help line: a line of keys that do nothing teaches people not
// to read it. Letters are those of the first word of what they do, and capitals are for the rarer form of the same.
type binding struct {
	// keys are the names that bubbletea gives them, with blanks between.
	keys string
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

// hasRequest reports whether a pending question is shown that a key may answer. One that has come by itself must have
// stood for a second, so that a key which was meant for another one does not answer it.
func hasRequest(m *model) bool {
	r := m.detail.question()
	return r != nil && r.Status == muster.RequestPending && time.Since(m.detail.arrived) >= terminal.AnswerAfter
}

// asksForLonger reports whether the question that is shown can be approved for longer than once.
func asksForLonger(m *model) bool { return hasRequest(m) && len(m.detail.question().Asks) > 0 }

// approve returns what a key does that approves the question that is shown.
func approve(scope muster.RequestScope) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd { return answer(m, *m.detail.question(), true, scope, "") }
}

// isMail reports whether the mail of the user is shown.
func isMail(m *model) bool { return m.detail.key == "need mail" || m.detail.key == pageMail }

// hasTask reports whether what is shown is about a task.
func hasTask(m *model) bool { return m.detail.taskID() != 0 }

// hasOwnTask reports whether the member that is shown has a task.
func hasOwnTask(m *model) bool { return m.detail.row.member != nil && m.detail.row.member.Task != 0 }

// showOwnDiff goes to the task of the member that is shown, and shows what it has changed.
func showOwnDiff(m *model) tea.Cmd {
	m.detail.hasDiff = true
	return m.jump(taskKey(m.detail.row.member.Task))
}

// nextNeed goes to the next thing that waits for the user, and to the first one behind the last.
func nextNeed(m *model) tea.Cmd {
	l := &m.lists[paneNeeds]
	if m.last == paneNeeds && m.detail.row.need != nil {
		l.at = (l.at + 1) % len(l.rows)
	}
	m.focus, m.last = paneNeeds, paneNeeds
	return m.show()
}

// isSearching reports whether there are matches to go to.
func isSearching(m *model) bool { return m.detail.hits.pattern != nil }

// both reports whether all of some conditions hold.
func both(all ...func(*model) bool) func(*model) bool {
	return func(m *model) bool {
		return !slices.ContainsFunc(all, func(f func(*model) bool) bool { return !f(m) })
	}
}

// bindings are all keys. The first that can be used is taken, so a key may mean one thing on the lists and another on
// the right side. The order is also that of the help line: what decides something comes first. What is over cannot be
// decided any more.
func (m *model) bindings() []binding {
	diff := binding{"d", "d", "diff", "show or hide what the task has changed", hasTask,
		toggle(func(m *model) *bool { return &m.detail.hasDiff })}
	owners := binding{"d", "d", "diff", "go to the difference of the member's task", hasOwnTask, showOwnDiff}
	return slices.Concat(answerKeys(), []binding{diff, owners}, teamKeys(), viewKeys(), moveKeys())
}

// answerKeys are the keys that write something to the team about what is shown. Each acts on what the right side shows,
// which is what the user has read, and not on where a refresh may have put the cursor of a list.
func answerKeys() []binding {
	// No key is offered where the team would refuse it.
	isGivenUp := func(m *model) bool {
		t := m.task(m.detail.taskID())
		return t != nil && t.Status == muster.NeedsAttention
	}
	// Mail that was taken is still shown, and cannot be taken twice.
	hasMail := func(m *model) bool { return isMail(m) && m.o.Mail > 0 }
	return []binding{
		{"enter c", "Enter, c", "comment", "comment on the line of the diff at the mark; its owner gets it as mail",
			isInDiff, askComment},
		{"a", "a", "approve", "approve the plan or question that is shown", hasRequest,
			approve(muster.ScopeOnce)},
		{"u", "u", "for the run", "allow what a member asks for until the run ends", asksForLonger,
			approve(muster.ScopeRun)},
		{"U", "U", "for good", "allow it in this repository for good", asksForLonger, approve(muster.ScopeAlways)},
		{"A", "A", "with comment", "approve it with a comment", hasRequest,
			func(m *model) tea.Cmd { return askText(m, "approve, comment: ", true) }},
		{"r", "r", "reject", "reject it with a reason", hasRequest,
			func(m *model) tea.Cmd { return askText(m, "reject, why: ", false) }},
		{"x", "x", "read: remove", "remove the mail that is shown from your inbox", hasMail,
			func(m *model) tea.Cmd { return loadMail(m, true) }},
		{"t", "t", "try again", "let a task that needs you be tried again", isGivenUp, retry},
		{"m", "m", "mail", "write mail to the member, or to the owner of the task, that is shown",
			func(m *model) bool { return m.hasTeam }, writeMail},
	}
}

// toggle returns what a key does that switches something. It may change the rows on both sides.
func toggle(field func(m *model) *bool) func(*model) tea.Cmd {
	return func(m *model) tea.Cmd {
		*field(m) = !*field(m)
		m.detail.width = 0
		m.setRows()
		return m.load()
	}
}

// viewKeys are the keys that change what is shown. None of them changes the team, so all of them may be tried.
func viewKeys() []binding {
	isBoard := func(m *model) bool { return m.focus == paneBoard }
	hasNeeds := func(m *model) bool { return len(m.lists[paneNeeds].rows) > 0 }
	isLong := func(m *model) bool { return m.detail.row.member != nil || m.detail.key == pageEvents }
	isDiff := func(m *model) bool { return m.detail.isDiff() && m.detail.width >= minTwoColumns }
	page := func(key string) func(*model) tea.Cmd { return func(m *model) tea.Cmd { return m.showPage(key) } }
	return []binding{
		{"n", "n", "next", "go to the next match", isSearching, step(true)},
		{"N", "N", "", "go to the match before", isSearching, step(false)},
		{"n", "n", "next", "go to the next thing that waits for you", hasNeeds, nextNeed},
		{"s", "s", "split", "show both sides of a diff beside each other, or one below the other", isDiff,
			toggle(func(m *model) *bool { return &m.detail.isSplit })},
		{"o", "o", "all output", "show or hide long outputs, and the details of events", isLong,
			toggle(func(m *model) *bool { return &m.detail.isWhole })},
		{"/", "/", "filter", "filter the list by words, while you type", isMoving, askFilter},
		{"/", "/", "search", "search in the text, while you type; n and N go on", isReading, askSearch},
		{"g", "g", "tree", "show the board as a tree of what waits for what, or as a list", isBoard,
			toggle(func(m *model) *bool { return &m.board.isTree })},
		{"space", "space", "", "list or fold the tasks that are finished", isMoving,
			toggle(func(m *model) *bool { return &m.board.hasFinished })},
		{"ctrl+k", "Ctrl-K", "go to", "go to a member or a task: type a part of its name", nil, askGoTo},
		{"e", "e", "events", "show what has happened", nil, page(pageEvents)},
		{"i", "i", "inbox", "show the mail of yours and of the lead", nil, page(pageMail)},
		{"c", "c", "cost", "show what was spent, and how full the members' contexts are", nil, page(pageCost)},
		{"M", "M", "", "leave the mouse to the terminal, so that it selects text; again: back", nil,
			toggle(func(m *model) *bool { return &m.hasMouse })},
		{"?", "?", "keys", "show all keys; type a key or a word to find some", nil, askKeys},
		{"q ctrl+c", "q", "quit", "quit; the team goes on", nil, func(*model) tea.Cmd { return tea.Quit }},
		{"ctrl+z", "Ctrl-Z", "", "suspend, as in a shell", nil, func(*model) tea.Cmd { return tea.Suspend }},
	}
}

// moveKeys are the keys that move. They are those of less and vi, beside the ones that are printed on the keys.
func moveKeys() []binding {
	move := func(n int) func(*model) tea.Cmd { return func(m *model) tea.Cmd { return m.move(n) } }
	page := func(sign int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { return m.move(sign * max(m.height-4, 1)) }
	}
	// Eight columns are a tab, by which most code is indented.
	aside := func(n int) func(*model) tea.Cmd {
		return func(m *model) tea.Cmd { m.detail.left = max(m.detail.left+n, 0); return nil }
	}
	isCutOff := func(m *model) bool { return m.detail.isDiff() && m.detail.widest > m.detail.left+m.detail.width }
	isAside := func(m *model) bool { return m.detail.left > 0 }
	// A filter of any list counts: one that was left behind in another list hides what is looked for.
	isFiltered := func(m *model) bool {
		return slices.ContainsFunc(m.lists[:], func(l list) bool { return l.filter != "" })
	}
	clearFilters := func(m *model) tea.Cmd {
		for i := range m.lists {
			m.lists[i].filter = ""
		}
		m.setRows()
		return nil
	}
	const all = 1 << 30 // more rows than there are
	return []binding{
		{"down j", "Down, j", "", "go down", nil, move(1)},
		{"up k", "Up, k", "", "go up; in a conversation this stops following", nil, move(-1)},
		{"pgdown ctrl+d space", "PgDn, Ctrl-D", "", "go down a page", nil, page(1)},
		{"pgup ctrl+u b", "PgUp, Ctrl-U", "", "go up a page", nil, page(-1)},
		{"home", "Home", "", "go to the beginning", nil, move(-all)},
		{"end G", "End, G", "", "go to the end, and follow", nil, move(all)},
		{"right l", "Right, l", "", "go to the right in the long lines of a diff", both(isReading, isCutOff), aside(8)},
		{"left h", "Left, h", "", "go back to the left in them", both(isReading, isAside), aside(-8)},
		{"enter right l", "Enter, l", "read", "go to the right side, to read what is selected", isMoving,
			func(m *model) tea.Cmd { m.focus = paneDetail; return m.show() }},
		{"esc", "Esc", "", "end the search", both(isReading, isSearching),
			func(m *model) tea.Cmd { m.detail.hits = hits{}; return nil }},
		{"esc left h", "Esc, h", "back", "go back to the lists", isReading,
			func(m *model) tea.Cmd { m.focus = m.last; return m.show() }},
		{"esc", "Esc", "", "clear the filters", isFiltered, clearFilters},
		{"tab", "Tab", "", "go to the next pane", nil, func(m *model) tea.Cmd { return m.next(1) }},
		{"shift+tab", "Shift-Tab", "", "go to the pane before", nil, func(m *model) tea.Cmd { return m.next(-1) }},
	}
}

// press does what a key says. While a line is typed, all keys are its own but those that go up and down: the question
// that it answers stays on the right side, and can be read.
func (m *model) press(k tea.KeyPressMsg) tea.Cmd {
	i, name := m.input, k.String()
	m.hasChosen = true
	if i == nil {
		m.message = toldMsg{}
		for _, b := range m.bindings() {
			if slices.Contains(strings.Fields(b.keys), name) && (b.when == nil || b.when(m)) {
				return b.do(m)
			}
		}
		return nil
	}
	if i.key != "" {
		if m.input = nil; name == i.key {
			return i.done("")
		}
		m.message = toldMsg{text: "nothing was done"}
		return nil
	}
	// A line that is typed has no use for these keys.
	rows := map[string]int{"up": -1, "down": 1, "pgup": -max(m.height-4, 1), "pgdown": max(m.height-4, 1)}
	switch {
	case rows[name] != 0 && m.goTo != nil:
		m.goTo.move(rows[name])
	case rows[name] != 0 && !i.isBelow:
		m.detail.scroll(rows[name], m.detailRows())
	case i.press(k):
	case name == "enter":
		m.input = nil
		return i.done(i.Value())
	default:
		if m.input = nil; i.cancelled != nil {
			i.cancelled()
		}
	}
	return nil
}

// move moves the cursor, or scrolls the right side. At the end of a list the cursor goes on to the next one, so that
// the arrows alone reach everything on the left.
func (m *model) move(n int) tea.Cmd {
	if m.focus == paneDetail {
		m.detail.scroll(n, m.detailRows())
		return nil
	}
	if !m.lists[m.focus].move(n) && (n == 1 || n == -1) {
		if to := m.focus + n; to >= 0 && to < paneDetail && len(m.lists[to].rows) > 0 {
			m.focus, m.last = to, to
		}
	}
	return m.show()
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

// help is the line of the keys that can be used now. Where not all fit, the first ones are shown, and always the keys
// that quit and that show them all.
func (m *model) help(width int) string {
	line := ""
	for _, b := range m.bindings() {
		if b.short == "" || b.when != nil && !b.when(m) {
			continue
		}
		part, _, _ := strings.Cut(b.name, ",")
		if part += " " + b.short; line != "" {
			part = "  " + part
		}
		isAlways := b.name == "?" || b.name == "q"
		if len(line)+len(part) > width-len("  q quit  ? keys") && !isAlways {
			continue
		}
		line += part
	}
	return line
}

// askKeys shows all keys, and those that are meant while something is typed: a key itself, or words of what it does.
func askKeys(m *model) tea.Cmd {
	// The page follows each letter, so there is nothing to confirm; Enter leaves what was found to be read.
	set := func(text string) { m.keys, m.detail.width = strings.TrimSpace(text), 0 }
	set("")
	cmd := m.showPage(pageKeys)
	back := func() { set(""); m.focus = m.last; m.show() }
	m.input = &input{prompt: "find a key: ", changed: set, cancelled: back, done: func(string) tea.Cmd { return nil }}
	return cmd
}

// matchingKeys returns the keys that a text names, first those that are it.
func matchingKeys(of []binding, text string) (all []binding) {
	var others []binding
	for _, b := range of {
		// A single letter is a key and nothing else: nearly every text has it.
		keys := strings.Fields(b.keys)
		names := strings.Split(strings.ToLower(b.name), ", ")
		switch {
		case text == "" || slices.Contains(keys, text) || slices.Contains(names, strings.ToLower(text)):
			all = append(all, b)
		case len(text) > 1 && matches(text, b.name+" "+b.short+" "+b.what):
			others = append(others, b)
		}
	}
	return append(all, others...)
}
