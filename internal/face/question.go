package face

import (
	"context"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// Question is all that somebody needs to answer a request: what is asked, about which task, and what its lane has
// changed so far.
type Question struct {
	Request muster.Request `json:"request"`
	Task    *muster.Task   `json:"task,omitempty"` // nil where the request is about none
	Diff    *team.Diff     `json:"diff,omitempty"`
	// NoDiff is why there is no Diff of the task.
	NoDiff string `json:"no_diff,omitempty"`
}

// ReadQuestion reads a request with what belongs to it. Only the request itself must be there: a plan can be judged
// without its task or its lane.
func ReadQuestion(ctx context.Context, t *team.Team, id muster.RequestID) (q Question, err error) {
	if q.Request, err = t.Requests().Get(ctx, id); err != nil || q.Request.TaskID == 0 {
		return q, err
	}
	// Another program may have written a request for a task that does not exist.
	task, err := t.Tasks().Get(ctx, q.Request.TaskID)
	if err != nil {
		q.NoDiff = err.Error()
		return q, nil //nolint:nilerr // NoDiff says it.
	}
	q.Task = &task
	diff, err := t.Tasks().Diff(ctx, task.ID)
	if err != nil {
		q.NoDiff = err.Error()
		return q, nil //nolint:nilerr // NoDiff says it.
	}
	q.Diff = &diff
	return q, nil
}

// maxDiffLines is how many lines of a difference stand below a question. More would hide what is asked.
const maxDiffLines = 200

// Draw returns the question as people read it: who asks, the whole text, the task, and its difference. What to type
// stands below it where the answer isTyped: elsewhere a key answers.
func (q Question) Draw(s view.Screen, now time.Time, isTyped bool) string {
	r, w := q.Request, new(strings.Builder)
	fmt.Fprintf(w, "%s  %s\n", text.OneLine(string(r.ID)), view.Question(r))
	v := view.Table{Titles: []string{"", ""}, Wide: 1}
	v.Row("from", view.Named(r.From))
	v.Row("to", r.To)
	v.Row("asked", view.Clock(muster.Time(r.CreatedAt), now))
	v.Row("status", view.RequestState(r.Status))
	if r.Status == muster.RequestPending {
		v.Row("waits", view.Duration(view.WaitingTime(r, now)))
		if r.Deadline != 0 {
			v.Row("until", view.Clock(muster.Time(r.Deadline), now))
		}
	}
	if r.ResolvedBy != "" {
		v.Row("answered", view.Clock(muster.Time(r.ResolvedAt), now)+" by "+string(r.ResolvedBy))
	}
	w.WriteString(v.Draw(s))
	if r.Kind == muster.AskPermission {
		section(w, "command", r.Plan)
	} else {
		section(w, "plan", r.Plan)
	}
	section(w, "change", r.Change)
	section(w, "reason", r.Reason)
	section(w, "answer", r.Response)
	if q.Task != nil {
		section(w, fmt.Sprintf("task %d", q.Task.ID), text.OneLine(q.Task.Subject)+"\n"+q.Task.Description)
	}
	if r.TaskID != 0 {
		w.WriteString("\n" + q.changes(s))
	}
	// No command is given that would be refused: the user decides only what the lead may decide too.
	if isTyped && r.Status == muster.RequestPending && (r.To == muster.Lead || r.To == muster.User) {
		fmt.Fprintf(w, "\nsay yes:  muster approve %[1]s [COMMENT]\nsay no:   muster reject %[1]s \"why\"\n", r.ID)
		if len(r.Asks) > 0 {
			fmt.Fprintf(w, "for longer:  muster approve %s --run, until the run ends; --always, in this repository\n",
				r.ID)
		}
	}
	return w.String()
}

// section writes a text below its title. An empty one is left out.
func section(w *strings.Builder, title, words string) {
	if words = strings.TrimSpace(text.Clean(words)); words != "" {
		fmt.Fprintf(w, "\n%s\n  %s\n", title, strings.ReplaceAll(words, "\n", "\n  "))
	}
}

// changes returns what the task has changed so far. A long difference is cut, and a line says how to read the rest.
func (q Question) changes(s view.Screen) string {
	switch {
	case q.Diff == nil:
		return "changes so far: none to show: " + text.OneLine(q.NoDiff) + "\n"
	// A plan is asked for before the work begins, so an empty lane is the usual case.
	case len(q.Diff.Files) == 0:
		return "changes so far: none\n"
	}
	lines := q.Diff.Lines()
	more := ""
	if n := len(lines) - maxDiffLines; n > 0 {
		lines = lines[:maxDiffLines]
		more = fmt.Sprintf("... and %s: muster diff %d\n", text.Count(n, "more line"), q.Request.TaskID)
	}
	return "changes so far: " + text.Count(len(q.Diff.Files), "file") + "\n" +
		view.Diff(s, lines, nil) + more
}
