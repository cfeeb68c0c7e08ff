package view

import (
	"fmt"

	"muster"
)

// Need is one thing that waits for the user.
type Need struct {
	// Name is what it goes by: the id of a request, "task 3" or "mail".
	Name string `json:"name"`
	// What says it in a few words, and Command is what to type for it in a shell.
	What    string `json:"what"`
	Command string `json:"command"`

	// Request is a question, and Task one that was given up. Both are nil where mail waits.
	Request *muster.Request `json:"request,omitempty"`
	Task    *muster.Task    `json:"task,omitempty"`
}

// Needs returns what waits for the user: questions, then work that was given up, then mail. Requests to the lead are in
// it too, because the user may answer for the lead.
func (o Overview) Needs() (all []Need) {
	for _, r := range o.Requests {
		if r.To != muster.User && r.To != muster.Lead {
			continue
		}
		what := fmt.Sprintf("%s of %s, waits %s", Question(r), r.From, Duration(WaitingTime(r, o.Now)))
		if r.Kind == muster.AskPlan {
			what = fmt.Sprintf("plan of %s for %d, waits %s", r.From, r.TaskID, Duration(WaitingTime(r, o.Now)))
		}
		all = append(all, Need{Name: string(r.ID), What: what, Request: &r,
			Command: fmt.Sprintf("muster approve %[1]s | muster reject %[1]s \"why\"", r.ID)})
	}
	// A task that was given up waits until somebody retries it: no member may claim it.
	for _, x := range o.Needy {
		all = append(all, Need{Name: fmt.Sprintf("task %d", x.ID), Task: &x,
			What:    Cut(Because(OneLine(x.Subject), OneLine(x.Result)), 80),
			Command: fmt.Sprintf("muster task retry %d", x.ID)})
	}
	if o.Mail > 0 {
		all = append(all, Need{Name: "mail", What: Count(o.Mail, "mail") + " for you",
			Command: "muster mail list --take"})
	}
	return all
}

// needsTable lists what waits, each with the command to type.
func needsTable(all []Need) Table {
	t := Table{Titles: []string{"", "", ""}, Wide: 1}
	for _, n := range all {
		what := any(n.What)
		if n.Task != nil {
			what = Text(n.What) // a subject is nobody's name
		}
		t.Row(Text("  "+n.Name), what, n.Command)
	}
	return t
}
