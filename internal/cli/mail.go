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
	"muster/internal/view"
)

func (a *App) mailCommand() *cobra.Command {
	return a.group("mail", "write to members and read what they write to you", a.mailSend(), a.mailList())
}

func (a *App) mailSend() *cobra.Command {
	return &cobra.Command{Use: "send TO TEXT", Short: "write to a member, or to all; it comes from user", Args: exactly("TO", "TEXT..."),
		Long: "TO is a member's name, lead, or all (every member that has not shut down).\nTEXT may be -, which reads it from standard input.",
		RunE: func(c *cobra.Command, args []string) error {
			ctx := c.Context()
			body := strings.Join(args[1:], " ")
			if body == "-" {
				data, err := io.ReadAll(a.Stdin)
				if err != nil {
					return err
				}
				body = string(data)
			}
			p, err := a.change(ctx)
			if err != nil {
				return err
			}
			defer p.close()
			if args[0] == string(muster.All) {
				return p.mailAll(ctx, body)
			}
			m, err := p.thePost(ctx).Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Name(args[0]), Content: body})
			if err != nil {
				return err
			}
			later := ""
			switch who, err := p.theRoster(ctx).Get(ctx, m.To); {
			case err != nil || who.Status != muster.Shutdown: // the user has no record
			case m.To == muster.Lead:
				later = ", which has shut down and reads it in the next run"
			default:
				later = ", which has shut down and reads it when it is spawned again"
			}
			return a.print(m, func(w io.Writer, _ view.Paint, _ int) error {
				_, err := fmt.Fprintf(w, "mail sent to %s%s\n", m.To, later)
				return err
			})
		}}
}

// mailAll writes to every member that has not shut down.
func (p *place) mailAll(ctx context.Context, body string) error {
	members, err := p.theRoster(ctx).List(ctx)
	if err != nil {
		return err
	}
	var to []muster.Name
	for _, m := range members {
		if m.Status != muster.Shutdown {
			to = append(to, m.Name)
		}
	}
	if len(to) == 0 {
		return muster.Errorf(muster.NotFound, "no mail sent: nobody is there to read it").WithHint("muster team list")
	}
	sent, err := p.thePost(ctx).Broadcast(ctx, muster.User, body, to)
	if err != nil {
		return err
	}
	return p.app.print(sent, func(w io.Writer, _ view.Paint, _ int) error {
		var names []string
		for _, m := range sent {
			names = append(names, string(m.To))
		}
		_, err := fmt.Fprintf(w, "mail sent to %s\n", strings.Join(names, ", "))
		return err
	})
}

func (a *App) mailList() *cobra.Command {
	var take bool
	var last int
	c := &cobra.Command{Use: "list [NAME]", Short: "the mail that waits for you, or for NAME", Args: exactly("[NAME]"),
		Long: "Mail for user waits until it is taken: with --take it is printed and removed.\nA member's mail is taken by its own runtime only."}
	c.Flags().IntVar(&last, "last", 0, "the last `N` that were delivered, too")
	c.Flags().BoolVar(&take, "take", false, "remove what was printed (your own mail only)")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx, box := c.Context(), muster.User
		if len(args) > 0 {
			box = muster.Name(args[0])
		}
		if take && box != muster.User {
			return &usageError{c.CommandPath(), "only your own mail can be taken: " + string(box) + "'s is taken by its runtime"}
		}
		opened := a.look
		if take {
			opened = a.change
		}
		p, err := opened(ctx)
		if errors.Is(err, nobody) {
			return a.mails(nil, box)
		}
		if err != nil {
			return err
		}
		defer p.close()
		post := p.thePost(ctx)
		if known, near, err := p.theRoster(ctx).Known(ctx, box); err != nil {
			return err
		} else if !known {
			return noMember(box, near)
		}
		all, end, err := waiting(ctx, post, box)
		if err != nil {
			return err
		}
		if last > 0 {
			if all, err = p.withDelivered(ctx, box, last, all); err != nil {
				return err
			}
		}
		if err := a.mails(all, box); err != nil || !take || len(all) == 0 {
			return err
		}
		return post.Drop(ctx, box, end)
	}
	return c
}

// noMember says that nobody has the name, and who has one like it.
func noMember(name muster.Name, near []muster.Name) error {
	e := muster.Errorf(muster.NotFound, "there is no member %q", string(name))
	if len(near) > 0 {
		var names []string
		for _, n := range near {
			names = append(names, string(n))
		}
		e.Message += " (did you mean " + strings.Join(names, " or ") + "?)"
	}
	return e.WithHint("muster team list")
}

// waiting is all pending mail of a box, and the place after it.
func waiting(ctx context.Context, post *mailbox.Mail, box muster.Name) (all []muster.Message, end muster.Pos, err error) {
	for {
		some, next, left, err := post.Peek(ctx, box, end, math.MaxInt32)
		if err != nil {
			return nil, 0, err
		}
		all, end = append(all, some...), next
		if left == 0 {
			return all, end, nil
		}
	}
}

func (a *App) mails(all []muster.Message, box muster.Name) error {
	if all == nil {
		all = []muster.Message{}
	}
	return a.print(all, func(w io.Writer, p view.Paint, _ int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintf(w, "no mail waits for %s\n", box)
			return err
		}
		for _, m := range all {
			kind := ""
			if m.Type != muster.MailMessage {
				kind = " (" + view.OneLine(string(m.Type)) + ")"
			}
			body := strings.ReplaceAll(strings.TrimSpace(view.ManyLines(m.Content)), "\n", "\n  ")
			if _, err := fmt.Fprintf(w, "%s  %s%s\n  %s\n", view.Clock(muster.Time(m.At), a.Now()), p.Who(string(m.From), view.OneLine(string(m.From))), kind, body); err != nil {
				return err
			}
		}
		return nil
	})
}
