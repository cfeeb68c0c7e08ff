package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// requestCommands are the commands of the requests: questions that wait for somebody. A member asks before it does
// something that needs approval, such as following a plan or shutting down.
type requestCommands struct{ *App }

// list returns muster requests. Without --all it shows only what still waits.
func (r requestCommands) list() *cobra.Command {
	var decidedToo bool
	c := &cobra.Command{Use: "requests", Short: "questions that wait for somebody", Args: namedArgs()}
	c.Flags().BoolVar(&decidedToo, "all", false, "those that are decided too")
	c.RunE = func(c *cobra.Command, args []string) error {
		// An empty table would not say whether nothing waits or nothing was ever asked.
		none, read := "no question waits", team.Requests.Pending
		if decidedToo {
			none, read = "no question was asked yet", team.Requests.List
		}
		return list(r.App, none, func(ctx context.Context, o opened) ([]muster.Request, error) {
			return read(o.Requests(), ctx)
		}, func(all []muster.Request) view.Table { return view.Requests(all, r.Now()) })(c, args)
	}
	return c
}

// decide returns muster approve or muster reject, which answer a request as the user. Words behind the id are the answer that the asking member reads. The first
// decision stands: a second one is only reported, and is an error when it was another one. A script can therefore
// repeat a decision without failing.
func (r requestCommands) decide(yes bool, use, short string) *cobra.Command {
	answer := func(c *cobra.Command, o opened, args []string) error {
		id, text := muster.RequestID(args[0]), strings.Join(args[1:], " ")
		req, isFirst, err := o.Requests().Answer(c.Context(), id, yes, text)
		if err != nil {
			return err
		}
		asked := view.Question(req) + " of " + string(req.From)
		if isFirst {
			return r.printLine(req, nil, "%s is %s", asked, req.Status)
		}
		by := ""
		if req.ResolvedBy != "" {
			by = fmt.Sprintf(", by %s at %s", req.ResolvedBy, view.Clock(muster.Time(req.ResolvedAt), r.Now()))
		}
		s := fmt.Sprintf("%s was %s before%s: that stands", asked, req.Status, by)
		if req.Response != "" {
			s += " (" + view.OneLine(req.Response) + ")"
		}
		// A request that expired was decided by nobody, so both answers are refused for it.
		if yes && req.Status != muster.RequestApproved || !yes && req.Status != muster.RequestRejected {
			return muster.Errorf(muster.Stale, "%s", s).WithHint("muster mail send %s TEXT", req.From)
		}
		return r.printLine(req, nil, "%s", s)
	}
	return &cobra.Command{Use: use, Short: short, Args: namedArgs("ID", "[TEXT...]"), RunE: r.changing(answer)}
}
