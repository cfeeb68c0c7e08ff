package view

import (
	"cmp"
	"fmt"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// reviewLine is the line of an event of a review. It has no model, whose name may be long: the log with --json and the
// commit have it.
func (t lineWriter) reviewLine() Line {
	name, role := t.taskName(), t.field("role", 40)
	l := Line{Who: cmp.Or(role, "landing"), Verb: "looks", Show: true, Text: name + " of " + t.who("nobody")}
	switch t.Kind {
	case journal.ReviewStarted:
		l.Text = nameWith(name, "to review the work of "+t.who("nobody"))
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
	}
	return l
}

// reviewed says in a line how many landed tasks were reviewed, "" where none was.
func reviewed(landed []muster.Task) string {
	n := 0
	for _, t := range landed {
		if t.Landed.Review != "" {
			n++
		}
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("reviewed before they landed: %d of %s", n, text.Count(len(landed), "task"))
}
