package watch

import (
	"fmt"

	"muster/internal/text"
	"muster/internal/view"
)

// drawMember returns a member in one line: its name, its state, what it does, and for how long. The columns are as wide
// as the longest names and states need, so that what it does gets all the rest.
func (s *teamState) drawMember(r row, width int) cells {
	stands := s.o.Standing(*r.member, s.subject)
	word, does := string(stands.Look), stands.What
	// The state has a column of its own, so what is said beside it is without it.
	age := view.SinceStamp(stands.Since, s.o.Now)
	name, who := text.OneLine(r.member.Label()), text.OneLine(string(r.member.Owner()))
	names, states := s.memberWidths()
	left := width - names - 1 - states - 1 - len(age) - 1
	if left < 8 { // a narrow pane has no room for what it does
		names, left = min(names, max(width-12, 4)), 0
	}
	c := cells{{text: text.PadColumns(text.CutColumns(name, names), names) + " ", who: who},
		{text: text.PadColumns(word, states), tone: stands.Look.Tone()}}
	if left > 0 {
		what := text.PadColumns(text.CutColumns(s.oneLine(does), left), left)
		c = append(c, cell{text: " " + what + " "}, cell{text: age, tone: view.Faint})
	}
	return c
}

// memberWidths returns the widths of the columns of names and of states, which are those of the longest ones. A name
// that is longer than most is cut: the title of the right side has it whole.
func (s *teamState) memberWidths() (names, states int) {
	for i := range s.o.Members {
		look := s.o.Standing(s.o.Members[i], s.subject).Look
		names, states = max(names, len(s.o.Members[i].Label())), max(states, len(look))
	}
	return min(max(names, 4), 12), states
}

// drawNeed returns what waits for the user in one line. The command for the shell is left out: a key does the same
// here.
func (s *teamState) drawNeed(r row, width int) cells {
	name, what := r.need.Name, s.oneLine(r.need.What)
	if r.need.Name == view.NeedMail {
		name, what = what, ""
	} else if r.need.Request != nil { // its id says less than whose plan it is
		name = view.Question(*r.need.Request)
		what = fmt.Sprintf("of %s, waits %s", s.oneLine(string(r.need.Request.From)),
			view.Duration(view.WaitingTime(*r.need.Request, s.o.Now)))
	}
	left := width - len(name) - 2
	return cells{{text: text.CutColumns(name, width), tone: view.Yours},
		{text: "  " + text.CutColumns(what, max(left, 0))}}
}
