package prompt

import (
	"fmt"
	"strings"

	"muster"
	"muster/internal/collision"
	"muster/internal/text"
)

// maxColliding is how many files a reminder of a collision names.
const maxColliding = 5

// Collisions tells a member, whose task it is, or the lead, what collides with what, as one reminder. It is "" where
// there is nothing to tell.
func Collisions(all []collision.Notice, task muster.TaskID, target string) string {
	// What to do is said once, however many collisions there are: each token is read again in every later request.
	var parts []string
	isNew, hasOwn, hasMerge := false, false, false
	for _, n := range all {
		with := fmt.Sprintf("task #%d (%s) of %s", n.With, n.WithSubject, n.WithOwner)
		if n.With == 0 {
			with = "what has landed" + landedTasks(n.Landed)
		}
		who := "Your work"
		if n.Task != task {
			who = fmt.Sprintf("Task #%d (%s) of %s", n.Task, n.Subject, n.Owner)
		}
		if n.IsOver {
			parts = append(parts, fmt.Sprintf("%s no longer conflicts with %s.", who, with))
			continue
		}
		isNew = true
		hasOwn = hasOwn || n.Task == task && n.With != 0
		hasMerge = hasMerge || n.Task == task && n.With == 0
		parts = append(parts, fmt.Sprintf("%s conflicts with %s in %s.", who, with, collidingFiles(n.Files)))
	}
	if len(parts) == 0 {
		return ""
	}
	if hasOwn {
		parts = append(parts, "Agree by send_message who changes what, or keep your change there small: whoever "+
			"completes second gets the conflict.")
	}
	if hasMerge {
		parts = append(parts, fmt.Sprintf("Commit, then run git merge %s in your lane, or call complete_task when "+
			"you are done.", target))
	}
	if isNew && !hasOwn && !hasMerge {
		parts = append(parts, "Their owners know.")
	}
	// Paths and subjects are foreign text.
	return Reminder("%s", text.EscapeTags(text.OneLine(strings.Join(parts, " "))))
}

// landedTasks names the tasks that have landed.
func landedTasks(ids []muster.TaskID) string {
	if len(ids) == 0 {
		return ""
	}
	var names []string
	for _, id := range ids {
		names = append(names, fmt.Sprintf("#%d", id))
	}
	return " of task " + strings.Join(names, ", ")
}

// collidingFiles names files and lines: those of the reader's side, and those of the other where they differ.
func collidingFiles(files []muster.CollidingFile) string {
	var named []string
	for _, f := range files {
		name := text.CutBytes(f.Path, 120)
		if f.Lines != "" {
			name += " line " + f.Lines
		}
		if f.WithLines != "" && f.WithLines != f.Lines {
			name += " (there " + f.WithLines + ")"
		}
		named = append(named, name)
	}
	return text.List(named, maxColliding)
}
