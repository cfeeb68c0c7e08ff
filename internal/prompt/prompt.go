// Package prompt holds what the runtime itself says to a model: the system prompts (lead.md, teammate.md, subagent.md,
// beside the code), the descriptions of the tools (tools/NAME.md), the first message of a conversation with its facts
// and the project's instructions, and what a member reads about a task. docs/prompts.md has the reason of each rule.
//
// A system prompt depends on nothing that changes during a member's life: it is the beginning of every request, and
// providers cache requests by their beginning. Text that comes from users, tasks or programs is escaped, so that it
// cannot pass for the runtime's own marks. The results of tools are with the tools.
package prompt

import (
	"embed"
	"fmt"
	"strings"

	"muster"
	"muster/internal/text"
)

// files has the texts that depend on nothing.
//
//go:embed *.md tools/*.md
var files embed.FS

// read returns a text without the newline at its end. It panics if there is none, so that the first test finds it.
func read(name string) string {
	data, err := files.ReadFile(name)
	if err != nil {
		panic(err)
	}
	return strings.TrimSpace(string(data))
}

// Tool returns the description of a tool, which is in tools/NAME.md. It panics if there is none.
func Tool(name string) string { return read("tools/" + name + ".md") }

// Lead returns the system prompt of all leads. Identity says the name and the team, in the first message.
func Lead() []string { return []string{read("lead.md")} }

// TeamRules returns what the lead reads when it begins to lead a team.
func TeamRules() string { return read("team.md") }

// Teammate returns the system prompt of all teammates of a role: what all teammates of all teams read, and what those
// of the role do. It names none of them, so that what a provider has cached for one of them serves the next: Identity
// says the name, in the first message. text is what the role's file says, as roles.Role.Render returned it, and writes
// says that the role has tools that change files.
func Teammate(role string, team muster.Name, text string, writes bool) []string {
	own := fmt.Sprintf("Your role is %s. The team is %s.", role, team)
	if !writes {
		own += "\n" + read("reader.md")
	}
	own += optional("\nThe instructions of your role, beside the rules above:\n%s", text)
	return []string{read("teammate.md"), own}
}

// Subagent returns the system prompt of a subagent.
func Subagent() string { return read("subagent.md") }

// Identity tells a member who it is. It is said again when the conversation was shortened.
func Identity(name muster.Name, role string, team muster.Name) string {
	return fmt.Sprintf("<identity>You are '%s', role: %s, team: %s.</identity>", name, role, team)
}

// Reminder returns a note of the runtime inside a conversation. Its mark tells the model that no person has written it.
func Reminder(f string, a ...any) string {
	return "<reminder>" + fmt.Sprintf(f, a...) + "</reminder>"
}

// Compressed returns the summary of what a shortened conversation leaves out. record is the file with the whole
// conversation; "" if there is none.
func Compressed(summary, record string) string {
	return "[Conversation compressed]\n" + text.EscapeTags(summary) +
		optional("\nThe summary stands for the older part of this conversation. If you miss a detail, search in %s "+
			"(one JSON object in each line) with grep.", record)
}

// NewTask stands in the place of a summary when a member has claimed another task.
const NewTask = "Your work on earlier tasks is left out here; what came of it is listed above. A new task begins."

// Summarize asks a model for the summary of its conversation, in at most so many words. focus is what it is to keep
// above all, "" for nothing; again says that it has called a tool instead.
func Summarize(focus string, words int, again bool) string {
	request := read("summarize.md") + fmt.Sprintf(" Write at most %d words.", words) +
		optional("\nKeep above all: %s", text.EscapeTags(focus))
	if again {
		request += "\nYou have called a tool, or said nothing. No call is run now: answer with the text of the summary."
	}
	return Reminder("%s", request)
}

