package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
)

func (a *App) requestsCommand() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "requests", Short: "questions that wait for somebody", Args: exactly()}
	c.Flags().BoolVar(&all, "all", false, "those that are decided too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		reqs, err := a.requestList(c.Context(), all)
		if err != nil {
			return err
		}
		return a.print(reqs, func(w io.Writer, p paint, width int) error { return a.writeRequests(w, p, width, reqs, all) })
	}
	return c
}

func (a *App) requestList(ctx context.Context, all bool) ([]muster.Request, error) {
	p, err := a.look(ctx)
	if errors.Is(err, nobody) {
		return []muster.Request{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	if all {
		return p.theRequests(ctx).List(ctx)
	}
	reqs, err := p.theRequests(ctx).Pending(ctx)
	if reqs == nil {
		reqs = []muster.Request{}
	}
	return reqs, err
}

func (a *App) writeRequests(w io.Writer, p paint, width int, reqs []muster.Request, all bool) error {
	if len(reqs) == 0 {
		_, err := fmt.Fprintln(w, map[bool]string{false: "no question waits", true: "no question was asked yet"}[all])
		return err
	}
	t := table{titles: []string{"ID", "FROM", "TO", "ASKS", "STATUS", ">FOR", "TEXT"}, wide: 6}
	for _, r := range reqs {
		t.row(text(oneLine(string(r.ID))), cell{text: oneLine(string(r.From)), who: oneLine(string(r.From))}, text(oneLine(string(r.To))), text(asks(r)),
			requestStatus(r), text(span(a.waited(r))), text(cut(requestText(r), 200)))
	}
	return t.write(w, p, width)
}

// waited is how long a request waits, or did until it was decided.
func (a *App) waited(r muster.Request) time.Duration {
	until := a.Now()
	if r.ResolvedAt > 0 {
		until = muster.Time(r.ResolvedAt)
	}
	return until.Sub(muster.Time(r.CreatedAt))
}

func requestStatus(r muster.Request) cell {
	return cell{text: string(r.Status), tone: map[muster.RequestStatus]tone{muster.RequestApproved: good, muster.RequestRejected: bad, muster.RequestExpired: bad}[r.Status]}
}

// asks is what a request wants, in two or three words.
func asks(r muster.Request) string {
	switch r.Kind {
	case muster.AskPlan:
		return fmt.Sprintf("plan for %d", r.TaskID)
	case muster.AskShutdown:
		return "shutdown"
	}
	return oneLine(string(r.Kind))
}

func requestText(r muster.Request) string {
	switch {
	case r.Response != "":
		return oneLine(r.Response)
	case r.Plan != "":
		return oneLine(r.Plan)
	}
	return oneLine(r.Reason)
}

func (a *App) approveCommand() *cobra.Command {
	return &cobra.Command{Use: "approve ID [TEXT]", Short: "say yes to a question", Args: exactly("ID", "[TEXT...]"),
		RunE: func(c *cobra.Command, args []string) error { return a.decide(c.Context(), args, true) }}
}

func (a *App) rejectCommand() *cobra.Command {
	return &cobra.Command{Use: "reject ID [WHY]", Short: "say no to a question", Args: exactly("ID", "[WHY...]"),
		RunE: func(c *cobra.Command, args []string) error { return a.decide(c.Context(), args, false) }}
}

// decide answers as the user. Who is late reads the answer that stands.
func (a *App) decide(ctx context.Context, args []string, yes bool) error {
	p, err := a.change(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	r, now, err := p.theRequests(ctx).Decide(ctx, muster.RequestID(args[0]), muster.User, yes, strings.Join(args[1:], " "))
	if err != nil {
		return err
	}
	return a.print(r, func(w io.Writer, _ paint, _ int) error {
		s := fmt.Sprintf("%s of %s is %s", asks(r), r.From, r.Status)
		if !now {
			s = fmt.Sprintf("%s of %s was %s before, by %s at %s: that stands", asks(r), r.From, r.Status, r.ResolvedBy, clock(muster.Time(r.ResolvedAt), a.Now()))
			if r.Response != "" {
				s += " (" + oneLine(r.Response) + ")"
			}
		}
		_, err := fmt.Fprintln(w, s)
		return err
	})
}
