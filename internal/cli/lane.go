package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/proc"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// laneCommands are the commands of the lanes. A lane is a git worktree in which one task is worked on.
type laneCommands struct{ *App }

// group returns muster worktree and its commands.
func (l laneCommands) group() *cobra.Command {
	return newGroup("worktree", "lanes: a git worktree for each task",
		l.list(), l.create(), l.run(), l.keep(), l.remove())
}

// onLanes returns the function of a command that changes lanes. The lane that it names comes first in its
// arguments. It saves each of them from opening the workspace and the lanes itself.
func (l laneCommands) onLanes(
	do func(ctx context.Context, w *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, rest []string) error,
) func(*cobra.Command, []string) error {
	return l.changing(func(c *cobra.Command, w *workspace.Workspace, args []string) error {
		lanes, err := w.Lanes(c.Context())
		if err != nil {
			return err
		}
		return do(c.Context(), w, lanes, muster.Name(args[0]), args[1:])
	})
}

// list returns muster worktree list. Unlike the others it changes nothing, and needs no team.
func (l laneCommands) list() *cobra.Command {
	none := func() error { return l.printLanes(nil) }
	return &cobra.Command{Use: "list", Short: "all lanes", Args: namedArgs(),
		RunE: l.looking(none, func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			lanes, err := w.Lanes(c.Context())
			if err != nil {
				return err
			}
			all, err := lanes.List(c.Context())
			if err != nil {
				return err
			}
			return l.printLanes(all)
		})}
}

// printLanes prints lanes as a table, or as JSON. A failed lane stands out, because somebody has to look at it.
func (l laneCommands) printLanes(all []muster.Lane) error {
	return l.print(emptyNotNil(all), func(w io.Writer, p view.Paint, width int) error {
		if len(all) == 0 {
			_, err := fmt.Fprintln(w, "no lanes")
			return err
		}
		t := view.Table{Titles: []string{"NAME", "STATUS", ">TASK", "BRANCH", "BASE", "PATH"}, Wide: 5}
		for _, x := range all {
			task := ""
			if x.TaskID != 0 {
				task = fmt.Sprint(x.TaskID)
			}
			status := view.Cell{Text: string(x.Status)}
			if x.Status == muster.LaneFailed {
				status.Tone = view.Bad
			}
			t.Row(view.Text(string(x.Name)), status, view.Text(task), view.Text(x.Branch),
				view.Text(fmt.Sprintf("%.7s", x.Base)), view.Text(x.Path))
		}
		return t.Write(w, p, width)
	})
}

// create returns muster worktree create. The task id is checked before the workspace is opened, so that a wrong one
// changes nothing.
func (l laneCommands) create() *cobra.Command {
	var task, base string
	c := &cobra.Command{Use: "create NAME", Short: "make a lane by hand", Args: namedArgs("NAME"),
		Long: "Claimed tasks get their lanes by themselves. A task that is bound to one stays pending for its claimer."}
	c.Flags().StringVar(&task, "task", "", "bind it to the pending task `ID`")
	c.Flags().StringVar(&base, "base", "",
		"the `COMMIT` it starts from (default: the team's target branch, else HEAD)")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		var id muster.TaskID
		if task != "" {
			if id, err = parseTaskID(c, task); err != nil {
				return err
			}
		}
		return l.onLanes(func(
			ctx context.Context, w *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, _ []string,
		) error {
			lane, err := createLane(ctx, w, lanes, name, id, base)
			if err != nil {
				return err
			}
			return l.printLine(lane, "lane %s made on %s: %s", lane.Name, lane.Branch, lane.Path)
		})(c, args)
	}
	return c
}

// createLane makes a lane and binds it to a pending task; task 0 is none. A task that is claimed or has a lane
// already is refused, because its owner may be at work in that lane.
func createLane(
	ctx context.Context, w *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, id muster.TaskID, base string,
) (lane muster.Lane, err error) {
	var t muster.Task
	if id != 0 {
		if t, err = w.Board().Get(ctx, id); err != nil {
			return lane, hintAtList(err)
		}
		if t.Status != muster.Pending || t.Worktree != "" {
			return lane, muster.Errorf(muster.Invalid,
				"task %d cannot be bound to a lane: only a pending task without one can", t.ID).
				WithHint("muster task show %d", t.ID)
		}
	}
	// The base is resolved to a commit now, so that the lane does not depend on where a branch moves.
	from, err := w.LaneBase(ctx, base)
	if err != nil {
		return lane, err
	}
	// The lane first: a task that names a lane which does not exist could not be worked on. The fence makes sure
	// that the task was not claimed meanwhile; if it was, the lane stays and belongs to nobody.
	if lane, err = lanes.Create(ctx, name, id, from); err != nil || id == 0 {
		return lane, err
	}
	_, err = w.Board().SetLane(ctx, id, t.Fence, lane.Name, lane.Base)
	return lane, err
}

