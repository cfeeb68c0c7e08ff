package chat

import (
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/commands"
	"muster/internal/view"
)

// Command is one slash command.
type Command struct {
	Name, Args, Does string
	// Muster is the command line that it stands for; the user's arguments follow it.
	Muster []string
}

// builtin lists the commands that a conversation has beside those of the command line, in the order in which /help
// shows them.
var builtin = []Command{
	{Name: "tasks", Does: "the board", Muster: []string{"task", "list"}},
	{Name: "team", Does: "who does what", Muster: []string{"team", "list"}},
	{Name: "inbox", Args: "[name]", Does: "mail that waits and what came last",
		Muster: []string{"mail", "list", "--last", "20"}},
	{Name: "worktrees", Does: "the lanes", Muster: []string{"worktree", "list"}},
	{Name: "events", Does: "what happened last", Muster: []string{"log", "-n", "20"}},
	{Name: "retry", Args: "TASK", Does: "let a task that needs you be tried again", Muster: []string{"task", "retry"}},
	{Name: "open", Args: "[N]", Does: "all of a tool call of the lead: what went in and out"},
	{Name: "approve", Args: "[ID]", Does: "say yes to a question; without ID to the only one"},
	{Name: "reject", Args: "[ID] why", Does: "say no to a question"},
	{Name: "watch", Does: "how to watch the team in another terminal"},
	{Name: "model", Args: "[NAME]", Does: "the models and their prices; another one before a run begins"},
	{Name: "compact", Args: "[focus]", Does: "shorten the lead's conversation to a summary"},
	{Name: "clear", Does: "let the lead begin anew, with the goal and the board alone"},
	{Name: "resume", Does: "go on with a team that stopped; a message does, too"},
	{Name: "archive", Args: "[--yes]", Does: "list what was put aside; --yes: put its state and lanes aside too"},
	{Name: "help", Does: "this"},
	{Name: "quit", Does: "leave; what is open is kept"},
}

// Builtin returns the names of the commands that a conversation has by itself.
func Builtin() (names []string) {
	for _, c := range builtin {
		names = append(names, c.Name)
	}
	return names
}

// runCommand runs a line that begins with a slash. It returns true if the user leaves.
func (s *Session) runCommand(ctx context.Context, line string) (over bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	rest = strings.TrimSpace(rest)
	switch i := slices.IndexFunc(builtin, func(c Command) bool { return c.Name == name }); {
	case i < 0:
		s.runOther(ctx, name, rest)
	case name == "team" && rest != "": // muster team has commands of its own
		s.printCommand(ctx, append([]string{name}, commands.Split(rest)...)...)
	case name == "quit":
		return true
	case name == "help":
		s.Face.Print(helpText(s.custom(), s.Commands()))
	case name == "watch":
		s.Face.Print("in another terminal: muster watch   as lines: muster log -f")
	case name == "open":
		s.Face.Print(s.Open(ctx, rest))
	case (name == "compact" || name == "clear") && !s.HasBegun:
		s.Face.Print("no lead is at work here")
	case name == "clear":
		s.Lead.Interrupt() // what its turn is about is gone
		text := "the lead begins anew: it knows the goal, the team and the board, and nothing that was said"
		if err := s.Clear(ctx); err != nil {
			text = muster.PlainText(err)
		}
		s.Face.Print(text)
	case name == "compact":
		text := "the lead's conversation is shortened at its next step"
		if err := s.Compact(ctx, rest); err != nil {
			text = muster.PlainText(err)
		}
		s.Face.Print(text)
	case name == "model":
		s.Face.Print(s.Model(ctx, rest))
	case name == "archive" && s.HasBegun:
		s.Face.Print("the team is at work; leave first: /quit, then muster archive --yes")
	case name == "archive":
		args := append([]string{name}, commands.Split(rest)...)
		printed, ok := s.Command(ctx, args...)
		s.Face.Print(strings.TrimRight(printed, "\n"))
		// What has been put aside cannot go on: the next words begin a run of their own.
		if ok && slices.Contains(args, "--yes") {
			s.Stopped = false
		}
	// A team can be resumed once, and only before anything was said.
	case name == "resume" && (s.HasBegun || !s.Stopped):
		s.Face.Print("no team has stopped here")
	case name == "resume":
		s.goOn()
	case name == "approve" || name == "reject":
		s.answers().Line(ctx, name, rest)
	default:
		args := append(slices.Clone(builtin[i].Muster), commands.Split(rest)...)
		s.printCommand(ctx, args...)
		// Mail for the user is shown with its whole text and taken, as when it arrives.
		if name == "inbox" {
			s.Mail(ctx)
		}
	}
	return false
}

// runOther runs a command of the repository or of the user, or else one of the command line.
func (s *Session) runOther(ctx context.Context, name, rest string) {
	_, isCustom := commands.Named(s.custom(), name)
	isMuster := slices.ContainsFunc(s.Commands(), func(c Command) bool { return c.Name == name })
	if isCustom || !isMuster {
		s.sayCustom(ctx, name, rest)
		return
	}
	args := append([]string{name}, commands.Split(rest)...)
	if name == "log" && (slices.Contains(args, "-f") || slices.Contains(args, "--follow")) {
		s.Face.Print("what happens is shown here anyway; in another terminal: muster log -f")
		return
	}
	if s.Shell == nil { // a pipe, whose lines are taken one after the other
		s.printCommand(ctx, args...)
		return
	}
	// It may take its time, so it does not keep the user from typing.
	s.runAside(ctx, func(ctx context.Context) { s.printCommand(ctx, args...) })
}

// helpLine is the line of the help for a command.
func helpLine(head, does string) string {
	return "  /" + head + strings.Repeat(" ", max(17-len(head), 2)) + does + "\n"
}

// helpText lists the commands and the most important keys.
func helpText(custom []commands.Command, muster []Command) string {
	var b strings.Builder
	for _, c := range builtin {
		b.WriteString(helpLine(strings.TrimSpace(c.Name+" "+c.Args), c.Does))
	}
	b.WriteString(customText(custom))
	if len(muster) > 0 {
		names := view.Join(muster, " ", func(c Command) string { return "/" + c.Name })
		b.WriteString("  as in a shell: " + names + "\n")
	}
	b.WriteString("  @NAME TEXT        is mail to a teammate; anything else is for the lead\n")
	b.WriteString("  Ctrl-C            stops the lead's turn; twice: leave\n")
	b.WriteString("  Alt-Enter         a new line in a message\n")
	b.WriteString("  Tab, Up, Ctrl-R   complete, earlier lines, search them\n")
	b.WriteString("  Ctrl-O            shows what the lead thought last\n")
	b.WriteString("  Ctrl-V            puts in the image of the clipboard\n")
	b.WriteString("  / and @           commands; files and members. Esc closes what they show\n")
	b.WriteString("  !COMMAND          runs in your shell; the lead reads the output with your next message")
	return b.String()
}
