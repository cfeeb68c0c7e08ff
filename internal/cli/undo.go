package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

func newUndoCommand(a *App) *cobra.Command {
	var isDryRun bool
	c := &cobra.Command{Use: "undo TASK...", Args: namedArgs("TASK..."),
		Short: "take landed tasks back, after the check",
		Long: "A new task reverts what they have landed, and lands as every other: merged, checked, in one step.\n" +
			"It needs no model, and works beside a team or without one. To undo that task brings them back."}
	c.Flags().BoolVar(&isDryRun, "dry-run", false, "only say what would be taken back")
	c.RunE = func(c *cobra.Command, args []string) error {
		var ids []muster.TaskID
		for _, arg := range args {
			id, err := parseTaskID(c, arg)
			if err != nil {
				return err
			}
			ids = append(ids, id)
		}
		return a.changing(func(c *cobra.Command, o opened, _ []string) error {
			return undo(c, a, o, ids, isDryRun)
		})(c, args)
	}
	return c
}

// undo takes tasks back with the settings of the last run, as a process that joins it has them.
func undo(c *cobra.Command, a *App, o opened, ids []muster.TaskID, isDryRun bool) error {
	ctx := c.Context()
	if err := offerTrust(ctx, a, o, nil, true); err != nil {
		return err
	}
	settings, err := a.runSettings(ctx, o, nil, true)
	if err != nil {
		return err
	}
	t, err := a.openTeam( //nolint:contextcheck // Opening starts nothing.
		Job{Workspace: o.workspace, Settings: settings, OnlyLands: true})
	if err != nil {
		return err
	}
	u, err := t.Tasks().Undo(ctx, ids, isDryRun)
	if err != nil {
		return hintAtList(err)
	}
	return a.print(u, func(s view.Screen) string { return undoneText(s, u) })
}

func undoneText(s view.Screen, u team.Undone) string {
	var w strings.Builder
	n := len(u.Undoes)
	what := text.Plural(n, "task ", "tasks ") + view.IDs(view.TaskIDs(u.Undoes))
	switch {
	case u.Task.ID == 0:
		fmt.Fprintf(&w, "%s would be taken back, by a change of %s; nothing was done\n", what,
			text.Count(len(u.Files), "file"))
	case u.Task.Landed == nil: // somebody else was quicker
		fmt.Fprintf(&w, "nothing of %s was there any more\n", what)
	default:
		fmt.Fprintf(&w, "%s %s taken back, by task %d\n", what, text.Plural(n, "is", "are"), u.Task.ID)
		w.WriteString(view.LandedTasks(s, []muster.Task{u.Task}))
	}
	if len(u.Dependants) > 0 {
		fmt.Fprintf(&w, "these have landed later, and depend on it:\n%s", view.LandedTasks(s, u.Dependants))
	}
	return w.String()
}
