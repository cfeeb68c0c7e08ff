package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// newArchiveCommand returns muster archive, which lists what was archived and asks whether to archive the team, and its
// commands. It is the only command that may work on state of which an interrupted archive has moved a part: it goes on
// with it. Workspace.Archive and Workspace.Restore check what App.change checks for other commands.
func newArchiveCommand(a *App) *cobra.Command {
	var yes bool
	c := newGroup("archive", "put a team's state and lanes aside, and bring them back",
		&cobra.Command{Use: "list", Short: "what was put aside", Args: namedArgs(),
			RunE: func(c *cobra.Command, _ []string) error { return listArchives(c.Context(), a) }},
		newRestoreCommand(a))
	c.Flags().BoolVar(&yes, "yes", false, "put the team aside, and do not ask")
	c.Long = "Alone it lists what was put aside, says what --yes would put aside, and asks in a terminal.\n" +
		"Everything is kept: the state in .team/archive/, each lane as a commit under refs/muster/archive/.\n" +
		"Task ids go on afterwards."
	c.RunE = func(c *cobra.Command, _ []string) error {
		if yes {
			return archive(c.Context(), a)
		}
		return askArchive(c.Context(), a)
	}
	return c
}

func newRestoreCommand(a *App) *cobra.Command {
	c := &cobra.Command{Use: "restore NAME", Short: "bring a team back that was put aside", Args: namedArgs("NAME"),
		Long: "NAME is one of muster archive list. A team that is here must have finished, and is put aside.\n" +
			"Lanes come back with the work that was in them; muster resume goes on."}
	c.RunE = func(c *cobra.Command, args []string) error {
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		t, err := o.workspace.Restore(c.Context(), args[0])
		if err == nil && len(t.Lost) > 0 {
			names := view.Join(t.Lost, ", ", func(n muster.Name) string { return string(n) })
			explain(a.Stderr, "no longer kept, so not brought back: the work of "+names, "")
		}
		return a.printLine(t, err, "%s is back: %s, %s; go on with muster status", text.OneLine(string(t.Team)),
			text.Count(t.Tasks, "task"), text.Count(len(t.Lanes)-len(t.Lost), "lane"))
	}
	return c
}

// listArchives prints the archived teams. Where there is no repository state at all it is an empty list.
func listArchives(ctx context.Context, a *App) error {
	var all []workspace.ArchivedTeam
	o, err := a.look(ctx)
	switch {
	case errors.Is(err, workspace.ErrNoTeam):
	case err != nil:
		return err
	default:
		defer o.close()
		var unreadable []error
		if all, unreadable, err = o.workspace.Archives(); err != nil {
			return err
		}
		for _, err := range unreadable { // one that cannot be read hides no other one
			explain(a.Stderr, muster.PlainText(err), "")
		}
	}
	return a.print(append([]workspace.ArchivedTeam{}, all...), func(s view.Screen) string {
		if len(all) == 0 {
			return "nothing was put aside yet\n"
		}
		return archiveTable(all).Draw(s)
	})
}

// askArchive lists the archived teams, says what would be archived, and archives it if the user says so at a terminal.
func askArchive(ctx context.Context, a *App) error {
	const command = "muster archive --yes"
	if a.json {
		return listArchives(ctx, a)
	}
	o, err := a.open(ctx)
	if err != nil {
		return askPutAside(ctx, a, err)
	}
	defer o.close()
	if err := listArchives(ctx, a); err != nil || !o.workspace.HasState() {
		return err
	}
	if err := o.workspace.CheckNotArchiving(ctx); err != nil {
		return err
	}
	l, err := leftToArchive(ctx, o)
	if err != nil || l.isEmpty {
		return err
	}
	err = a.print(nil, func(s view.Screen) string {
		return fmt.Sprintf("\nhere: %s\n%s", l.here(), l.text(s, "muster merge"))
	})
	if err != nil {
		return err
	}
	if a.terminalIn() == nil {
		_, err := fmt.Fprintf(a.Stdout, "put it aside: %s\n", command)
		return err
	}
	if err := confirm(ctx, a, "put it aside", command); err != nil {
		return err
	}
	return archiveOpened(ctx, a, o, left{})
}

// archive archives the team without a question.
func archive(ctx context.Context, a *App) error {
	o, err := a.open(ctx)
	if err != nil {
		return putAside(ctx, a, err)
	}
	defer o.close()
	// Of state of which a part was moved already, or that cannot be read, nothing more is said.
	l, _ := leftToArchive(ctx, o)
	return archiveOpened(ctx, a, o, l)
}

