package face

import (
	"slices"
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
	isNarrow, asks := width < narrow, view.Question(r)
	q := terminal.Question{ID: string(r.ID), Note: "waits " + view.Duration(view.WaitingTime(r, now)),
		Keys: []terminal.Key{{Name: "y", Label: "yes", Settles: true},
			{Name: "n", Label: "no", Long: "no, and say why"}, {Name: "v", Label: "view", Long: "view all of it"}}}
	plan := strings.TrimSpace(text.Clean(r.Plan))
	switch r.Kind {
	case muster.AskPermission:
		if asks = "go on?"; plan != "" {
			asks, plan = "run this command?", "$ "+strings.ReplaceAll(plan, "\n", "\n  ")
		}
	case muster.AskPlan:
		asks = "follow this plan?"
	}
	if plan != "" {
		q.Lines = append(q.Lines, plan)
	}
	if e := code.ReadUnified(r.Change); len(e.Files) > 0 {
		if asks = "make this change?"; len(e.Files) == 1 && text.Columns(e.Files[0]) < width/2-15 {
			asks = "change " + e.Files[0] + "?"
			if name, isNew := strings.CutSuffix(e.Files[0], code.NewSuffix); isNew {
				asks = "create " + name + "?"
			}
		}
		draw := func(e code.Edit) string {
			head := text.List(e.Files, 3) + "  " + p.Counts(e.Counts())
			return strings.Join(append([]string{head}, EditRows(p, e, maxChangeLines, "", 0, width-4)...), "\n")
		}
		q.Lines, q.Brief = append(q.Lines, draw(e)), draw(e.Bare())
	} else if r.Change != "" { // an earlier version has asked
		q.Lines = append(q.Lines, text.Clean(r.Change))
	}
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
	switch left := muster.Time(r.Deadline).Sub(now); {
	case r.Deadline == 0 || left <= 0:
	case isNarrow:
		q.Note = view.Duration(left)
	case r.Kind == muster.AskPermission:
		q.Note = view.Duration(left) + " left, then no"
	default:
		q.Note = view.Duration(left) + " left"
	}
	if len(r.Asks) > 0 {
		what := "all of this"
		switch rule := text.OneLine(r.Asks[0]); {
		case len(r.Asks) > 1:
		case rule == "bash("+text.OneLine(r.Plan)+")":
			what = "this command"
		case r.Change != "" && strings.HasSuffix(rule, ")") && text.Columns(rule) <= 40: // of any tool that edits
			_, file, _ := strings.Cut(strings.TrimSuffix(rule, ")"), "(")
			what = "changes to " + file
		case text.Columns(rule) <= 40:
			what = rule
		}
		at := len(q.Keys)
		if !isNarrow {
			at = 1
		}
		q.Keys = slices.Insert(q.Keys, at, terminal.Key{Name: "Y", Label: "allow " + what + " in this run",
			Long: "yes, and allow " + what + " for the rest of this run", Settles: true})
	}
	q.Title = text.OneLine(string(r.From))
	if !isNarrow {
		q.Title += " asks"
	}
	q.Title += ": " + asks
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
