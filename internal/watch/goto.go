package watch

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
)

// The switcher lists the members and all tasks on the right side, those first that wait for the user, and filters them
// while something is typed.

// askGoTo opens the switcher.
func askGoTo(m *model) tea.Cmd {
	m.goTo = &list{}
	// Each letter begins at the first row again: that is the one which fits best.
	set := func(text string) {
		*m.goTo = list{filter: text}
		m.goTo.set(m.destinations())
	}
	set("")
	m.input = &input{prompt: "go to: ", changed: set, cancelled: func() { m.goTo = nil }, done: func(string) tea.Cmd {
		r, ok := m.goTo.selected()
		if m.goTo = nil; !ok {
			return nil
		}
		return m.jump(r.key)
	}}
	return nil
}

// destinations are the rows of the switcher.
func (m *model) destinations() (all []row) {
	for i := range m.o.Members {
		all = append(all, row{key: memberKey(m.o.Members[i].Name), member: &m.o.Members[i]})
	}
	all = append(all, boardOptions{hasFinished: true}.rows(m.o.Tasks, "")...)
	// The order is that of the lists, so that what the user knows is found where it is expected.
	waits := m.waitsForUser()
	// What is called so stands before a member whose task is called so, and then what waits before what does not.
	rank := func(r row) (n int) {
		name := r.text()
		if r.member != nil {
			name = string(r.member.Name)
		}
		if !matches(m.goTo.filter, name) {
			n += 2
		}
		if !r.waits {
			n++
		}
		return n
	}
	for i := range all {
		all[i].waits = waits[all[i].key]
	}
	slices.SortStableFunc(all, func(a, b row) int { return rank(a) - rank(b) })
	return all
}

// waitsForUser returns the keys of the members and tasks that wait for the user.
func (s *teamState) waitsForUser() map[string]bool {
	// A question waits by who has asked it and by the task that it is about: people look for either.
	keys := map[string]bool{}
	for _, n := range s.o.Needs() {
		if r := n.Request; r != nil {
			keys[memberKey(r.From)], keys[taskKey(r.TaskID)] = true, true
		}
		if n.Task != nil {
			keys[taskKey(n.Task.ID)] = true
		}
		if n.Member != "" {
			keys[memberKey(n.Member)] = true
		}
	}
	for _, x := range s.o.Members {
		if x.Doing == view.WaitsForUser {
			keys[memberKey(x.Name)] = true
		}
	}
	return keys
}

// jump selects a member or a task, though a filter may have hidden it, and shows it.
func (m *model) jump(key string) tea.Cmd {
	pane := paneMembers
	if strings.HasPrefix(key, "task ") {
		pane = paneBoard
	}
	l := &m.lists[pane]
	// Whoever names it wants to see it, so the filter gives way, and finished tasks are listed.
	if !l.find(key) {
		l.filter, m.board.hasFinished = "", true
		m.setRows()
		l.find(key)
	}
	m.focus, m.last = pane, pane
	cmd := m.show()
	if m.layout().right == 0 { // where only one side is seen, it is what was gone to
		m.focus = paneDetail
	}
	return cmd
}

// goTo draws the switcher.
func (f frame) goTo() []string {
	m, l := f.model, f.model.goTo
	seen, top := l.seen(f.body - 1)
	title := fmt.Sprintf("GO TO %d of %d   ? needs you", len(l.rows), l.all)
	rows := []string{sgr(m.paint, titleColour(paneDetail, paneDetail), text.CutColumns(title, f.right))}
	for i, r := range seen {
		selected := top+i == l.at
		line := cells{{text: "  "}, {text: "  "}}
		if selected {
			line[0].text = "> "
		}
		if r.waits {
			line[1] = cell{text: "? ", tone: view.Yours}
		}
		draw := m.drawTask
		if r.member != nil {
			draw = m.drawMember
		}
		rows = append(rows, append(line, draw(r, f.right-4)...).painted(m.paint, f.right, selected))
	}
	return rows
}

// memberKey is the key of a member's row.
func memberKey(name muster.Name) string { return "member " + string(name) }
