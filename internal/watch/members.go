package watch

import (
	"fmt"
	"strings"

	"muster"
	"muster/internal/view"
)

// memberState says in one word how a member stands. Idle, waiting and dead have different words and colours.
func (m *model) memberState(x *view.Member) (word string, tone view.Tone) {
	switch {
	case x.Status == muster.Shutdown:
		return "stopped", view.Faint
	case x.Foreign:
		return "foreign", view.Plain
	case !x.Alive:
		return "no process", view.Bad
	case x.Status == muster.Idle && (x.IdleReason == muster.IdleMessages || x.Doing != ""):
		return "waits", view.Plain
	case x.Status == muster.Idle:
		return "idle", view.Faint
	case x.Doing != "":
		return "waits", view.Plain
	}
	for _, t := range m.o.Tasks {
		if t.Owner == x.Name && t.Status == muster.Landing {
			return "landing", view.Good
		}
	}
	return "works", view.Good
}

// drawMember returns a member in one line: its name, its state, and what it does.
func (m *model) drawMember(r row, width int) cells {
	word, tone := m.memberState(r.member)
	does, since := m.o.Does(*r.member, m.subject)
	// The state is a column of its own already.
	for _, said := range []string{"no process runs it", "another program runs it", "has stopped", "idle"} {
		does = strings.TrimPrefix(strings.TrimPrefix(does, said), ": ")
	}
	age := view.SinceStamp(since, m.o.Now)
	name := view.OneLine(string(r.member.Name))
	names := min(max(m.longestName(), 4), 12)
	left := width - names - 1 - 10 - 1 - len(age) - 1
	if left < 8 { // a narrow pane has no room for what it does
		names, left = min(names, max(width-12, 4)), 0
	}
	c := cells{{text: view.Pad(view.Cut(name, names), names) + " ", who: name}, {text: view.Pad(word, 10), tone: tone}}
	if left > 0 {
		c = append(c, cell{text: " " + view.Pad(view.Cut(m.oneLine(does), left), left) + " "}, cell{text: age, tone: view.Faint})
	}
	return c
}

// longestName returns the width of the longest name of a member.
func (m *model) longestName() (n int) {
	for _, x := range m.o.Members {
		n = max(n, len(x.Name))
	}
	return n
}

// drawNeed returns what waits for the user in one line.
func (m *model) drawNeed(r row, width int) cells {
	name, what := r.need.Name, m.oneLine(r.need.What)
	if r.need.Request != nil { // its id says less than whose plan it is
		name = view.Question(*r.need.Request)
		what = fmt.Sprintf("of %s, waits %s", m.oneLine(string(r.need.Request.From)),
			view.Duration(view.WaitingTime(*r.need.Request, m.o.Now)))
	}
	left := width - len(name) - 2
	return cells{{text: view.Cut(name, width), tone: view.Bad}, {text: "  " + view.Cut(what, max(left, 0))}}
}
