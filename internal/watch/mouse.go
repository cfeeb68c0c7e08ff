package watch

import tea "charm.land/bubbletea/v2"

// wheelRows is how far one step of the wheel goes, as in most programs.
const wheelRows = 3

// The mouse is a help and never needed: all that it does, keys do.

// paneAt returns the pane at a place on the screen, and the row in it below its title; -1 is the title. The pane is -1
// where there is none.
func (m *model) paneAt(x, y int) (pane, row int) {
	l := m.layout()
	y-- // the headline
	switch {
	case y < 0 || y >= l.body:
		return -1, 0
	case l.right > 0 && x > l.left:
		return paneDetail, y - 1
	}
	for pane, height := range l.heights {
		if y < height {
			return pane, y - 1
		}
		y -= height
	}
	return -1, 0
}

// click selects what is clicked. While a line is typed a click does nothing, because it could change what is answered.
func (m *model) click(x, y int) tea.Cmd {
	pane, row := m.paneAt(x, y)
	m.hasChosen = true
	// In the switcher a click goes there, as Enter does.
	if m.goTo != nil && pane == paneDetail && row >= 0 && m.goTo.top+row < len(m.goTo.rows) {
		key := m.goTo.rows[m.goTo.top+row].key
		m.input, m.goTo = nil, nil
		return m.jump(key)
	}
	if pane < 0 || m.input != nil {
		return nil
	}
	m.focus, m.message = pane, toldMsg{}
	if pane == paneDetail || len(m.lists[pane].rows) == 0 {
		m.focus = paneDetail
		// In a diff it moves the mark, so that a comment needs one click and one key.
		d := &m.detail
		if at := d.top + row - len(m.todo()); row >= 0 && d.isDiff() && at >= 0 && at < len(d.rows) {
			d.mark = at
		}
		return nil
	}
	m.last = pane
	list := &m.lists[pane]
	if row >= 0 && list.top+row < len(list.rows) {
		list.at = list.top + row
	}
	return m.show()
}

// wheel scrolls what is under the mouse: the right side without a change of the focus, and a list by moving its cursor.
func (m *model) wheel(x, y int, up bool) tea.Cmd {
	n := wheelRows
	if up {
		n = -n
	}
	pane, _ := m.paneAt(x, y)
	switch {
	case pane == paneDetail && m.goTo != nil:
		m.goTo.move(n)
	case pane == paneDetail:
		m.detail.scrollPast(n, m.detailRows())
	case pane >= 0 && len(m.lists[pane].rows) > 0:
		m.focus, m.last = pane, pane
		m.lists[pane].move(n)
		return m.show()
	}
	return nil
}
