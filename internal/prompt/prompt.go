// Package prompt holds what the runtime itself says to a model: the system prompts (lead.md, teammate.md, subagent.md,
// beside the code), the first message of a conversation, and what a member reads about a task.
//
// A system prompt depends on nothing that changes during a member's life: it is the beginning of every request, and
// providers cache requests by their beginning. Text that comes from users, tasks or programs is escaped, so that it
// cannot pass for the runtime's own marks. The descriptions and results of tools are with the tools.
package prompt

import (
	_ "embed"
	"fmt"
	"strings"

	"muster"
	"muster/internal/mailbox"
)

// The system prompts, without what differs from member to member.
//
//go:embed lead.md
var lead string

//go:embed teammate.md
var teammate string

//go:embed subagent.md
var subagent string

// Lead returns the lead's system prompt. It does not change during the lead's life.
func Lead(team muster.Name) []string {
	return []string{strings.TrimSpace(lead) + fmt.Sprintf("\n\nYour name is lead. The team is %s.", team)}
}

// Teammate returns a teammate's system prompt. It does not change during its life.
func Teammate(name muster.Name, role string, team muster.Name) []string {
	return []string{strings.TrimSpace(teammate) +
		fmt.Sprintf("\n\nYour name is %s. Your role is %s. The team is %s.", name, role, team)}
}

// Subagent returns the system prompt of a subagent.
func Subagent() string { return strings.TrimSpace(subagent) }

// Identity tells a member who it is. It is said again when the conversation was shortened.
func Identity(name muster.Name, role string, team muster.Name) string {
	return fmt.Sprintf("<identity>You are '%s', role: %s, team: %s. Continue your work.</identity>", name, role, team)
}

// Reminder returns a note of the runtime inside a conversation. Its mark tells the model that no person has written it.
func Reminder(f string, a ...any) string {
	return "<reminder>" + fmt.Sprintf(f, a...) + "</reminder>"
}

// Goal returns the first message of the lead's conversation. open are the tasks that are on the board already, failed
// those of earlier runs that need attention.
func Goal(run muster.Run, open, failed []muster.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "The goal:\n%s\n\n", mailbox.Escape(run.Goal))
	fmt.Fprintf(&b, "Work lands on the branch %s.", run.Target)
	if run.Check == "" {
		b.WriteString(" No check is set, so landings are not verified by a command.")
	} else {
		fmt.Fprintf(&b, " Every landing is checked on the merged tree with: %s", run.Check)
	}
	if run.Cap == 0 {
		b.WriteString("\nThere are no teammates in this run: claim and complete the tasks yourself.")
	} else {
		fmt.Fprintf(&b, "\nAt most %d teammates may live at once.", run.Cap)
	}
	if len(open) > 0 {
		b.WriteString("\n\nThese tasks are on the board already:\n")
		for _, t := range open {
			fmt.Fprintf(&b, "%s\n", TaskLine(t))
		}
	}
	if len(failed) > 0 {
		b.WriteString("\n\nThese tasks of earlier runs need attention; " +
			"retry, change or delete them if the goal wants it:\n")
		for _, t := range failed {
			fmt.Fprintf(&b, "%s: %s\n", TaskLine(t), mailbox.Escape(t.Result))
		}
	}
	return b.String()
}

// Talk tells the lead that the user is there.
const Talk = "The user talks with you in a terminal: they read what you say and may write at any time. " +
	"End your turn with text to give them the word; teammates work on meanwhile. " +
	"Answer what can be answered at once; make tasks of what should land."

// TaskLine returns a task in one line, as models read it. It leaves out what is not set.
func TaskLine(t muster.Task) string {
	s := fmt.Sprintf("#%d %s [%s]", t.ID, mailbox.Escape(t.Subject), t.Status)
	if t.Owner != "" {
		s += fmt.Sprintf(" owner: %s", t.Owner)
	}
	if t.ClaimRole != "" {
		s += fmt.Sprintf(" role: %s", t.ClaimRole)
	}
	if len(t.BlockedBy) > 0 {
		s += " waits for:"
		for _, id := range t.BlockedBy {
			s += fmt.Sprintf(" #%d", id)
		}
	}
	if t.RequirePlan {
		s += " (needs an approved plan)"
	}
	if t.Landed != nil {
		s += fmt.Sprintf(" landed: %.7s", t.Landed.Commit)
	}
	return s
}

// Briefing is what the owner of a task must know when it has claimed it.
type Briefing struct {
	Task     muster.Task
	Blockers []muster.Task // the tasks that it builds on, which have landed
	Lane     muster.Lane
	Check    string // the command of the check; "" for none
	Had      string // what an inherited lane holds already
}

// Claimed returns the briefing as the owner reads it. escape is applied to everything that somebody else has written.
func Claimed(b Briefing, escape func(string) string) string {
	t := b.Task
	var s strings.Builder
	fmt.Fprintf(&s, "Task #%d: %s\n", t.ID, escape(t.Subject))
	if t.Description != "" {
		fmt.Fprintf(&s, "\n%s\n", escape(t.Description))
	}
	for _, d := range b.Blockers {
		fmt.Fprintf(&s, "\nIt builds on #%d %s", d.ID, escape(d.Subject))
		if d.Landed != nil {
			fmt.Fprintf(&s, " (landed as %.7s)", d.Landed.Commit)
		}
		if d.Result != "" {
			fmt.Fprintf(&s, ": %s", escape(d.Result))
		}
	}
	if len(b.Blockers) > 0 {
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "\nYour lane: %s, branch %s, from %.7s. All your tools run there now.\n",
		b.Lane.Path, b.Lane.Branch, t.Base)
	if b.Had != "" {
		fmt.Fprintf(&s, "Somebody worked in it before; it holds:\n%s\n", escape(b.Had))
	}
	if t.Note != "" {
		fmt.Fprintf(&s, "The last attempt left this: %s\n", escape(t.Note))
	}
	if b.Check != "" {
		fmt.Fprintf(&s, "The check, on the merged tree: %s\n", b.Check)
	}
	if t.RequirePlan {
		s.WriteString("It needs an approved plan before you change anything: read, then call submit_plan.\n")
	}
	fmt.Fprintf(&s, "When it is done: complete_task{task_id: %d, summary}. "+
		"The runtime commits, merges, checks and lands.", t.ID)
	return s.String()
}
