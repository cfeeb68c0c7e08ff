package face

import (
	"strings"
	"time"

	"muster"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/view"
)

// Ask returns a request as the terminal asks it: the command or the plan, its task, why it is asked, and for how
// long it still waits.
func Ask(r muster.Request, p view.Paint, now time.Time, subject func(muster.TaskID) string) terminal.Question {
	from := text.OneLine(string(r.From))
	q := terminal.Question{ID: string(r.ID), Title: from + " asks: " + view.Question(r),
		Note: "waits " + view.Duration(view.WaitingTime(r, now)),
		Keys: []terminal.Key{{Name: "y", Label: "yes", Settles: true}, {Name: "n", Label: "no, with a reason"}}}
	plan := strings.TrimSpace(text.Clean(r.Plan))
	switch r.Kind {
	case muster.AskPermission:
		q.Title = from + " asks to go on"
		if plan != "" {
			q.Title, plan = from+" asks to run", "$ "+strings.ReplaceAll(plan, "\n", "\n  ")
		}
	case muster.AskPlan:
		q.Title = from + " asks for approval of a plan"
	}
	if plan != "" {
		q.Lines = append(q.Lines, plan)
	}
	if r.Change != "" {
		q.Title = from + " asks to change"
		q.Lines = append(q.Lines, strings.Join(changeLines(p, r.Change), "\n"))
	}
	reason := strings.ReplaceAll(text.OneLine(r.Reason), "the user's config.yaml", "your config.yaml")
	if reason != "" {
		// The part of the command that is asked about stands before its rule.
		i := strings.LastIndex(reason, " (")
		for i > 0 && !strings.Contains(text.OneLine(r.Plan), reason[:i]) {
			i = strings.LastIndex(reason[:i], " (")
		}
		if i > 0 {
			of := ""
			if reason[:i] != text.OneLine(r.Plan) {
				of = " for " + reason[:i]
			}
			reason = "rule" + of + ": " + strings.TrimSuffix(reason[i+len(" ("):], ")")
		}
		q.Lines = append(q.Lines, p.In(view.Faint, reason))
	}
	if r.TaskID != 0 {
		name := "for task " + view.IDs([]muster.TaskID{r.TaskID}) + " " + text.OneLine(subject(r.TaskID))
		q.Lines = append(q.Lines, p.In(view.Faint, strings.TrimSpace(name)))
	}
	if left := muster.Time(r.Deadline).Sub(now); r.Deadline != 0 && left > 0 {
		q.Note = view.Duration(left) + " left"
		if r.Kind == muster.AskPermission { // the call is refused then
			q.Note = "no in " + view.Duration(left)
		}
	}
	if len(r.Asks) > 0 {
		label := "yes, for the whole run"
		if what := text.OneLine(r.Asks[0]); len(r.Asks) == 1 && text.Columns(what) <= 40 {
			label = "yes to " + what + " in this run"
		}
		q.Keys = append(q.Keys, terminal.Key{Name: "Y", Label: label, Settles: true})
	}
	q.Keys = append(q.Keys, terminal.Key{Name: "v", Label: "all of it"})
	return q
}

// changeLines returns the difference of a permission as it is drawn: the lines that change, because there is little
// room.
func changeLines(p view.Paint, change string) (lines []string) {
	for line := range strings.SplitSeq(strings.TrimRight(text.Clean(change), "\n"), "\n") {
		tone := view.Faint
		switch {
		case strings.HasPrefix(line, " "), line == "":
			continue
		case strings.HasPrefix(line, "+"):
			tone = view.Good
		case strings.HasPrefix(line, "-"):
			tone = view.Bad
		case lines == nil: // the files
			tone = view.Plain
		}
		lines = append(lines, p.In(tone, strings.ReplaceAll(line, "\t", "    ")))
	}
	return lines
}
