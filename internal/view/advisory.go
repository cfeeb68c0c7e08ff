package view

import (
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
)

// advisory names the advisory checks that were red, with the tasks that have landed all the same.
func advisory(landed []muster.Task) string {
	var checks, tasks []string
	for _, t := range landed {
		if t.Landed.Advisory == "" {
			continue
		}
		tasks = append(tasks, fmt.Sprint(t.ID))
		for _, name := range strings.Split(t.Landed.Advisory, ", ") {
			if !slices.Contains(checks, name) {
				checks = append(checks, name)
			}
		}
	}
	if len(checks) == 0 {
		return ""
	}
	return fmt.Sprintf("advisory %s %s %s red, at the landing of %s", text.Plural(len(checks), "check", "checks"),
		text.OneLine(text.List(checks, 10)), text.Plural(len(checks), "was", "were"), text.List(tasks, 20))
}
