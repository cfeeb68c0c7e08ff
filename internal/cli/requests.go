package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
)

// requestCommands are the commands of the requests: questions that wait for somebody. A member asks before it does
// something that needs approval, such as following a plan or shutting down.
type requestCommands struct{ *App }

// all returns muster requests, approve and reject.
func (r requestCommands) all() []*cobra.Command {
	return []*cobra.Command{r.list(),
		{Use: "approve ID [TEXT]", Short: "say yes to a question", Args: namedArgs("ID", "[TEXT...]"),
			RunE: r.changing(r.decide(true))},
		{Use: "reject ID [WHY]", Short: "say no to a question", Args: namedArgs("ID", "[WHY...]"),
			RunE: r.changing(r.decide(false))},
	}
}

// list returns muster requests. Without --all it shows only what still waits.
func (r requestCommands) list() *cobra.Command {
	var decidedToo bool
	c := &cobra.Command{Use: "requests", Short: "questions that wait for somebody", Args: namedArgs()}
	c.Flags().BoolVar(&decidedToo, "all", false, "those that are decided too")
	none := func() error { return r.printRequests(nil, decidedToo) }
	c.RunE = r.looking(none, func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
		// Both functions have the same form, so the flag only chooses between them.
		list := w.Requests(c.Context()).Pending
		if decidedToo {
			list = w.Requests(c.Context()).List
		}
		all, err := list(c.Context())
		if err != nil {
			return err
		}
		return r.printRequests(all, decidedToo)
	})
	return c
}

// printRequests prints requests as a table, or as JSON. An empty table would not say whether nothing waits or
// nothing was ever asked, so a sentence says it.
func (r requestCommands) printRequests(all []muster.Request, decidedToo bool) error {
	return r.print(emptyNotNil(all), func(w io.Writer, p view.Paint, width int) error {
		if len(all) > 0 {
			return view.WriteRequests(w, p, width, all, r.Now())
		}
		none := "no question waits"
		if decidedToo {
			none = "no question was asked yet"
		}
		_, err := fmt.Fprintln(w, none)
		return err
	})
}

// decide answers a request as the user. Words behind the id are the answer that the asking member reads. The first
// decision stands, so a second one is only reported.
func (r requestCommands) decide(yes bool) action {
	return func(c *cobra.Command, w *workspace.Workspace, args []string) error {
		id, text := muster.RequestID(args[0]), strings.Join(args[1:], " ")
		req, now, err := w.Requests(c.Context()).Decide(c.Context(), id, muster.User, yes, text)
		if err != nil {
			return err
		}
		// The request was final before this call, and its first decision stands.
		if !now {
			return r.printDecidedBefore(req, yes)
		}
		return r.printLine(req, "%s of %s is %s", view.Question(req), req.From, req.Status)
	}
}

// printDecidedBefore says which decision stands. It is an error when it was another one than the user's. A script
// can therefore repeat a decision without failing.
func (r requestCommands) printDecidedBefore(req muster.Request, yes bool) error {
	by := ""
	if req.ResolvedBy != "" {
		by = fmt.Sprintf(", by %s at %s", req.ResolvedBy, view.Clock(muster.Time(req.ResolvedAt), r.Now()))
	}
	s := fmt.Sprintf("%s of %s was %s before%s: that stands", view.Question(req), req.From, req.Status, by)
	if req.Response != "" {
		s += " (" + view.OneLine(req.Response) + ")"
	}
	wanted := muster.RequestRejected
	if yes {
		wanted = muster.RequestApproved
	}
	if req.Status != wanted {
		return muster.Errorf(muster.Stale, "%s", s).WithHint("muster mail send %s TEXT", req.From)
	}
	return r.printLine(req, "%s", s)
}
