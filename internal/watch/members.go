package watch

import (
	"fmt"
	"strings"

	"muster"
	"muster/internal/view"
)

// memberState says in one word how a member stands. Idle, waiting and dead have different words and colours, because
// they need different things of the user: nothing, perhaps an answer, and a resume. What makes the others meaningless
// comes first: a member without a process does nothing, whatever its record says.
func (s *teamState) memberState(x *view.Member) (word string, tone view.Tone) {
	switch {
	case x.Status == muster.Shutdown:
		return "stopped", view.Faint
	case x.Foreign:
		return "foreign", view.Plain
	case !x.Alive && !s.o.Alive: // the team has stopped, which the headline says too
		return "stopped", view.Faint
	case !x.Alive:
		return "dead", view.Bad
	case s.isLanding(x):
		return "landing", view.Good
	case x.Status == muster.Idle && (x.IdleReason == muster.IdleMessages || x.Doing != ""):
		return "waits", view.Plain
	case x.Status == muster.Idle:
		return "idle", view.Faint
	case x.Doing != "":
		return "waits", view.Plain
	}
	return "works", view.Good
}

// isLanding reports whether the task of a member is to land. Between two records only the member itself says so.
func (s *teamState) isLanding(x *view.Member) bool {
	t := s.task(x.Task)
	return t != nil && t.Status == muster.Landing || x.Doing == "lands"
}

// drawMember returns a member in one line: its name, its state, what it does, and for how long. The columns are as wide
// as the longest names and states need, so that what it does gets all the rest.
func (s *teamState) drawMember(r row, width int) cells {
	word, tone := s.memberState(r.member)
	does, since := s.o.Does(*r.member, s.subject)
	// The state is a column of its own already.
	if word == "waits" && r.member.Doing != "" { // for what it waits says more than its task
		does = r.member.Doing
	}
	for _, said := range []string{"no process runs it", "another program runs it", "has stopped", "idle", "waits"} {
		does = strings.TrimLeft(strings.TrimPrefix(does, said), ": ")
	}
	age := view.SinceStamp(since, s.o.Now)
	name := view.OneLine(string(r.member.Name))
	names, states := s.memberWidths()
	left := width - names - 1 - states - 1 - len(age) - 1
	if left < 8 { // a narrow pane has no room for what it does
		names, left = min(names, max(width-12, 4)), 0
	}
	c := cells{{text: view.Pad(view.Cut(name, names), names) + " ", who: name},
		{text: view.Pad(word, states), tone: tone}}
	if left > 0 {
		what := view.Pad(view.Cut(s.oneLine(does), left), left)
		c = append(c, cell{text: " " + what + " "}, cell{text: age, tone: view.Faint})
	}
	return c
}

// memberWidths returns the widths of the columns of names and of states, which are those of the longest ones. A name
// that is longer than most is cut: the title of the right side has it whole.
func (s *teamState) memberWidths() (names, states int) {
	for i := range s.o.Members {
		word, _ := s.memberState(&s.o.Members[i])
		names, states = max(names, len(s.o.Members[i].Name)), max(states, len(word))
	}
	return min(max(names, 4), 12), states
}

// drawNeed returns what waits for the user in one line. The command for the shell is left out: a key does the same
// here.
func (s *teamState) drawNeed(r row, width int) cells {
	name, what := r.need.Name, s.oneLine(r.need.What)
	if r.need.Request == nil && r.need.Task == nil {
		name, what = what, ""
	} else if r.need.Request != nil { // its id says less than whose plan it is
		name = view.Question(*r.need.Request)
		what = fmt.Sprintf("of %s, waits %s", s.oneLine(string(r.need.Request.From)),
			view.Duration(view.WaitingTime(*r.need.Request, s.o.Now)))
	}
	left := width - len(name) - 2
	return cells{{text: view.Cut(name, width), tone: view.Bad}, {text: "  " + view.Cut(what, max(left, 0))}}
}
