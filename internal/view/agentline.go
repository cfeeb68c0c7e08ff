package view

import (
	"cmp"
	"fmt"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// agentLine is the line of an event of an agent that the runtime asks about a landing: a reviewer or an arbiter. It has
// no model, whose name may be long: the log with --json and the commit have it.
func (t lineWriter) agentLine() Line {
	name, role := t.taskName(), t.field("role", 40)
	l := Line{Who: cmp.Or(role, "landing"), Verb: "looks", Show: true, Text: name + " of " + t.who("nobody")}
	switch t.Kind {
	case journal.ReviewStarted:
		l.Text = nameWith(name, "to review the work of "+t.who("nobody"))
	case journal.ArbiterStarted:
		l.Verb, l.Text = "works", nameWith(name, "to bring it together with what has landed")
	case journal.ReviewEnded:
		switch result := t.Text("result"); result {
		case "approved":
			l.Verb, l.Tone, l.Text = "agrees", Good, nameWith(name, "approved "+seconds(t.Number("seconds")))
		case "returned":
			l.Verb, l.Tone = "denies", Bad
			l.Text = nameWith(name, text.Count(int(t.Number("comments")), "comment")+" "+seconds(t.Number("seconds")))
		default:
			l.Verb, l.Tone, l.Text = "fails", Bad, Because(nameWith(name, "no verdict"), t.field("text", 120))
		}
	case journal.ArbiterEnded:
		l.Verb, l.Text = "done", nameWith(name, "the check decides whether it lands")
		if problem := t.field("text", 120); problem != "" {
			l.Verb, l.Tone, l.Text = "fails", Bad, Because(nameWith(name, "could not work on it"), problem)
		}
	}
	return l
}

// agentsText says in a line which landed tasks were reviewed, and which an arbiter has brought together with others.
func agentsText(landed []muster.Task) string {
	reviewed, line := 0, ""
	var arbitrated []muster.TaskID
	for _, t := range landed {
		if t.Landed.Review != "" {
			reviewed++
		}
		if t.Arbiter != nil && t.Arbiter.EndedAt > 0 && t.Arbiter.Problem == "" {
			arbitrated = append(arbitrated, t.ID)
		}
	}
	if reviewed > 0 {
		line += fmt.Sprintf("reviewed before they landed: %d of %s", reviewed, text.Count(len(landed), "task"))
	}
	if len(arbitrated) > 0 {
		if line != "" {
			line += "; "
		}
		line += "brought together by an arbiter: task " + IDs(arbitrated)
	}
	return line
}
