package view

import (
	"fmt"

	"muster"
)

// LandedTasks returns a line for each task that has landed: its id, its subject, its commit, and how it was checked.
func LandedTasks(s Screen, tasks []muster.Task) string {
	t := Table{Titles: []string{"", "", "", ""}, Wide: 1}
	for _, x := range tasks {
		if x.Landed != nil {
			t.Row(Text(fmt.Sprintf("%2d", x.ID)), x.Subject, fmt.Sprintf("%.7s", x.Landed.Commit), checkCell(*x.Landed))
		}
	}
	return t.Draw(s)
}

// TaskIDs returns the ids of tasks.
func TaskIDs(tasks []muster.Task) []muster.TaskID {
	ids := make([]muster.TaskID, len(tasks))
	for i, t := range tasks {
		ids[i] = t.ID
	}
	return ids
}
