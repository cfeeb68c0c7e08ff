package chat

import (
	"context"
	"strings"
)

// command is what one slash does.
type command struct {
	name, args, does string
	// muster is the command line that it stands for; its arguments follow.
	muster []string
}

// commands in the order in which /help shows them.
var commands = []command{
	{name: "tasks", does: "the board", muster: []string{"task", "list"}},
	{name: "team", does: "who does what", muster: []string{"team", "list"}},
	{name: "inbox", args: "[name]", does: "mail that waits and what came last", muster: []string{"mail", "list", "--last", "20"}},
	{name: "worktrees", does: "the lanes", muster: []string{"worktree", "list"}},
	{name: "requests", does: "questions that wait for somebody", muster: []string{"requests"}},
	{name: "approve", args: "ID", does: "say yes to one", muster: []string{"approve"}},
	{name: "reject", args: "ID why", does: "say no to one", muster: []string{"reject"}},
	{name: "events", does: "what happened last", muster: []string{"log", "-n", "20"}},
	{name: "resume", does: "go on with a team that stopped; a message does, too"},
	{name: "archive", does: "put it aside instead", muster: []string{"archive"}},
	{name: "help", does: "this"},
	{name: "quit", does: "leave; what is open is kept"},
}

// command does what a line that begins with a slash says. over: the user leaves.
func (s *Session) command(ctx context.Context, line string) (over bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, "/"), " ")
	rest = strings.TrimSpace(rest)
	switch c, ok := find(name); {
	case !ok:
		s.Face.Print("there is no command /" + name + " (/help lists them; a message may begin with a space before the slash)")
	case name == "quit":
		return true, nil
	case name == "help":
		s.Face.Print(help())
	case name == "archive" && s.Begun:
		s.Face.Print("the team is at work; leave first: /quit, then muster archive")
	case name == "resume" && (s.Begun || !s.Stopped):
		s.Face.Print("no team has stopped here")
	case name == "resume":
		s.begin("")
	default:
		args := append([]string{}, c.muster...)
		switch {
		case rest == "":
		case name == "reject":
			id, why, _ := strings.Cut(rest, " ")
			args = append(args, id, "--", strings.TrimSpace(why))
			if strings.TrimSpace(why) == "" {
				args = args[:len(args)-2]
			}
		default:
			args = append(args, strings.Fields(rest)...)
		}
		s.Face.Print(strings.TrimRight(s.Command(ctx, args...), "\n"))
		if name == "archive" {
			s.Stopped = false
		}
		if name == "inbox" {
			s.mail(ctx)
		}
	}
	return false, nil
}

func find(name string) (command, bool) {
	for _, c := range commands {
		if c.name == name {
			return c, true
		}
	}
	return command{}, false
}

func help() string {
	var b strings.Builder
	for _, c := range commands {
		head := strings.TrimSpace("/" + c.name + " " + c.args)
		b.WriteString("  " + head + strings.Repeat(" ", max(18-len(head), 1)) + c.does + "\n")
	}
	b.WriteString("  Ctrl-C            stops the lead's turn; twice: leave\n")
	b.WriteString("  Alt-Enter         a new line in a message\n")
	b.WriteString("  Tab, Up, Ctrl-R   complete, earlier lines, search them")
	return b.String()
}
