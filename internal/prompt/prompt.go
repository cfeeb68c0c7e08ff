// Package prompt holds what the runtime itself says to a model: the system prompts (lead.md, teammate.md, subagent.md,
// beside the code), the descriptions of the tools (tools/NAME.md), the first message of a conversation with its facts
// and the project's instructions, and what a member reads about a task. docs/prompts.md has the reason of each rule.
//
// A system prompt depends on nothing that changes during a member's life: it is the beginning of every request, and
// providers cache requests by their beginning. Text that comes from users, tasks or programs is escaped, so that it
// cannot pass for the runtime's own marks. The results of tools are with the tools.
package prompt

import (
	"cmp"
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

// Lead returns the lead's system prompt: what all leads read, and what this one does. It does not change during the
// lead's life.
func Lead(team muster.Name) []string {
	return []string{read("lead.md"), fmt.Sprintf("Your name is lead. The team is %s.", team)}
}

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
	return fmt.Sprintf("<identity>You are '%s', role: %s, team: %s. Continue your work.</identity>", name, role, team)
}

// Reminder returns a note of the runtime inside a conversation. Its mark tells the model that no person has written it.
func Reminder(f string, a ...any) string {
	return "<reminder>" + fmt.Sprintf(f, a...) + "</reminder>"
}

// Compressed returns the beginning of a conversation that was made shorter: the summary of what it leaves out.
func Compressed(summary string) string {
	return "[Conversation compressed]\n" + text.EscapeTags(summary)
}

// NewTask stands in the place of a summary when a member has claimed another task.
const NewTask = "Your work on earlier tasks is left out here; what came of it is listed below. A new task begins."

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
	message := fmt.Sprintf("%s\n\nWork lands on the branch %s.", words, run.Target) +
		cmp.Or(optional(" Every landing is checked on the merged tree with: %s", run.CheckText()),
			" No check is set, so landings are not verified by a command.")
	if run.Cap == 0 {
		message += "\nThere are no teammates in this run: claim and complete the tasks yourself."
	} else {
		message += fmt.Sprintf("\nAt most %d teammates may live at once.", run.Cap)
	}
	var openLines, failedLines strings.Builder
	for _, t := range open {
		openLines.WriteString(TaskLine(t) + "\n")
	}
	for _, t := range failed {
		failedLines.WriteString(TaskLine(t) + ": " + text.EscapeTags(t.Result) + "\n")
	}
	return message + optional("\n\nThese tasks are on the board already:\n%s", openLines.String()) +
		optional("\n\nThese tasks of earlier runs need attention; "+
			"retry, change or delete them if the goal wants it:\n%s", failedLines.String())
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
	"End your turn with text to give them the word; teammates work on meanwhile. " +
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

// maxWaiting is how many of the tasks that wait for another one its owner reads.
const maxWaiting = 10

// Claimed returns what the owner of a task reads when it has claimed it. builtOn are the tasks that it builds on,
// which have landed; waiting are those that wait for it; check is the command of the check, "" for none; had is what an
// inherited lane holds already. What somebody else has written is escaped.
func Claimed(t muster.Task, builtOn, waiting []muster.Task, lane muster.Lane, check, had string) string {
	blockers, plan, escape := "", "", text.EscapeTags
	for _, d := range builtOn {
		blockers += fmt.Sprintf("\nIt builds on #%d %s", d.ID, escape(d.Subject))
		if d.Landed != nil {
			blockers += fmt.Sprintf(" (landed as %.7s)", d.Landed.Commit)
		}
		blockers += optional(": %s", escape(d.Result))
	}
	for i, d := range waiting {
		if i == maxWaiting {
			blockers += fmt.Sprintf("\nand by %d more", len(waiting)-i)
			break
		}
		blockers += fmt.Sprintf("\nIt is waited for by #%d %s", d.ID, escape(d.Subject)) +
			optional(" (%s)", string(d.Owner))
	}
	if t.RequirePlan {
		plan = "It needs an approved plan before you change anything: read, then call submit_plan.\n"
	}
	return fmt.Sprintf("Task #%d: %s\n", t.ID, escape(t.Subject)) +
		optional("\n%s\n", escape(t.Description)) + optional("%s\n", blockers) +
		fmt.Sprintf("\nYour lane: %s, branch %s, from %.7s. All your tools run there now.\n",
			lane.Path, lane.Branch, t.Base) +
		optional("Somebody worked in it before; it holds:\n%s\n", escape(had)) +
		optional("The last attempt left this: %s\n", escape(t.Note)) +
		optional("The check, on the merged tree: %s\n", check) + plan +
		fmt.Sprintf("When it is done: complete_task{task_id: %d, summary}. "+
			"The runtime commits, merges, checks and lands.", t.ID)
}
