package cli

import (
	"github.com/spf13/cobra"

	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// newPRCommand returns muster pr. Without --open it only looks: nothing is written, pushed or sent. With it the push is
// asked for, because others see what is pushed and it cannot be taken back.
func newPRCommand(a *App) *cobra.Command {
	var base string
	var isOpening, isSure bool
	c := &cobra.Command{Use: "pr", Args: namedArgs(), Short: "describe what has landed as a pull request, or open one",
		Long: "It prints a title and a text: the goal, what has landed with its receipts, what is not done and\n" +
			"the cost. With --open your git pushes the target to origin, and gh or glab opens the request there."}
	c.Flags().StringVar(&base, "base", "", "the `BRANCH` that is to have the work (default: the one that you are on)")
	c.Flags().BoolVar(&isOpening, "open", false, "push the target, and open the request with gh or glab")
	c.Flags().BoolVar(&isSure, "yes", false, "do not ask before that")
	c.RunE = a.looking(nil, func(c *cobra.Command, o opened, _ []string) error {
		spent := ""
		if s, err := readSpending(c.Context(), o.Team); err == nil { // without it the text says nothing of the cost
			spent = s.Text()
		}
		target := team.TargetOf(o.Team)
		pr, err := target.PullRequest(c.Context(), base, spent)
		if err != nil {
			return err
		}
		// The question names the branch that others will see.
		if isOpening && !isSure {
			err = confirm(c.Context(), a, "push "+text.OneLine(pr.Head)+" and open a request", "muster pr --open --yes")
		}
		if isOpening && err == nil {
			err = target.Open(c.Context(), &pr, a.Env)
		}
		if err != nil {
			return err
		}
		return a.print(pr, func(view.Screen) string {
			if pr.URL != "" {
				return text.Clean(pr.URL) + "\n"
			}
			return text.OneLine(pr.Title) + "\n\n" + text.Clean(pr.Body) + "\n" +
				"open it:  muster pr --open\n"
		})
	})
	return c
}
