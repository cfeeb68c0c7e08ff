package chat

import (
	"context"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/terminal"
	"muster/internal/text"
	"muster/internal/view"
)

// leaveQuestion is the ID of the question whether a team works on when the user leaves.
const leaveQuestion = "leave"

// Question returns a request as the terminal asks it: the command or the plan, its task, why it is asked, and for how
// long it still waits.
func Question(r muster.Request, p view.Paint, now time.Time, subject func(muster.TaskID) string) terminal.Question {
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
		if what := text.OneLine(r.Asks[0]); len(r.Asks) == 1 && text.Columns(what) <= 24 {
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

// Answers answer questions with what the user types. All fields must be set.
type Answers struct {
	// Waiting returns the requests that the user may answer, and those of them that are shown to the user.
	Waiting func(ctx context.Context) (all, shown []muster.Request)
	// Command runs a muster command. It returns what that prints, and whether it succeeds.
	Command func(ctx context.Context, args ...string) (printed string, ok bool)
	// Print shows whole lines, and Fill puts the beginning of a line into the input.
	Print, Fill func(text string)
}

// Key does what a key says to a question.
func (s *Answers) Key(ctx context.Context, a terminal.Answer) {
	switch a.Key {
	case "y":
		s.decide(ctx, "approve", a.ID)
	case "Y":
		s.decide(ctx, "approve", "--run", a.ID)
	case "v":
		printed, _ := s.Command(ctx, "requests", "show", a.ID)
		s.Print(strings.TrimRight(printed, "\n"))
	case "n": // the reason is typed behind it
		line := "/reject "
		if _, shown := s.Waiting(ctx); len(shown) != 1 {
			line += a.ID + " "
		}
		s.Fill(line)
	}
}

// Line answers a question as the slash command name does, with what was typed behind it.
func (s *Answers) Line(ctx context.Context, name, rest string) {
	if args, problem := s.decision(ctx, name, rest); problem != "" {
		s.Print(problem)
	} else {
		s.decide(ctx, args...)
	}
}

// decide answers a question. The event of the answer says that it was given, so only what went wrong is printed.
func (s *Answers) decide(ctx context.Context, args ...string) {
	if printed, ok := s.Command(ctx, args...); !ok {
		s.Print(strings.TrimRight(printed, "\n"))
	}
}

// decision returns the arguments of muster approve or muster reject for what was typed behind the slash command. An ID
// may be left out where one question waits. problem says why there are none.
func (s *Answers) decision(ctx context.Context, name, rest string) (args []string, problem string) {
	id, words, _ := strings.Cut(rest, " ")
	all, waiting := s.Waiting(ctx)
	isNamed := slices.ContainsFunc(all, func(r muster.Request) bool { return string(r.ID) == id })
	switch {
	case isNamed || len(waiting) == 0 && id != "":
	case len(waiting) == 1 && (id == "" || name == "reject"):
		id, words = string(waiting[0].ID), rest
	case id == "" && len(waiting) == 0:
		return nil, "no question waits"
	case id == "":
		var ids []string
		for _, r := range waiting {
			ids = append(ids, string(r.ID))
		}
		return nil, "several questions wait, so name one: " + strings.Join(ids, ", ")
	}
	args = []string{name, id}
	if words = strings.TrimSpace(words); words != "" {
		args = append(args, "--", words) // the words are one argument, dashes and all
	}
	return args, ""
}
