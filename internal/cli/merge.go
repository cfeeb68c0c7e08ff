package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

func newMergeCommand(a *App) *cobra.Command {
	c := &cobra.Command{Use: "merge [ARCHIVE]", Args: namedArgs("[ARCHIVE]"),
		Short: "take what has landed to the branch that you are on",
		Long: "Your own git moves your branch forward, or makes a merge commit where both have commits. What would\n" +
			"lose something is refused: uncommitted changes in the way, conflicts, a merge that is under way.\n" +
			"Changes of which the team began at a snapshot are not in the way while they are as they were.\n" +
			"With a name of muster archive list it takes what that team has landed; without a team here, what the\n" +
			"last one has that was put aside."}
	c.RunE = a.changing(func(c *cobra.Command, o opened, args []string) error {
		ctx := c.Context()
		name := append(args, "")[0]
		if name == "" {
			var err error
			if name, err = lastArchive(ctx, o); err != nil {
				return err
			}
		}
		if name == "" {
			return mergeTarget(ctx, a, o.Team, later)
		}
		// The copy of the archive knows no process, so the workspace is asked whether this command may change anything.
		if err := o.workspace.PrepareChange(ctx); err != nil {
			return err
		}
		past, err := openArchive(ctx, a, name)
		if err != nil {
			return err
		}
		defer past.close()
		return mergeTarget(ctx, a, past.Team, "muster archive restore "+name+" brings them back")
	})
	return c
}

// lastArchive returns the name of the team that was archived last and had a run, "" where a run is here or none was
// archived.
func lastArchive(ctx context.Context, o opened) (string, error) {
	run, err := o.LastRun(ctx)
	if err != nil || run.Target != "" {
		return "", err
	}
	all, _, err := o.workspace.Archives()
	for _, t := range slices.Backward(all) {
		if t.Goal != "" || t.Landed > 0 {
			return t.Name, err
		}
	}
	return "", err
}

// later says how what is open still comes to the user's branch.
const later = "muster merge takes what lands later"

// mergeTarget takes the work to the user's branch and prints what came. later says what becomes of open tasks.
func mergeTarget(ctx context.Context, a *App, t *team.Team, later string) error {
	m, err := team.TargetOf(t).Merge(ctx)
	if err != nil {
		return err
	}
	if m.Said != "" && !a.json { // the words of the user's hooks
		_, _ = io.WriteString(a.Stderr, text.Clean(m.Said)) // nothing depends on them
	}
	return a.print(m, func(s view.Screen) string { return mergedText(s, m, later) })
}

// mergedText says what came to the user's branch: a line for each task.
func mergedText(s view.Screen, m team.Merged, later string) string {
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
		fmt.Fprintf(&w, "%s still open: %s\n", text.Count(m.Open, "task")+text.Plural(m.Open, " is", " are"), later)
	}
	return w.String()
}
