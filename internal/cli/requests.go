package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/face"
	"muster/internal/text"
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
	c.AddCommand(r.show())
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

func (r requestCommands) show() *cobra.Command {
	return &cobra.Command{Use: "show ID", Args: namedArgs("ID"),
		Short: "all of a question: the whole plan, its task, and the changes so far",
		RunE: r.looking(nil, func(c *cobra.Command, o opened, args []string) error {
			q, err := face.ReadQuestion(c.Context(), o.Team, muster.RequestID(args[0]))
			if err != nil {
				return err
			}
			if q.Diff != nil { // see drawDiff
				q.Diff.Text = r.secrets.String(q.Diff.Text)
			}
			return r.print(q, func(s view.Screen) string { return q.Draw(s, r.Now(), r.screenShape == nil) })
		})}
}

// decide returns muster approve or muster reject, which answer a request as the user. Words behind the id are the
// answer that the asking member reads. The first decision stands: a second one is only reported, and is an error when
// it was another one. A script can therefore repeat a decision without failing. A no needs a reason, because whoever
// asked has to do something else and would have to guess what.
func (r requestCommands) decide(yes bool, use, short string) *cobra.Command {
	var forRun, forGood bool
	answer := func(c *cobra.Command, o opened, args []string) error {
		id, text := muster.RequestID(args[0]), strings.TrimSpace(strings.Join(args[1:], " "))
		scope := muster.ScopeOnce
		switch {
		case forGood && forRun:
			return &usageError{c.CommandPath(), "--run and --always exclude each other"}
		case forGood:
			scope = muster.ScopeAlways
		case forRun:
			scope = muster.ScopeRun
		}
		req, isFirst, err := o.Requests().AnswerFor(c.Context(), id, yes, scope, text)
		if err != nil {
			return err
		}
		if isFirst {
			return r.printLine(req, nil, "%s of %s is %s%s", view.Question(req), req.From, req.Status,
				view.Longer(req.Scope))
		}
		s := view.DecidedBefore(req, r.Now())
		// A request that expired was decided by nobody, so both answers are refused for it.
		if yes && req.Status != muster.RequestApproved || !yes && req.Status != muster.RequestRejected {
			return muster.Errorf(muster.Stale, "%s", s).WithHint("muster mail send %s TEXT", req.From)
		}
		return r.printLine(req, nil, "%s", s)
	}
	check := namedArgs("ID", "[TEXT...]")
	isComplete := func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil || yes || strings.TrimSpace(strings.Join(args[1:], "")) != "" {
			return err
		}
		const format = "%s needs a reason, which whoever asked reads: %[1]s %s \"why\""
		return &usageError{c.CommandPath(), fmt.Sprintf(format, c.CommandPath(), text.OneLine(args[0]))}
	}
	c := &cobra.Command{Use: use, Short: short, Args: isComplete, RunE: r.telling(answer)}
	if yes {
		c.Flags().BoolVar(&forRun, "run", false, "allow what a member asks for until the run ends")
		c.Flags().BoolVar(&forGood, "always", false, "allow it in this repository for good")
	}
	return c
}
