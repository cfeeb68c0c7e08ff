package cli

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"muster/internal/view"
	"muster/internal/workspace"
)

// archiveCommand returns muster archive, which archives the team, and its command list. It is the only command that
// may work on state of which an interrupted archive has moved a part: it goes on with it.
func (a *App) archiveCommand() *cobra.Command {
	c := newGroup("archive [list]", "put an ended or stopped team's state and lanes aside",
		&cobra.Command{Use: "list", Short: "what was put aside", Args: namedArgs(),
			RunE: a.looking(func() error { return a.printArchives(nil) }, a.listArchives)})
	c.Long = "Everything is kept: the state in .team/archive/, each lane as a commit under refs/muster/archive/.\n" +
		"Task ids go on afterwards."
	// App.change would refuse state of which a part is moved, so the command opens the workspace itself.
	// Workspace.Archive checks what change would have checked.
	c.RunE = func(c *cobra.Command, _ []string) error {
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		// Interrupted, the command is to be called again: the archive goes on where it was.
		t, err := o.workspace.Archive(c.Context())
		if err != nil {
			return err
		}
		return a.printLine(t, "%s and %s are put aside in %s", view.Count(t.Tasks, "task"),
			view.Count(len(t.Lanes), "lane"), o.workspace.Relative(filepath.Join(o.workspace.Paths().Archive(), t.Name)))
	}
	return c
}

// listArchives prints the archived teams. An archive that cannot be read is reported and hides no other one. The
// table then shows the others, and the exit code is 0.
func (a *App) listArchives(_ *cobra.Command, o opened, _ []string) error {
	all, unreadable, err := o.workspace.Archives()
	if err != nil {
		return err
	}
	for _, err := range unreadable {
		explain(a.Stderr, err.Error(), "")
	}
	return a.printArchives(all)
}

// printArchives prints archived teams as a table, or as JSON. A team whose archive was interrupted has no goal to
// show yet; the table says in its place how to go on.
func (a *App) printArchives(all []workspace.ArchivedTeam) error {
	return a.print(emptyNotNil(all), func(w io.Writer, p view.Paint, width int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, "nothing was put aside yet")
			return err
		}
		t := view.Table{Titles: []string{"NAME", "TEAM", ">TASKS", ">LANDED", ">LANES", "GOAL"}, Wide: 5}
		for _, s := range all {
			goal := view.Text(view.OneLine(s.Goal))
			if s.Moving {
				goal = view.Cell{Text: "interrupted: muster archive goes on", Tone: view.Bad}
			}
			t.Row(view.Text(s.Name), view.Text(string(s.Team)), view.Text(fmt.Sprint(s.Tasks)),
				view.Text(fmt.Sprint(s.Landed)), view.Text(fmt.Sprint(len(s.Lanes))), goal)
		}
		return t.Write(w, p, width)
	})
}
