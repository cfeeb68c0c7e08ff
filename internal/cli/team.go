package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/internal/workspace"
)

// teamCommands are the commands of the members. They change the roster; a living process of the team then starts
// and ends the members.
type teamCommands struct{ *App }

// group returns muster team and its commands.
func (t teamCommands) group() *cobra.Command {
	return newGroup("team", "the members: list, spawn, stop", t.list(), t.spawn(), t.stop())
}

// list returns muster team list.
func (t teamCommands) list() *cobra.Command {
	none := func() error { return t.printMembers(nil) }
	return &cobra.Command{Use: "list", Short: "all members", Args: namedArgs(),
		RunE: t.looking(none, func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			members, err := listMembers(c.Context(), w)
			if err != nil {
				return err
			}
			return t.printMembers(members)
		})}
}

// printMembers prints members as a table, or as JSON. Whether a process hosts a member is not part of the JSON. The
// JSON has the records as they are stored.
func (t teamCommands) printMembers(members []view.Member) error {
	all := []muster.Member{}
	for _, m := range members {
		all = append(all, m.Member)
	}
	return t.print(all, func(w io.Writer, p view.Paint, width int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, `no members: muster run "GOAL" starts a lead, who spawns them`)
			return err
		}
		return view.WriteMembers(w, p, width, members, t.Now())
	})
}

// listMembers returns all members, and whether a living process hosts each: the lead first, then as they joined. A
// member whose host is not among the living processes of the team is not alive, whatever its record says.
func listMembers(ctx context.Context, w *workspace.Workspace) (all []view.Member, err error) {
	// The records are read before the hosts, so a host that ends in between is seen as gone.
	members, err := w.Roster(ctx).List(ctx)
	if err != nil {
		return nil, err
	}
	hosts, err := w.Roster(ctx).Hosts(ctx)
	if err != nil {
		return nil, err
	}
	// The hosts are read once and not for each member.
	isAlive := map[muster.HostID]bool{}
	for _, h := range hosts {
		isAlive[h.ID()] = true
	}
	for _, m := range members {
		all = append(all, view.Member{Member: m, Alive: isAlive[m.Host]})
	}
	// The name decides between members that joined at the same time, so the order never changes between calls.
	slices.SortStableFunc(all, func(x, y view.Member) int {
		switch {
		case x.Name == y.Name:
			return 0
		case x.Name == muster.Lead:
			return -1
		case y.Name == muster.Lead:
			return 1
		}
		return cmp.Or(cmp.Compare(x.JoinedAt, y.JoinedAt), cmp.Compare(x.Name, y.Name))
	})
	return all, nil
}

// spawn returns muster team spawn. It only writes the record; the supervisor of a living process starts the member.
// A name that has shut down may be used again.
func (t teamCommands) spawn() *cobra.Command {
	m := muster.Member{StartedBy: muster.User, Status: muster.Working}
	c := &cobra.Command{Use: "spawn NAME", Args: namedArgs("NAME"),
		Short: "add a teammate, or one again that has shut down",
		Long:  "A living process of the team starts it; where none lives, the next muster resume does."}
	f := c.Flags()
	f.StringVar(&m.Role, "role", "", "its `ROLE`, one word such as coder")
	f.StringVar(&m.Prompt, "prompt", "", "`TEXT` that it should know; tasks come from the board")
	f.StringVar(&m.Model, "model", "", "another `MODEL` than the team's")
	f.BoolVar(&m.RequirePlan, "require-plan", false, "it asks for approval of a plan before each task")
	c.RunE = func(c *cobra.Command, args []string) error {
		if m.Role == "" {
			return &usageError{c.CommandPath(), c.CommandPath() + " wants --role ROLE"}
		}
		// Whether the name is valid and free is decided by the roster.
		m.Name = muster.Name(args[0])
		return t.changing(func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			added, err := w.Roster(c.Context()).Add(c.Context(), m)
			if err != nil {
				return err
			}
			hosts, err := w.Roster(c.Context()).Hosts(c.Context())
			if err != nil {
				return err
			}
			// Without a living process the record waits, and the user should know that nothing happens yet.
			when := ": the team starts it"
			if len(hosts) == 0 {
				when = ` when the team runs again: muster resume, or muster run "GOAL"`
			}
			return t.printLine(added, "%s joins as %s%s", added.Name, view.OneLine(added.Role), when)
		})(c, args)
	}
	return c
}
