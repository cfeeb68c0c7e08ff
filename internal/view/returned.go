package view

import (
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
)

// returned says how many landings came back that are fixed by now, and how many of them are nobody's fault; "" where
// none did.
func (s Summary) returned() string {
	checks, conflicts, reviews, secrets, moved := 0, 0, 0, 0, 0
	for _, t := range s.landed {
		work := s.Tally.effortOf(t.ID)
		checks, conflicts, moved = checks+work.checks, conflicts+work.conflicts, moved+work.moved
		reviews, secrets = reviews+work.reviews, secrets+work.secrets
	}
	fixed := slices.DeleteFunc([]string{text.Count(checks, "red check"), text.Count(conflicts, "conflict"),
		text.Count(reviews, "review"), text.Count(secrets, "secret")},
		func(s string) bool { return strings.HasPrefix(s, "0 ") })
	if len(fixed) == 0 {
		return ""
	}
	line := "returned and fixed: " + strings.Join(fixed, ", ")
	switch all := checks + conflicts + reviews + secrets; {
	case moved == 0:
	case moved == all:
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
