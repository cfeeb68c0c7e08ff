package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

func newMergeCommand(a *App) *cobra.Command {
	c := &cobra.Command{Use: "merge", Args: namedArgs(), Short: "take what has landed to the branch that you are on",
		Long: "Your own git moves your branch forward, or makes a merge commit where both have commits. What would\n" +
			"lose something is refused: uncommitted changes in the way, conflicts, a merge that is under way.\n" +
			"Changes of which the team began at a snapshot are not in the way while they are as they were."}
	c.RunE = a.changing(func(c *cobra.Command, o opened, _ []string) error {
		return mergeTarget(c.Context(), a, o.Team)
	})
	return c
}

// mergeTarget takes the work to the user's branch and prints what came.
func mergeTarget(ctx context.Context, a *App, t *team.Team) error {
	m, err := team.TargetOf(t).Merge(ctx)
	if err != nil {
		return err
	}
	if m.Said != "" && !a.json { // the words of the user's hooks
		_, _ = io.WriteString(a.Stderr, text.Clean(m.Said)) // nothing depends on them
	}
	return a.print(m, func(s view.Screen) string { return mergedText(s, m) })
}

// mergedText says what came to the user's branch: a line for each task.
func mergedText(s view.Screen, m team.Merged) string {
	branch, target := text.OneLine(m.Branch), text.OneLine(m.Target)
	var w strings.Builder
	switch m.How {
	case team.NothingToMerge:
		fmt.Fprintf(&w, "everything is in %s already\n", branch)
	default:
		how := "by fast-forward"
		if m.How == team.MergedByCommit {
			how = "by a merge commit"
		}
		fmt.Fprintf(&w, "%s of %s came to %s %s, now at %.7s\n", text.Count(len(m.Commits), "commit"), target, branch,
			how, m.At)
	}
	if m.Snapshot != "" {
		fmt.Fprintf(&w, "one of them, %.7s, is the snapshot of your uncommitted changes\n", m.Snapshot)
	}
	w.WriteString(view.LandedTasks(s, m.Tasks))
	if m.Open > 0 {
		fmt.Fprintf(&w, "%s still open: muster merge takes what lands later\n",
			text.Count(m.Open, "task")+text.Plural(m.Open, " is", " are"))
	}
	return w.String()
}
