package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
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
		return a.print(reqs, func(w io.Writer, p view.Paint, width int) error { return a.writeRequests(w, p, width, reqs, all) })
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

func (a *App) writeRequests(w io.Writer, p view.Paint, width int, reqs []muster.Request, all bool) error {
	if len(reqs) == 0 {
		_, err := fmt.Fprintln(w, map[bool]string{false: "no question waits", true: "no question was asked yet"}[all])
		return err
	}
	return view.WriteRequests(w, p, width, reqs, a.Now())
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
	if !now {
		return a.stands(r, yes)
	}
	return a.print(r, func(w io.Writer, _ view.Paint, _ int) error {
		_, err := fmt.Fprintf(w, "%s of %s is %s\n", view.Question(r), r.From, r.Status)
		return err
	})
}

// stands says that a request was decided before. It is an error when the decision was another one.
func (a *App) stands(r muster.Request, yes bool) error {
	by := ""
	if r.ResolvedBy != "" {
		by = fmt.Sprintf(", by %s at %s", r.ResolvedBy, view.Clock(muster.Time(r.ResolvedAt), a.Now()))
	}
	s := fmt.Sprintf("%s of %s was %s before%s: that stands", view.Question(r), r.From, r.Status, by)
	if r.Response != "" {
		s += " (" + view.OneLine(r.Response) + ")"
	}
	if wanted := map[bool]muster.RequestStatus{true: muster.RequestApproved, false: muster.RequestRejected}[yes]; r.Status != wanted {
		return muster.Errorf(muster.Stale, "%s", s).WithHint("muster mail send %s TEXT", r.From)
	}
	return a.print(r, func(w io.Writer, _ view.Paint, _ int) error {
		_, err := fmt.Fprintln(w, s)
		return err
	})
}
