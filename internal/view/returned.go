package view

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
)

// reasonNouns are what people call a landing that came back, in the order in which they read it. A reason that is not
// here is its own noun, and comes after these.
var reasonNouns = []struct{ reason, noun string }{{"check", "red check"}, {"conflict", "conflict"},
	{"review", "review"}, {"secret", "secret"}, {"local", "local file"}, {"target", "moved target"},
	{"empty", "empty lane"}}

// comebacks is how many landings of the task came back.
func (e *effort) comebacks() (n int) {
	for _, times := range e.returned {
		n += times
	}
	return n
}

// returned says how many landings came back that are fixed by now, and how many of them are nobody's fault; "" where
// none did.
func (s Summary) returned() string {
	all, moved, byReason := 0, 0, map[string]int{}
	for _, t := range s.landed {
		work := s.Tally.effortOf(t.ID)
		all, moved = all+work.comebacks(), moved+work.moved
		for reason, n := range work.returned {
			byReason[reason] += n
		}
	}
	if all == 0 {
		return ""
	}
	var fixed []string
	for _, x := range reasonNouns {
		if n := byReason[x.reason]; n > 0 {
			fixed = append(fixed, text.Count(n, x.noun))
		}
		delete(byReason, x.reason)
	}
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		fixed = append(fixed, fmt.Sprint(byReason[reason], " ", reason))
	}
	line := "returned and fixed: " + strings.Join(fixed, ", ")
	switch moved {
	case 0:
	case all:
		line += " (by what had landed meanwhile)"
	default:
		line += fmt.Sprintf(" (%d by what had landed meanwhile)", moved)
	}
	return line
}

// flaky names the tasks at whose landing the check was red and then green on the very same tree, "" where there are
// none.
func flaky(landed []muster.Task) string {
	var ids []string
	for _, t := range landed {
		if t.Landed.Flaky {
			ids = append(ids, fmt.Sprint(t.ID))
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "flaky check: red and then green on the same tree, at the landing of " + text.List(ids, 20)
}
