package cli

import (
	"context"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster/internal/view"
	"muster/internal/workspace"
)

// newArchiveCommand returns muster archive, which archives the team, and its command list. It is the only command that
// may work on state of which an interrupted archive has moved a part: it goes on with it. Workspace.Archive checks what
// App.change checks for other commands.
func newArchiveCommand(a *App) *cobra.Command {
	// An archive that cannot be read is reported and hides no other one.
	read := func(_ context.Context, o opened) ([]workspace.ArchivedTeam, error) {
		all, unreadable, err := o.workspace.Archives()
		for _, err := range unreadable {
			explain(a.Stderr, err.Error(), "")
		}
		return all, err
	}
	c := newGroup("archive [list]", "put an ended or stopped team's state and lanes aside",
		&cobra.Command{Use: "list", Short: "what was put aside", Args: namedArgs(),
			RunE: list(a, "nothing was put aside yet", read, archiveTable)})
	c.Long = "Everything is kept: the state in .team/archive/, each lane as a commit under refs/muster/archive/.\n" +
		"Task ids go on afterwards."
	c.RunE = a.changing(func(c *cobra.Command, o opened, _ []string) error {
		// The state may be moved in part already, and the workspace is opened all the same.
		// Interrupted, the command is to be called again: the archive goes on where it was.
		t, err := o.workspace.Archive(c.Context())
		return a.printLine(t, err, "%s and %s are put aside in %s", view.Count(t.Tasks, "task"),
			view.Count(len(t.Lanes), "lane"),
			o.workspace.Relative(filepath.Join(o.workspace.Paths().Archive(), t.Name)))
	})
	return c
}

// archiveTable returns archived teams as a table. A team whose archive was interrupted has no goal to show yet; the
// table says in its place how to go on.
func archiveTable(all []workspace.ArchivedTeam) view.Table {
	t := view.Table{Titles: []string{"NAME", "TEAM", ">TASKS", ">LANDED", ">LANES", "GOAL"}, Wide: 5}
	for _, s := range all {
		goal := view.Text(view.OneLine(s.Goal))
		if s.Moving {
			goal = view.Cell{Text: "interrupted: muster archive goes on", Tone: view.Bad}
		}
		t.Row(s.Name, s.Team, s.Tasks, s.Landed, len(s.Lanes), goal)
	}
	return t
}
