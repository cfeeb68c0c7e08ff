// Package prompt holds what the runtime itself says to a model: the system prompts (lead.md, teammate.md and
// subagent.md, beside the code), the first message of the lead's conversation (goal.md), and what a member reads about
// the task that it has claimed (task.md).
//
// A system prompt depends on nothing that changes during a member's life: it is the beginning of every request, and
// providers cache requests by their beginning. Text that comes from users, tasks or programs is escaped, so that it
// cannot pass for the runtime's own marks. The descriptions and results of tools are with the tools.
package prompt

import (
	"embed"
	"fmt"
	"strings"
	"sync"
	"text/template"

	"muster"
	"muster/internal/mailbox"
)

//go:embed *.md
var files embed.FS

// texts returns the templates. They are parsed when the first is needed: most commands say nothing to a model.
var texts = sync.OnceValue(func() *template.Template {
	t := template.New("").Funcs(template.FuncMap{"escape": mailbox.Escape, "line": TaskLine})
	return template.Must(t.ParseFS(files, "*.md"))
})

// render returns the text of a file, with data in its places. The newline at the end of the file is not in it.
func render(file string, data any) string {
	var b strings.Builder
	template.Must(nil, texts().ExecuteTemplate(&b, file, data)) // the data of each file has one type, which fits
	return strings.TrimSuffix(b.String(), "\n")
}

// Lead returns the lead's system prompt. It does not change during the lead's life.
func Lead(team muster.Name) []string { return []string{render("lead.md", team)} }

// Teammate returns a teammate's system prompt. It does not change during its life.
func Teammate(name muster.Name, role string, team muster.Name) []string {
	return []string{render("teammate.md", map[string]any{"Name": name, "Role": role, "Team": team})}
}

// Subagent returns the system prompt of a subagent.
func Subagent() string { return render("subagent.md", nil) }

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
	return render("goal.md", map[string]any{"Run": run, "Open": open, "Failed": failed})
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

// Claimed returns the briefing as the owner reads it. What somebody else has written in it is escaped.
func Claimed(b Briefing) string { return render("task.md", b) }