// run returns muster worktree run. It counts as a change, because the program may write in the lane.
func (l laneCommands) run() *cobra.Command {
	return &cobra.Command{Use: "run NAME -- CMD", Short: "run a command in a lane; exits as it does",
		Args: namedArgs("NAME", "CMD..."),
		Long: "CMD is a program with its arguments; a single word with spaces in it is given to the shell.",
		RunE: l.onLanes(func(
			ctx context.Context, _ *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, argv []string,
		) error {
			dir, err := lanes.Enter(ctx, name)
			if err != nil {
				return err
			}
			return l.runIn(ctx, name, dir, argv)
		})}
}

// runIn runs a program in a lane's directory and exits as it does. The program is started by a launcher, as a tool
// of a member is, so nothing that it starts outlives it where the system allows that. With --json its output is
// collected and printed at the end.
func (l laneCommands) runIn(ctx context.Context, lane muster.Name, dir string, argv []string) error {
	// One word with a blank in it cannot be a program's name, so it is meant for the shell.
	if len(argv) == 1 && strings.ContainsAny(argv[0], " \t\n;|&<>$*") {
		argv = proc.Shell(argv[0])
	}
	launcher, err := proc.New(ctx)
	if err != nil {
		return err
	}
	defer launcher.Close()
	// The copy keeps append from writing into the slice of the App.
	env := slices.Clone(l.Env)
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
		env = append(env, "GOWORK=off") // a go.work of the user's above the lane is not the lane's
	}
	var output strings.Builder
	spec := proc.Spec{Argv: argv, Dir: dir, Env: env, Stdin: l.Stdin, Out: l.Stdout}
	if l.json {
		spec.Out = &output
	}
	p, err := launcher.Start(ctx, spec)
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	if err != nil {
		return err
	}
	if l.json {
		if err := l.print(map[string]any{"lane": lane, "exit": exit, "output": output.String()}, nil); err != nil {
			return err
		}
	}
	// The exit code is the program's own, so a script can tell its failure from one of muster only by the message.
	if exit != 0 {
		return exitStatus(exit)
	}
	return nil
}

// keep returns muster worktree keep. A lane that is marked so is not removed after its task has landed.
func (l laneCommands) keep() *cobra.Command {
	return &cobra.Command{Use: "keep NAME", Short: "mark a lane to be kept", Args: namedArgs("NAME"),
		RunE: l.onLanes(func(
			ctx context.Context, _ *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, _ []string,
		) error {
			if err := lanes.Keep(ctx, name); err != nil {
				return err
			}
			lane, err := lanes.Get(ctx, name)
			if err != nil {
				return err
			}
			return l.printLine(lane, "lane %s is kept", name)
		})}
}

// remove returns muster worktree remove. With --force it also removes a lane in which a member works: what the lane
// holds is archived first.
func (l laneCommands) remove() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "remove NAME", Short: "remove a lane; refused while it holds unlanded work",
		Args: namedArgs("NAME")}
	c.Flags().BoolVar(&force, "force", false, "archive what it holds under refs/muster/archive/, then remove it")
	c.RunE = l.onLanes(func(
		ctx context.Context, w *workspace.Workspace, lanes *worktree.Lanes, name muster.Name, _ []string,
	) error {
		lane, err := lanes.Get(ctx, name)
		if err != nil {
			return err
		}
		// With force the lane is archived before it is removed, so nothing is lost even where somebody works in it.
		if !force {
			if err := checkLaneIsFree(ctx, w, lane); err != nil {
				return err
			}
		}
		if err := lanes.Remove(ctx, name, force); err != nil {
			return err
		}
		return l.printLine(lane, "lane %s is removed", name)
	})
	return c
}

// checkLaneIsFree refuses to remove a lane in which a member works. The lane of a completed task, or of one without
// an owner, may go: nobody works in it.
func checkLaneIsFree(ctx context.Context, w *workspace.Workspace, lane muster.Lane) error {
	if lane.TaskID == 0 {
		return nil
	}
	t, err := w.Board().Get(ctx, lane.TaskID)
	if err != nil || t.Worktree != lane.Name || t.Owner == "" || !t.Open() {
		return nil // no task that is somebody's
	}
	return muster.Errorf(muster.Held, "lane %s is where %s works on task %d", lane.Name, t.Owner, t.ID).
		WithHint("muster task release %d", t.ID)
}