// archiveOpened archives the team of o, and names what l has.
func archiveOpened(ctx context.Context, a *App, o opened, l left) error {
	// Interrupted, the command is to be called again: the archive goes on where it was.
	t, err := o.workspace.Archive(ctx)
	if err != nil {
		return err
	}
	return a.print(t, func(s view.Screen) string {
		return fmt.Sprintf("%s and %s are put aside in %s\n", text.Count(t.Tasks, "task"),
			text.Count(len(t.Lanes), "lane"),
			workspace.Relative(o.workspace, filepath.Join(o.workspace.Paths().Archive(), t.Name))) +
			l.text(s, "muster merge "+t.Name) + "bring it back: muster archive restore " + t.Name + "\n"
	})
}

// left is what a team that is archived leaves behind.
type left struct {
	isEmpty bool
	name    muster.Name
	goal    string
	tasks   int
	open    []muster.Task
	untaken team.Untaken // zero where the user's branch has all that landed, or git cannot tell
	landed  []muster.Task
}

func leftToArchive(ctx context.Context, o opened) (l left, err error) {
	state, err := o.RunState(ctx)
	if err != nil {
		return l, err
	}
	all, _, err := o.Tasks().List(ctx)
	if err != nil {
		return l, err
	}
	members, err := o.Members().List(ctx)
	if err != nil {
		return l, err
	}
	l = left{name: o.workspace.Name(ctx), goal: text.OneLine(state.Run.Goal), tasks: len(all), open: state.Open,
		isEmpty: len(all)+len(members) == 0 && state.Run.StartedAt == 0}
	if state.Run.Target != "" {
		// Without a branch of the user's there is nowhere to take the commits.
		l.untaken, l.landed, _ = team.TargetOf(o.Team).UntakenTasks(ctx)
	}
	return l, nil
}

// here is a line about the team.
func (l left) here() string {
	return strings.TrimSuffix(fmt.Sprintf("%s, %s: %s", l.name, text.Count(l.tasks, "task"),
		text.CutColumns(l.goal, 60)), ": ")
}

// text names the open tasks, and what has landed and is not in the user's branch.
func (l left) text(s view.Screen, merge string) string {
	var w strings.Builder
	if len(l.open) > 0 {
		fmt.Fprintf(&w, "%s open:\n", text.Count(len(l.open), "task")+text.Plural(len(l.open), " is", " are"))
		for _, line := range view.OpenTasks(l.open, 40, "muster task list") {
			_, _ = io.WriteString(&w, line+"\n")
		}
	}
	if n := l.untaken.Commits; n > 0 {
		fmt.Fprintf(&w, "%s not in %s yet (%s):\n%s", text.Count(n, "landed commit")+text.Plural(n, " is", " are"),
			text.OneLine(l.untaken.Branch), merge, view.LandedTasks(s, l.landed))
	}
	return w.String()
}

// askPutAside asks at a terminal whether to move away the state for which opening was refused.
func askPutAside(ctx context.Context, a *App, refused error) error {
	if a.terminalIn() == nil {
		return refused
	}
	w, err := foreign(ctx, a, refused)
	if err != nil {
		return err
	}
	_ = w.Close()
	explain(a.Stderr, muster.PlainText(refused), "")
	if err := confirm(ctx, a, "put it aside, unread", "muster archive --yes"); err != nil {
		return err
	}
	return putAside(ctx, a, refused)
}

// foreign opens state that is not the user's own, for which opening it was refused. Any other refusal is returned.
func foreign(ctx context.Context, a *App, refused error) (*workspace.Unverified, error) {
	w, err := openUnverified(ctx, a)
	if err != nil {
		return nil, refused
	}
	if found, err := w.Find(ctx); errors.Is(err, muster.ErrInvalid) || found.IsOwn {
		_ = w.Close()
		return nil, refused
	}
	return w, nil
}

// putAside moves state away that is not the user's own, for which opening it was refused.
func putAside(ctx context.Context, a *App, refused error) error {
	w, err := foreign(ctx, a, refused)
	if err != nil {
		return err
	}
	defer w.Close()
	dir, err := w.PutAside(ctx)
	return a.printLine(map[string]string{"dir": dir}, err, "the state that was here is put aside, unread, in %s", dir)
}

// archiveTable returns archived teams as a table. A team whose archive was interrupted has no goal to show yet; the
// table says in its place how to go on.
func archiveTable(all []workspace.ArchivedTeam) view.Table {
	t := view.Table{Titles: []string{"NAME", "TEAM", ">TASKS", ">LANDED", ">LANES", "GOAL"}, Wide: 5}
	for _, s := range all {
		goal := view.Text(text.OneLine(s.Goal))
		if err := workspace.ErrIncomplete(s); err != nil {
			command, _, _ := strings.Cut(muster.HintOf(err), "   ")
			goal = view.Cell{Text: "interrupted: " + command + " goes on", Tone: view.Bad}
		}
		t.Row(s.Name, s.Team, s.Tasks, s.Landed, len(s.Lanes), goal)
	}
	return t
}
