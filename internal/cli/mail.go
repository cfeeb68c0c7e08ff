package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/transcript"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/journal"
)

// mailCommands are the commands of the mail. What the user sends comes from muster.User, and what waits for the
// user is listed here.
type mailCommands struct{ *App }

// group returns muster mail and its commands.
func (m mailCommands) group() *cobra.Command {
	return newGroup("mail", "write to members and read what they write to you", m.send(), m.list())
}

// send returns muster mail send. Standard input is read before the workspace is opened, so a slow pipe holds
// nothing open.
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
			return m.changing(func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
				if to == muster.All {
					return m.sendAll(c.Context(), w, body)
				}
				return m.sendOne(c.Context(), w, to, body)
			})(c, args)
		}}
}

// sendOne writes to one member. One that has shut down gets the mail too, and the command says when it will read
// it. The mail is not refused, because the member may be spawned again.
func (m mailCommands) sendOne(ctx context.Context, w *workspace.Workspace, to muster.Name, body string) error {
	mail := muster.Message{Type: muster.MailMessage, From: muster.User, To: to, Content: body}
	sent, err := w.Mail(ctx).Send(ctx, mail)
	if err != nil {
		return err
	}
	later := ""
	switch who, err := w.Roster(ctx).Get(ctx, sent.To); {
	case err != nil || who.Status != muster.Shutdown: // the user has no record
	case sent.To == muster.Lead:
		later = ", which has shut down and reads it in the next run"
	default:
		later = ", which has shut down and reads it when it is spawned again"
	}
	return m.printLine(sent, "mail sent to %s%s", sent.To, later)
}

// sendAll writes to every member that has not shut down. The members are those at the time of the call: who joins
// later does not get the mail.
func (m mailCommands) sendAll(ctx context.Context, w *workspace.Workspace, body string) error {
	members, err := w.Roster(ctx).List(ctx)
	if err != nil {
		return err
	}
	var to []muster.Name
	for _, x := range members {
		if x.Status != muster.Shutdown {
			to = append(to, x.Name)
		}
	}
	if len(to) == 0 { // said, because a broadcast to nobody would look like success
		return muster.Errorf(muster.NotFound, "no mail sent: nobody is there to read it").WithHint("muster team list")
	}
	sent, err := w.Mail(ctx).Broadcast(ctx, muster.User, body, to)
	if err != nil {
		return err
	}
	// The answer names who got the mail, and not who was to get it.
	var names []muster.Name
	for _, x := range sent {
		names = append(names, x.To)
	}
	return m.printLine(sent, "mail sent to %s", joinNames(names, ", "))
}

// joinNames returns names as one text. It is strings.Join for names.
func joinNames(names []muster.Name, between string) string {
	var all []string
	for _, n := range names {
		all = append(all, string(n))
	}
	return strings.Join(all, between)
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
		// The same action serves both forms. Only --take needs a workspace that may be changed.
		do := func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			return m.printBox(c.Context(), w, box, last, take)
		}
		if !take {
			return m.looking(func() error { return m.printMail(nil, box) }, do)(c, args)
		}
		if box != muster.User {
			return &usageError{c.CommandPath(),
				"only your own mail can be taken: " + string(box) + "'s is taken by its runtime"}
		}
		return m.changing(do)(c, args)
	}
	return c
}

// printBox prints the mail that waits in a box, and the last that were delivered before it. With take it then removes
// what waited: in this order, because mail that is shown twice is better than mail that is lost.
func (m mailCommands) printBox(
	ctx context.Context, w *workspace.Workspace, box muster.Name, last int, take bool,
) error {
	known, near, err := w.Roster(ctx).Known(ctx, box)
	if err != nil {
		return err
	}
	if !known {
		return errNoMember(box, near)
	}
	all, end, err := waitingMail(ctx, w.Mail(ctx), box)
	if err != nil {
		return err
	}
	if last > 0 {
		delivered, err := deliveredMail(ctx, w, box, last, all)
		if err != nil {
			return err
		}
		// Delivered mail is older than mail that waits, so it comes first.
		all = append(delivered, all...)
	}
	if err := m.printMail(all, box); err != nil || !take || len(all) == 0 {
		return err
	}
	return w.Mail(ctx).Drop(ctx, box, end)
}

// errNoMember says that nobody has the name, and who has one like it. The names come from the roster, which looks
// for near ones.
func errNoMember(name muster.Name, near []muster.Name) error {
	text := fmt.Sprintf("there is no member %q", string(name))
	if len(near) > 0 {
		text += " (did you mean " + joinNames(near, " or ") + "?)"
	}
	return muster.Errorf(muster.NotFound, "%s", text).WithHint("muster team list")
}

// waitingMail returns all pending mail of a box, and the place after it. The place is what Mail.Drop needs to
// remove exactly these, and none that arrives later.
func waitingMail(
	ctx context.Context, mail *mailbox.Mail, box muster.Name,
) (all []muster.Message, end muster.Pos, err error) {
	// Peek returns as much as fits, so a large inbox takes several calls.
	for {
		some, next, left, err := mail.Peek(ctx, box, end, math.MaxInt32)
		if err != nil {
			return nil, 0, err
		}
		all, end = append(all, some...), next
		if left == 0 {
			return all, end, nil
		}
	}
}

// deliveredMail returns the last n delivered mails of a box. A member's are in its conversation. The user's are
// only in the events, with as much of their text as those have, and waiting says which of them still wait. It is
// for reading back only, so events that cannot be read are left out.
func deliveredMail(
	ctx context.Context, w *workspace.Workspace, box muster.Name, n int, waiting []muster.Message,
) ([]muster.Message, error) {
	if box != muster.User {
		return transcript.LastDelivered(ctx, w.Store().Log(), box, n)
	}
	waits := map[muster.MessageID]bool{}
	for _, m := range waiting {
		waits[m.ID] = true
	}
	var sent []muster.Message
	for e, err := range w.Journal().Read(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		// A mail that still waits is printed with its whole text elsewhere, so it is not repeated here.
		id := muster.MessageID(e.Text("id"))
		if err == nil && e.Kind == journal.MailSent && e.Text("to") == string(box) && !waits[id] {
			sent = append(sent, muster.Message{ID: id, Type: muster.MessageType(e.Text("type")), From: e.Member,
				To: box, Content: e.Text("text"), At: e.At})
		}
	}
	return sent[max(0, len(sent)-n):], nil
}

// printMail prints mail with its sender and time, or as JSON. The kind of a mail is shown only where it is not an
// ordinary message.
func (m mailCommands) printMail(all []muster.Message, box muster.Name) error {
	return m.print(emptyNotNil(all), func(w io.Writer, p view.Paint, _ int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintf(w, "no mail waits for %s\n", box)
			return err
		}
		for _, x := range all {
			kind := ""
			if x.Type != muster.MailMessage {
				kind = " (" + view.OneLine(string(x.Type)) + ")"
			}
			from := p.Who(string(x.From), view.OneLine(string(x.From)))
			at := view.Clock(muster.Time(x.At), m.Now())
			if _, err := fmt.Fprintf(w, "%s  %s%s\n  %s\n", at, from, kind, indentedBody(x)); err != nil {
				return err
			}
		}
		return nil
	})
}

// indentedBody returns the text of a mail, with all lines but the first indented. The sender stands on the first
// line, and the rest is set off from the next mail.
func indentedBody(m muster.Message) string {
	return strings.ReplaceAll(strings.TrimSpace(view.ManyLines(m.Content)), "\n", "\n  ")
}
