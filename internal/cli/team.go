package cli

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/face"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// teamCommands are the commands of the members. They change the roster; a living process of the team then starts
// and ends the members.
type teamCommands struct{ *App }

func (t teamCommands) group() *cobra.Command {
	return newGroup("team", "the members: list, spawn, stop", t.list(), t.spawn(), t.stop())
}

// list returns muster team list. The JSON has the records as they are stored: whether a process hosts a member is not
// part of it.
func (t teamCommands) list() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "all members", Args: namedArgs(),
		RunE: list(t.App, `no members: muster run "GOAL" starts a lead, who spawns them`, members,
			func(all []view.Member) view.Table { return view.Members(all, t.Now()) })}
}

func members(ctx context.Context, o opened) ([]view.Member, error) { return face.Members(ctx, o.Team) }

// spawn returns muster team spawn. It only writes the record; the supervisor of a living process starts the member.
// A name that has shut down may be used again. Whether the name is valid and free is decided by the roster.
func (t teamCommands) spawn() *cobra.Command {
	var d team.MemberDraft
	c := &cobra.Command{Use: "spawn NAME", Args: namedArgs("NAME"),
		Short: "add a teammate, or one again that has shut down",
		Long:  "A living process of the team starts it; where none lives, the next muster resume does."}
	f := c.Flags()
	f.StringVar(&d.Role, "role", "", "its `ROLE`, one word such as coder")
	f.StringVar(&d.Prompt, "prompt", "", "`TEXT` that it should know; tasks come from the board")
	f.StringVar(&d.Model, "model", "", "another `MODEL` than the team's")
	f.BoolVar(&d.RequirePlan, "require-plan", false, "it asks for approval of a plan before each task")
	c.RunE = func(c *cobra.Command, args []string) error {
		if d.Role == "" {
			return &usageError{c.CommandPath(), c.CommandPath() + " wants --role ROLE"}
		}
		d.Name = muster.Name(args[0])
		return t.changing(func(c *cobra.Command, o opened, _ []string) error {
			if err := nameModel(c.Context(), t.App, o, d.Model); err != nil {
				return err
			}
			added, err := o.Members().Spawn(c.Context(), d)
			if err != nil {
				return err
			}
			// It is asked after the member was added: a process that has ended by then does not start it.
			hasProcess, err := o.Members().HasProcess(c.Context())
			if err != nil {
				return err
			}
			// Without a living process the record waits, and the user should know that nothing happens yet.
			when := ": the team starts it"
			if !hasProcess {
				when = ` when the team runs again: muster resume, or muster run "GOAL"`
			}
			// The member joins all the same, so the note goes to standard error, and --json stays whole.
			noteUnknownRole(t.App, o.Root(), added.Role)
			return t.printLine(added, nil, "%s joins as %s%s", added.Name, text.OneLine(added.Role), when)
		})(c, args)
	}
	return c
}

// stop returns muster team stop. It exits with 1 when a member goes on, however that is printed. Members that have
// shut down already are left out.
func (t teamCommands) stop() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "stop [NAME]", Short: "stop a teammate, or the whole team", Args: namedArgs("[NAME]"),
		Long: "An idle member stops at once. A working one is asked, and may refuse with a reason; who does not\n" +
			"answer in 30 s is stopped. Tasks go back to the board, lanes are kept. Without NAME all are\n" +
			"stopped, the lead last."}
	c.Flags().BoolVar(&force, "force", false, "do not ask")
	c.RunE = t.changing(func(c *cobra.Command, o opened, args []string) error {
		// No name means all.
		var names []muster.Name
		for _, name := range args {
			names = append(names, muster.Name(name))
		}
		ends, err := o.Members().Stop(c.Context(), force, names...)
		if err != nil {
			return err
		}
		err = t.print(ends, func(view.Screen) string { return stoppedText(ends) })
		// The result is printed before, so the user sees who goes on and why.
		if err == nil && slices.ContainsFunc(ends, func(e team.StopResult) bool { return !e.IsStopped }) {
			return exitStatus(exitError)
		}
		return err
	})
	return c
}

// stoppedText returns what became of each member. The reason is that of the member, or why the command gave up
// waiting for it.
func stoppedText(ends []team.StopResult) string {
	if len(ends) == 0 {
		return "nobody is there to stop\n"
	}
	// Reasons are not cut, because they are what the user has to read. So the table has no wide column.
	t := view.Table{Titles: []string{"", "", ""}, Wide: -1}
	for _, e := range ends {
		state := "goes on"
		if e.IsStopped {
			state = "stopped"
		}
		t.Row(e.Name, state, e.Why)
	}
	return t.Draw(view.Screen{})
}
