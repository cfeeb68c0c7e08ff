package cli

import (
	"cmp"
	"fmt"

	"github.com/spf13/cobra"

	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

func newTargetCommand(a *App) *cobra.Command {
	var commit string
	c := &cobra.Command{Use: "target", Args: namedArgs(), Short: "where the branch is on which work lands",
		Long: "Only landings move the target. One that something else has moved is put back, or landings wait until\n" +
			"you say what holds: --accept lets them go on from a commit, and moves the target there."}
	c.Flags().StringVar(&commit, "accept", "", "let landings go on from `COMMIT`")
	look := a.looking(nil, func(c *cobra.Command, o opened, _ []string) error {
		s, err := team.TargetOf(o.Team).Get(c.Context())
		if err != nil {
			return err
		}
		run, err := o.LastRun(c.Context())
		if err != nil {
			return err
		}
		return a.print(s, func(view.Screen) string { return targetText(s, run.EndedAt != 0) })
	})
	accept := a.changing(func(c *cobra.Command, o opened, _ []string) error {
		s, err := team.TargetOf(o.Team).Accept(c.Context(), commit)
		return a.printLine(s, err, "landings go on from %.7s on %s", s.At, text.OneLine(s.Branch))
	})
	c.RunE = func(c *cobra.Command, args []string) error {
		if c.Flags().Changed("accept") {
			return accept(c, args)
		}
		return look(c, args)
	}
	return c
}

// targetText returns where the target is, and what to do where that is not where landings left it. After the end of a
// run nothing has to be done: the user may have taken the work and deleted the branch.
func targetText(s team.TargetState, hasEnded bool) string {
	branch := text.OneLine(s.Branch)
	if s.At == s.Tip && s.Link == "" {
		return fmt.Sprintf("%s is at %.7s, where landings left it\n", branch, s.At)
	}
	is, next := fmt.Sprintf("at %.7s", s.At), "goes on from where the branch is"
	if s.At == "" {
		is, next = "gone", "makes the branch anew"
	}
	said := fmt.Sprintf("%s is %s, and landings left it at %.7s\n", branch, is, s.Tip)
	if s.Link != "" {
		said += fmt.Sprintf("it leads to %s\n", text.OneLine(s.Link))
	}
	if hasEnded {
		said += "the run has ended: the next one " + next + "\n"
	}
	return said + fmt.Sprintf("put it back:          muster target --accept %.12s\n", s.Tip) +
		fmt.Sprintf("go on from elsewhere: muster target --accept %s\n", cmp.Or(fmt.Sprintf("%.12s", s.At), "COMMIT"))
}
