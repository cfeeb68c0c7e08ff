package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
)

// Need is one thing that waits for the user.
type Need struct {
	// Name is what it goes by: the id of a request, "task 3", "mail", "budget", "run" or the name of a member.
	Name string `json:"name"`
	// What says it in a few words, and Command is what to type for it in a shell.
	What    string `json:"what"`
	Command string `json:"command"`

	// Request is a question, Task one that was given up, and Member who waits for its model. All are empty where mail
	// waits, or a budget is nearly spent.
	Request *muster.Request `json:"request,omitempty"`
	Task    *muster.Task    `json:"task,omitempty"`
	Member  muster.Name     `json:"member,omitempty"`
}

// The names of needs that are about no task, request or member.
const (
	NeedMail   = "mail"
	NeedBudget = "budget"
	NeedRun    = "run" // it has stopped with work left, and no other need says why
)

// Needs returns what waits for the user, by its kind: questions, work that was given up, mail, budgets that are nearly
// spent, and members that wait for their model. Requests to the lead are in it too, because the user may answer for the
// lead.
func (o Overview) Needs() (all []Need) {
	for _, r := range o.Requests {
		if !IsForUser(r, o.Now) {
			continue
		}
		what := fmt.Sprintf("%s of %s, waits %s", Question(r), r.From, Duration(WaitingTime(r, o.Now)))
		switch r.Kind {
		case muster.AskPermission:
			what = text.CutColumns(fmt.Sprintf("%s asks to run %s", r.From, text.OneLine(cmp.Or(r.Plan, r.Reason))), 66)
			if r.Deadline != 0 {
				what += ", " + Duration(muster.Time(r.Deadline).Sub(o.Now)) + " left"
			}
		case muster.AskPlan:
			what = fmt.Sprintf("plan of %s for %d, waits %s", r.From, r.TaskID, Duration(WaitingTime(r, o.Now)))
		}
		all = append(all, Need{Name: string(r.ID), What: what, Request: &r,
			Command: fmt.Sprintf("muster approve %[1]s | muster reject %[1]s \"why\"", r.ID)})
	}
	// A task that was given up waits until somebody retries it: no member may claim it.
	for _, x := range o.Needy {
		all = append(all, Need{Name: fmt.Sprintf("task %d", x.ID), Task: &x,
			What:    text.CutColumns(Because(text.OneLine(x.Subject), text.OneLine(x.Result)), 80),
			Command: fmt.Sprintf("muster task retry %d", x.ID)})
	}
	if o.Mail > 0 {
		all = append(all, Need{Name: NeedMail, What: text.Count(o.Mail, "mail") + " for you",
			Command: "muster mail list --take"})
	}
	all = append(append(all, o.budgetNeeds()...), o.parkedNeeds()...)
	isReason := func(n Need) bool { return n.Task != nil || n.Name == NeedBudget }
	if o.Run.Stopped != "" && !o.Alive && !slices.ContainsFunc(all, isReason) {
		need := Need{Name: NeedRun, What: text.CutColumns(text.OneLine(o.Run.Stopped), 160), Command: "muster resume"}
		if o.Run.EndedAt > 0 && !slices.ContainsFunc(o.Tasks, muster.Task.Open) { // there is nothing to go on with
			need.Command = "muster log"
		}
		all = append(all, need)
	}
	return all
}

// IsForUser reports whether a request that is pending waits for the user at a moment. Those to the lead do, but not
// what the user asks of the lead. A permission is past its deadline where the process that asked has ended before.
func IsForUser(r muster.Request, now time.Time) bool {
	isOver := r.Kind == muster.AskPermission && r.Deadline != 0 && !muster.Time(r.Deadline).After(now)
	return r.From != muster.User && (r.To == muster.User || r.To == muster.Lead) && !isOver
}

// budgetNeeds returns the budgets of a run that goes on, or could, of which most is spent. The budget of a member or of
// a task that is spent has its task given up, which is a need of its own.
func (o Overview) budgetNeeds() []Need {
	if o.Run.EndedAt > 0 {
		return nil
	}
	need := Need{Name: NeedBudget}
	b, _ := spend.ParseBudget(o.Run.Budget) // another program may have written it
	switch used := b.Used(o.Spending.Total); {
	case used >= spend.WarnAt:
		need.What = fmt.Sprintf("%s is spent: %.0f%%", spentOf(o.Run.Budget, o.Spending.Total), 100*used)
		need.Command = "muster resume --budget " + b.Next(o.Spending.Total)
		if o.Alive { // a run keeps the budget that it began with
			need.Command = "muster stop && " + need.Command
		}
	case o.Presence.dayBudget != "": // what other repositories spend is in no record of the team
		need.What, need.Command = o.Presence.dayBudget, "muster config budget.day"
	default:
		return nil
	}
	return []Need{need}
}

// parkedNeeds returns the members that wait until their model's provider answers again. A provider that answers none of
// them is one thing and not thirty, so there is one need for all.
func (o Overview) parkedNeeds() []Need {
	var first Need
	others := 0
	for _, m := range o.Members {
		if !m.Alive || m.Status != muster.Working || !strings.HasPrefix(m.Doing, isParked) {
			continue
		}
		if first.Member != "" {
			others++
			continue
		}
		until := strings.TrimPrefix(text.OneLine(m.Doing), "parked ")
		first = Need{Name: string(m.Name), Member: m.Name, What: "waits for its model " + until,
			Command: "muster doctor"}
	}
	switch {
	case first.Member == "":
		return nil
	case others > 0:
		first.What = fmt.Sprintf("and %d more wait for the%s", others, strings.TrimPrefix(first.What, "waits for its"))
	}
	return []Need{first}
}

// isParked begins what the record of a member says that waits for its model.
const isParked = "parked until "

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
