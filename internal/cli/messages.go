package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// mailCommands are the commands of the mail. What the user sends comes from muster.User, and what waits for the
// user is listed here.
type mailCommands struct{ *App }

func (m mailCommands) group() *cobra.Command {
	return newGroup("mail", "write to members and read what they write to you", m.send(), m.list())
}

// send returns muster mail send. Standard input is read before the workspace is opened, so a slow pipe holds
// nothing open. The answer names who got the mail, and not who was to get it.
func (m mailCommands) send() *cobra.Command {
	return &cobra.Command{Use: "send TO TEXT", Short: "write to a member, or to all; it comes from user",
		Args: namedArgs("TO", "TEXT..."),
		Long: "TO is a member's name, lead, or all (every member that has not shut down).\n" +
			"TEXT may be -, which reads it from standard input.",
		RunE: func(c *cobra.Command, args []string) error {
			to := muster.Name(args[0])
			body, err := m.textOrStdin(strings.Join(args[1:], " "))
			if err != nil {
				return err
			}
			return m.telling(func(c *cobra.Command, o opened, _ []string) error {
				if to != muster.All {
					return m.sendOne(c.Context(), o.Team, to, body)
				}
				sent, err := o.Mail().SendAll(c.Context(), body)
				return m.printLine(sent, err, "mail sent to %s",
					view.Join(sent, ", ", func(x muster.Message) string { return string(x.To) }))
			})(c, args)
		}}
}

// sendOne writes to one member. One that has shut down gets the mail too, and the command says when it will read
// it. The mail is not refused, because the member may be spawned again.
func (m mailCommands) sendOne(ctx context.Context, t *team.Team, to muster.Name, body string) error {
	sent, err := t.Mail().Send(ctx, to, body)
	if err != nil {
		return err
	}
	later := ""
	switch who, err := t.Members().Get(ctx, sent.To); {
	case err != nil || who.Status != muster.Shutdown: // the user has no record
	case sent.To == muster.Lead:
		later = ", which has shut down and reads it in the next run"
	default:
		later = ", which has shut down and reads it when it is spawned again"
	}
	return m.printLine(sent, nil, "mail sent to %s%s", sent.To, later)
}

// list returns muster mail list. Only with --take does it change anything. Another member's mail can be looked at
// but not taken, because its runtime must find it in its inbox.
func (m mailCommands) list() *cobra.Command {
	var take bool
	var last int
	c := &cobra.Command{Use: "list [NAME]", Short: "the mail that waits for you, or for NAME",
		Args: namedArgs("[NAME]"),
		Long: "Mail for user waits until it is taken: with --take it is printed and removed.\n" +
			"A member's mail is taken by its own runtime only."}
	c.Flags().IntVar(&last, "last", 0, "the last `N` that were delivered, too")
	c.Flags().BoolVar(&take, "take", false, "remove what was printed (your own mail only)")
	c.RunE = func(c *cobra.Command, args []string) error {
		box := muster.User
		if len(args) > 0 {
			box = muster.Name(args[0])
		}
		if take && box != muster.User {
			return &usageError{c.CommandPath(),
				"only your own mail can be taken: " + string(box) + "'s is taken by its runtime"}
		}
		// The same action serves both forms. Only --take changes anything.
		do := func(c *cobra.Command, o opened, _ []string) error {
			// Delivered mail is older than mail that waits, so it comes first.
			show := func(waiting []muster.Message) error {
				delivered, err := o.Mail().Delivered(c.Context(), box, last)
				if err != nil {
					return err
				}
				return m.printMail(append(delivered, waiting...), box)
			}
			// What is taken is removed only when it was printed without an error.
			if take {
				return o.Mail().Take(c.Context(), show)
			}
			waiting, err := o.Mail().Pending(c.Context(), box)
			if err != nil {
				return err
			}
			return show(waiting)
		}
		if take {
			return m.changing(do)(c, args)
		}
		// Without a team nobody can be known by name, so no name is wrong there.
		return m.looking(func() error { return m.printMail(nil, box) }, do)(c, args)
	}
	return c
}

// printMail prints mail with its sender and time, or as JSON. The kind of a mail is shown only where it is not an
// ordinary message.
func (m mailCommands) printMail(all []muster.Message, box muster.Name) error {
	return m.print(append([]muster.Message{}, all...), func(s view.Screen) string {
		if len(all) == 0 {
			return fmt.Sprintf("no mail waits for %s\n", box)
		}
		var words strings.Builder
		for _, x := range all {
			// Requests and the news of landings are mails too, and are told apart by their type.
			kind := view.MailWord(x.Type)
			if kind != "" {
				kind = " (" + kind + ")"
			}
			from := s.Who(string(x.From), text.OneLine(string(x.From)))
			at := view.Clock(muster.Time(x.At), m.Now())
			fmt.Fprintf(&words, "%s  %s%s\n  %s\n", at, from, kind, indentedBody(x))
		}
		return words.String()
	})
}

// indentedBody returns the text of a mail, with all lines but the first indented. The sender stands on the first
// line, and the rest is set off from the next mail.
func indentedBody(m muster.Message) string {
	return strings.ReplaceAll(strings.TrimSpace(text.Clean(m.Content)), "\n", "\n  ")
}
