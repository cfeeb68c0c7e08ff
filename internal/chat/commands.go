package chat

import (
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/commands"
)

// command is one slash command.
type command struct {
	name, args, does string
	// muster is the command line that it stands for; the user's arguments follow it.
	muster []string
}

// builtin lists the commands that a conversation has by itself, in the order in which /help shows them.
var builtin = []command{
	// These run the muster command of the same job, so both print the same.
	{name: "status", does: "how the team stands, and what needs you", muster: []string{"status"}},
	{name: "tasks", does: "the board", muster: []string{"task", "list"}},
	{name: "team", does: "who does what", muster: []string{"team", "list"}},
	{name: "inbox", args: "[name]", does: "mail that waits and what came last",
		muster: []string{"mail", "list", "--last", "20"}},
	{name: "diff", args: "TASK", does: "what a task has changed", muster: []string{"diff"}},
	{name: "retry", args: "TASK", does: "let a task that needs you be tried again", muster: []string{"task", "retry"}},
	{name: "undo", args: "TASK", does: "take back what a task has landed, after the check", muster: []string{"undo"}},
	{name: "open", args: "[N]", does: "all of a tool call of the lead: what went in and out"},
	{name: "worktrees", does: "the lanes", muster: []string{"worktree", "list"}},
	{name: "requests", args: "[show ID]", does: "questions that wait for somebody; with ID, all of one",
		muster: []string{"requests"}},
	{name: "approve", args: "ID", does: "say yes to a question", muster: []string{"approve"}},
	{name: "reject", args: "ID why", does: "say no to a question", muster: []string{"reject"}},
	{name: "context", args: "[name]", does: "what fills a member's context window", muster: []string{"context"}},
	{name: "cost", does: "what was spent, and on what", muster: []string{"cost"}},
	{name: "events", does: "what happened last", muster: []string{"log", "-n", "20"}},
	{name: "watch", does: "how to watch the team in another terminal"},
	// These are handled by runCommand itself, before or in place of a muster command.
	{name: "model", args: "[NAME]", does: "the models and their prices; another one before a run begins"},
	{name: "compact", args: "[focus]", does: "shorten the lead's conversation to a summary"},
	{name: "clear", does: "let the lead begin anew, with the goal and the board alone"},
	{name: "resume", does: "go on with a team that stopped; a message does, too"},
	{name: "archive", does: "put its state and lanes aside instead", muster: []string{"archive"}},
	{name: "help", does: "this"},
	{name: "quit", does: "leave; what is open is kept"},
}

// Builtin returns the names of the commands that a conversation has by itself.
func Builtin() (names []string) {
	for _, c := range builtin {
		names = append(names, c.name)
	}
	return names
}

// runCommand runs a line that begins with a slash. It returns true if the user leaves.
func (s *Session) runCommand(ctx context.Context, line string) (over bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	rest = strings.TrimSpace(rest)
	switch i := slices.IndexFunc(builtin, func(c command) bool { return c.name == name }); {
	case i < 0:
		s.sayCustom(ctx, name, rest)
	case name == "quit":
		return true
	case name == "help":
		s.Face.Print(helpText(s.custom()))
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
		s.Face.Print("the team is at work; leave first: /quit, then muster archive")
	// A team can be resumed once, and only before anything was said.
	case name == "resume" && (s.HasBegun || !s.Stopped):
		s.Face.Print("no team has stopped here")
	case name == "resume":
		s.beginRun("")
	default:
		args := slices.Clone(builtin[i].muster)
		if id, why, ok := strings.Cut(rest, " "); ok && name == "reject" {
			args = append(args, id, "--", strings.TrimSpace(why)) // the reason is one argument, dashes and all
		} else {
			args = append(args, strings.Fields(rest)...)
		}
		s.Face.Print(strings.TrimRight(s.Command(ctx, args...), "\n"))
		// What has been put aside cannot go on: the next words begin a run of their own.
		if name == "archive" {
			s.Stopped = false
		}
		// Mail for the user is shown with its whole text and taken, as when it arrives.
		if name == "inbox" {
			s.Mail(ctx)
		}
	}
	return false
}

// helpLine is the line of the help for a command.
func helpLine(head, does string) string {
	return "  /" + head + strings.Repeat(" ", max(17-len(head), 2)) + does + "\n"
}

// helpText lists the commands and the most important keys.
func helpText(custom []commands.Command) string {
	var b strings.Builder
	for _, c := range builtin {
		b.WriteString(helpLine(strings.TrimSpace(c.name+" "+c.args), c.does))
	}
	b.WriteString(customText(custom))
	b.WriteString("  Ctrl-C            stops the lead's turn; twice: leave\n")
	b.WriteString("  Alt-Enter         a new line in a message\n")
	b.WriteString("  Tab, Up, Ctrl-R   complete, earlier lines, search them\n")
	b.WriteString("  Ctrl-V            puts in the image of the clipboard\n")
	b.WriteString("  / and @           commands; files and members. Esc closes what they show\n")
	b.WriteString("  !COMMAND          runs in your shell; the lead reads the output with your next message")
	return b.String()
}
