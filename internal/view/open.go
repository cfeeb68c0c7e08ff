package view

import (
	"fmt"
	"slices"

	"muster"
	"muster/internal/text"
)

// maxOpenTasks is how many open tasks are named. What to do about them stands below, and must stay in sight.
const maxOpenTasks = 10

// OpenTasks returns the open tasks of a team that has stopped as lines, with subjects of so many columns. Those that
// somebody has begun come first. Where there are many, the last line gives the command that lists all.
func OpenTasks(open []muster.Task, subject int, command string) (lines []string) {
	// What somebody has begun says most of where the team was.
	isPending := func(t muster.Task) bool { return t.Status == muster.Pending }
	ranked := append(slices.DeleteFunc(slices.Clone(open), isPending),
		slices.DeleteFunc(slices.Clone(open), func(t muster.Task) bool { return !isPending(t) })...)
	for _, t := range ranked[:min(len(ranked), maxOpenTasks)] {
		name := text.PadColumns(text.CutColumns(text.OneLine(t.Subject), subject), subject)
		word := TaskWord(t)
		if word == string(LookWorking) || word == string(LookLanding) { // until the team stopped
			word = string(LookStopped)
		}
		lines = append(lines, fmt.Sprintf("%4d  %s  %s", t.ID, name, word))
	}
	if more := len(ranked) - maxOpenTasks; more > 0 {
		lines = append(lines, fmt.Sprintf("      and %d more: %s", more, command))
	}
	return lines
}
