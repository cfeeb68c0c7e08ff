package face

import (
	"strings"
	"time"

	"muster"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/tool/code"
	"muster/internal/view"
)

// maxChangeLines is how many changed lines of an edit stand in a question.
const maxChangeLines = 100

// narrow is the width below which a question leaves out what v shows.
const narrow = 60

// Ask returns a request as a terminal of a width asks it: the command, the plan or the edit, its task, why it is asked,
// and for how long it still waits.
func Ask(r muster.Request, p view.Paint, now time.Time, width int, subject func(muster.TaskID) string,
) terminal.Question {
	from := text.OneLine(string(r.From))
	q := terminal.Question{ID: string(r.ID), Title: from + " asks: " + view.Question(r),
		Note: "waits " + view.Duration(view.WaitingTime(r, now)),
		Keys: []terminal.Key{{Name: "y", Label: "yes", Settles: true}}}
	plan := strings.TrimSpace(text.Clean(r.Plan))
	switch r.Kind {
	case muster.AskPermission:
		q.Title = from + " asks: go on?"
		if plan != "" {
			q.Title, plan = from+" asks: run this command?", "$ "+strings.ReplaceAll(plan, "\n", "\n  ")
		}
	case muster.AskPlan:
		q.Title = from + " asks: follow this plan?"
	}
	if plan != "" {
		q.Lines = append(q.Lines, plan)
	}
	if e := code.ReadUnified(r.Change); len(e.Files) > 0 {
		q.Title = from + " asks: make this change?"
		draw := func(e code.Edit) string {
			head := p.In(view.Plain, text.List(e.Files, 3)+"  "+e.Counts())
			return strings.Join(append([]string{head}, EditRows(p, e, maxChangeLines, "", 0, width-4)...), "\n")
		}
		q.Lines, q.Brief = append(q.Lines, draw(e)), draw(e.Bare())
	} else if r.Change != "" { // an earlier version has asked
		q.Lines = append(q.Lines, text.Clean(r.Change))
	}
	isNarrow := width < narrow
	var why []string
	if r.Reason != "" && !(isNarrow && r.Change != "") {
		why = append(why, askedBy(r))
	}
	if r.TaskID != 0 && !isNarrow {
		why = append(why, "task "+view.IDs([]muster.TaskID{r.TaskID})+" "+text.OneLine(subject(r.TaskID)))
	}
	if len(why) > 0 {
		q.Lines = append(q.Lines, p.In(view.Faint, strings.TrimSpace(strings.Join(why, " · "))))
	}
	if left := muster.Time(r.Deadline).Sub(now); r.Deadline != 0 && left > 0 {
		q.Note = view.Duration(left) + " left"
	}
	if len(r.Asks) > 0 {
		what := "all of this"
		switch asks := text.OneLine(r.Asks[0]); {
		case len(r.Asks) > 1:
		case asks == "bash("+text.OneLine(r.Plan)+")":
			what = "this command"
		case text.Columns(asks) <= 40:
			what = asks
		}
		q.Keys = append(q.Keys, terminal.Key{Name: "Y", Label: "allow " + what + " in this run",
			Long: "yes, and allow " + what + " for the rest of this run", Settles: true})
	}
	q.Keys = append(q.Keys, terminal.Key{Name: "n", Label: "no", Long: "no, and say why"},
		terminal.Key{Name: "v", Label: "view", Long: "view all of it"})
	return q
}

// askedBy returns the rule by which a request is asked, and the part of the command that it is about where the command
// has others.
func askedBy(r muster.Request) string {
	reason := text.OneLine(r.Reason)
	// The part of the command stands before its rule, in which there may be brackets too.
	i := strings.LastIndex(reason, " (")
	isSplit := func(i int) bool {
		if r.Change != "" {
			return strings.Count(reason[i:], "(") >= strings.Count(reason[i:], ")")
		}
		return strings.Contains(text.OneLine(r.Plan), reason[:i])
	}
	for i > 0 && !isSplit(i) {
		i = strings.LastIndex(reason[:i], " (")
	}
	if i <= 0 {
		return reason
	}
	of := ""
	if r.Change == "" && reason[:i] != text.OneLine(r.Plan) {
		of = " for " + reason[:i]
	}
	rule := strings.TrimSuffix(reason[i+len(" ("):], ")")
	return "rule" + of + ": " + strings.Replace(rule, "the user's config.yaml", "your config.yaml", 1)
}
