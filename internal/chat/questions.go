package chat

import (
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/terminal"
	"muster/internal/view"
)

// leaveQuestion is the ID of the question whether a team works on when the user leaves.
const leaveQuestion = "leave"

// Answers answer questions with what the user types. All fields but Answered must be set.
type Answers struct {
	// Waiting returns the requests that the user may answer, and those of them that are shown to the user.
	Waiting func(ctx context.Context) (all, shown []muster.Request)
	// Command runs a muster command. It returns what that prints, and whether it succeeds.
	Command func(ctx context.Context, args ...string) (printed string, ok bool)
	// Print shows whole lines, and Fill puts the beginning of a line into the input.
	Print, Fill func(text string)
	// Answered is called when an answer was given; nil: nothing is.
	Answered func()
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
	} else if s.Answered != nil {
		s.Answered()
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
		ids := view.Join(waiting, ", ", func(r muster.Request) string { return string(r.ID) })
		return nil, "several questions wait, so name one: " + ids
	}
	args = []string{name, id}
	if words = strings.TrimSpace(words); words != "" {
		args = append(args, "--", words) // the words are one argument, dashes and all
	}
	return args, ""
}