// Goal returns the first message of the lead's conversation. open are the tasks that are on the board already, failed
// those of earlier runs that need attention.
func Goal(run muster.Run, open, failed []muster.Task) string {
	words := "The goal:\n" + text.EscapeTags(run.Goal)
	if run.Goal == "" { // in a conversation, whose first words may be a greeting
		words = "The user says:\n" + text.EscapeTags(run.FirstWords)
	}
	message := words + "\n\n"
	if run.CheckText() == "" {
		message += "No check command is set.\n"
	}
	if run.Cap == 0 {
		message += "There are no teammates in this run."
	} else {
		message += fmt.Sprintf("At most %d teammates may live at once.", run.Cap)
	}
	var openLines, failedLines strings.Builder
	for _, t := range open {
		openLines.WriteString(TaskLine(t) + "\n")
	}
	for _, t := range failed {
		failedLines.WriteString(TaskLine(t) + ": " + text.EscapeTags(t.Result) + "\n")
	}
	return message + optional("\n\nThese tasks are on the board already:\n%s", openLines.String()) +
		optional("\n\nThese tasks of earlier runs failed. If the goal "+
			"wants one, make the change again:\n%s", failedLines.String())
}

// optional returns the text with the value in its place, or nothing if the value is empty.
func optional(format, value string) string {
	if value == "" {
		return ""
	}
	return fmt.Sprintf(format, value)
}

// Talk tells the lead that the user is there.
const Talk = "The user talks with you in a terminal: they read what you say and may write at any time. " +
	"End your turn with text to let them answer; teammates keep working. " +
	"Answer what can be answered at once; make tasks of what should land."

// Playbook tells the lead of a run with a playbook what is done without it.
const Playbook = "The tasks come from a playbook and are on the board. Teammates for the roles that they ask for are " +
	"spawned by the runtime. You were asked because something needs you: see to that, then call wait."

// TaskLine returns a task in one line, as models read it. It leaves out what is not set.
func TaskLine(t muster.Task) string {
	s := fmt.Sprintf("#%d %s [%s]", t.ID, text.EscapeTags(t.Subject), t.Status) +
		optional(" owner: %s", string(t.Owner)) + optional(" role: %s", t.ClaimRole)
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

// LandedTask returns a task that has landed in a few words.
func LandedTask(t muster.Task) string {
	return fmt.Sprintf("#%d %s (%.7s)", t.ID, text.EscapeTags(t.Subject), t.Landed.Commit)
}

// maxWaiting is how many of the tasks that wait for another one its owner reads.
const maxWaiting = 10

// Work is what the owner of a task reads about it beside the task itself.
type Work struct {
	BuiltOn []muster.Task // the tasks that it builds on, which have landed
	Waiting []muster.Task // the tasks that wait for it
	Lane    muster.Lane
	Changes string // in the lane; "" for none
	IsOwn   bool   // the owner has made the changes itself, or has read of them before
	Check   string // the command of the check; "" for none
	Planned bool   // the owner's plan is approved
}

// Claimed returns what the owner of a task reads when it has claimed it, and again in a shortened conversation. What
// members have written is escaped.
func Claimed(t muster.Task, w Work) string {
	blockers, plan, escape := "", "", text.EscapeTags
	for _, d := range w.BuiltOn {
		blockers += fmt.Sprintf("\nIt builds on #%d %s", d.ID, escape(d.Subject))
		if d.Landed != nil {
			blockers += fmt.Sprintf(" (landed as %.7s)", d.Landed.Commit)
		}
		blockers += optional(": %s", escape(d.Result))
	}
	for i, d := range w.Waiting {
		if i == maxWaiting {
			blockers += fmt.Sprintf("\nand by %d more", len(w.Waiting)-i)
			break
		}
		blockers += fmt.Sprintf("\nIt blocks #%d %s", d.ID, escape(d.Subject)) +
			optional(" (%s)", string(d.Owner))
	}
	if t.RequirePlan && !w.Planned {
		plan = "It needs an approved plan before you change anything: read, then call submit_plan.\n"
	}
	changes := "An earlier owner left these changes in it:\n%s\n"
	if w.IsOwn {
		changes = "Your changes so far:\n%s\n"
	}
	return fmt.Sprintf("Task #%d: %s\n", t.ID, escape(t.Subject)) +
		optional("\n%s\n", escape(t.Description)) + optional("%s\n", blockers) +
		fmt.Sprintf("\nYour lane: %s, branch %s, from %.7s. All your tools run there now.\n",
			w.Lane.Path, w.Lane.Branch, t.Base) +
		optional(changes, escape(w.Changes)) +
		optional("The last attempt left this: %s\n", escape(t.Note)) +
		optional("The check, on the merged tree: %s\n", w.Check) + plan +
		fmt.Sprintf("When it is done, call complete_task with task_id %d and a summary. "+
			"The runtime commits, merges, checks and lands.", t.ID)
}
