package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// laneCommands are the commands of the lanes. A lane is a git worktree in which one task is worked on.
type laneCommands struct{ *App }

func (l laneCommands) group() *cobra.Command {
	return newGroup("worktree", "lanes: a git worktree for each task",
		l.list(), l.create(), l.run(), l.openServer(), l.keep(), l.remove())
}

func (l laneCommands) list() *cobra.Command {
	read := func(ctx context.Context, o opened) ([]muster.Lane, error) {
		noteLost(ctx, l.App, o.workspace)
		return o.Lanes().List(ctx)
	}
	return &cobra.Command{Use: "list", Short: "all lanes, and how large they are", Args: namedArgs(),
		RunE: list(l.App, "no lanes", read, laneTable)}
}

// laneTable returns lanes as a table, with the sizes of their files. A failed lane stands out, because somebody has to
// look at it.
func laneTable(all []muster.Lane) view.Table {
	t := view.Table{Titles: []string{"NAME", "STATUS", ">TASK", "BRANCH", "BASE", ">SIZE", "PATH"}, Wide: 6}
	for _, x := range all {
		task := ""
		if x.TaskID != 0 {
			task = fmt.Sprint(x.TaskID)
		}
		t.Row(x.Name, view.Status(x.Status, "", muster.LaneFailed), task, x.Branch,
			fmt.Sprintf("%.7s", x.Base), size(team.LaneSize(x)), view.Text(x.Path))
	}
	return t
}

// create returns muster worktree create. The task id is checked before the workspace is opened, so that a wrong one
// changes nothing.
func (l laneCommands) create() *cobra.Command {
	var d team.LaneDraft
	var task string
	c := &cobra.Command{Use: "create NAME", Short: "make a lane by hand", Args: namedArgs("NAME"),
		Long: "Claimed tasks get their lanes by themselves. A task that is bound to one stays pending for its claimer."}
	c.Flags().StringVar(&task, "task", "", "bind it to the pending task `ID`")
	c.Flags().StringVar(&d.Base, "base", "",
		"the `COMMIT` it starts from (default: the team's target branch, else HEAD)")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if task != "" {
			if d.Task, err = parseTaskID(c, task); err != nil {
				return err
			}
		}
		if l.secrets.Contains(args[0]) {
			return muster.Errorf(muster.Invalid, "the name of the lane has a secret in it").WithHint("choose another")
		}
		d.Name = muster.Name(args[0])
		return l.changing(func(c *cobra.Command, o opened, _ []string) error {
			lane, err := o.Lanes().Create(c.Context(), d)
			// The one thing in the draft that may be missing is the task.
			return l.printLine(lane, hintAtList(err), "lane %s made on %s: %s", lane.Name, lane.Branch, lane.Path)
		})(c, args)
	}
	return c
}

// run returns muster worktree run. It counts as a change, because the program may write in the lane. With --json the
// output is collected and printed at the end. The exit code is the program's own, so a script can tell its failure
// from one of muster only by the message.
func (l laneCommands) run() *cobra.Command {
	return &cobra.Command{Use: "run NAME -- CMD", Short: "run a command in a lane; exits as it does",
		Args: namedArgs("NAME", "CMD..."),
		Long: "CMD is a program with its arguments; a single word with spaces in it is given to the shell.",
		RunE: l.changing(func(c *cobra.Command, o opened, args []string) error {
			lane := muster.Name(args[0])
			settings, _, err := o.workspace.Settings(nil)
			if err != nil {
				return err
			}
			// The environment is that of the App, so that a test of the command does not depend on its own.
			command := team.Command{Args: args[1:], Env: l.Env, PassEnv: settings.PassEnv, Stdin: l.Stdin,
				Out: l.Stdout}
			var output strings.Builder
			if l.json {
				command.Out = &output
			}
			exit, err := o.Lanes().Run(c.Context(), lane, command)
			// The result is printed for a command that failed too: its output says why.
			if err == nil && l.json {
				err = l.print(map[string]any{"lane": lane, "exit": exit, "output": output.String()}, nil)
			}
			if err == nil && exit != 0 {
				err = exitStatus(exit)
			}
			return err
		})}
}

// keep returns muster worktree keep. A lane that is marked so is not removed after its task has landed.
func (l laneCommands) keep() *cobra.Command {
	return &cobra.Command{Use: "keep NAME", Short: "mark a lane to be kept", Args: namedArgs("NAME"),
		RunE: l.changing(func(c *cobra.Command, o opened, args []string) error {
			lane, err := o.Lanes().Keep(c.Context(), muster.Name(args[0]))
			return l.printLine(lane, err, "lane %s is kept", lane.Name)
		})}
}

// remove returns muster worktree remove. With --force it also removes a lane in which a member works: what the lane
// holds is archived first.
func (l laneCommands) remove() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "remove NAME", Short: "remove a lane; refused while it holds unlanded work",
		Args: namedArgs("NAME")}
	c.Flags().BoolVar(&force, "force", false, "archive what it holds under refs/muster/archive/, then remove it")
	c.RunE = l.changing(func(c *cobra.Command, o opened, args []string) error {
		lane, err := o.Lanes().Remove(c.Context(), muster.Name(args[0]), force)
		return l.printLine(lane, err, "lane %s is removed", lane.Name)
	})
	return c
}
