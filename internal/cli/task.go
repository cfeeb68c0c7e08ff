package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// taskCommands are the commands of the board. A person can do with them what members do with their tools.
type taskCommands struct{ *App }

func (t taskCommands) group() *cobra.Command {
	return newGroup("task", "the board: add, list, claim, complete",
		t.add(), t.list(), t.show(), t.claim(), t.complete(), t.release(), t.retry(), t.delete())
}

// add returns muster task add. What can be wrong in the command line is checked before the workspace is opened. The
// subject may be several words without quotes.
func (t taskCommands) add() *cobra.Command {
	var d team.TaskDraft
	var blockers []string
	c := &cobra.Command{Use: "add SUBJECT", Short: "put a task on the board", Args: namedArgs("SUBJECT...")}
	f := c.Flags()
	f.StringVarP(&d.Description, "description", "d", "",
		"`TEXT` that says what is wanted; - reads it from standard input")
	f.StringSliceVar(&blockers, "blocked-by", nil, "`IDS` of tasks that must be completed first: 1,2")
	f.StringVar(&d.Role, "role", "", "only members of this `ROLE` may claim it")
	f.BoolVar(&d.Review, "review", false, "its work is reviewed before it lands")
	f.IntVar(&d.Priority, "priority", 0, "higher goes first")
	f.StringSliceVar(&d.Files, "files", nil, "`PATHS` or globs that it will change; others go first meanwhile")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		// --blocked-by 1,2 and --blocked-by 1 --blocked-by 2 mean the same, and blanks between ids are fine.
		for _, s := range blockers {
			id, err := parseTaskID(c, strings.TrimSpace(s))
			if err != nil {
				return err
			}
			d.BlockedBy = append(d.BlockedBy, id)
		}
		if d.Description, err = t.textOrStdin(d.Description); err != nil {
			return err
		}
		d.Subject = strings.Join(args, " ")
		return t.telling(func(c *cobra.Command, o opened, _ []string) error {
			task, err := o.Tasks().Add(c.Context(), d)
			return t.printTask(c.Context(), o.Tasks(), task, err, "added")
		})(c, args)
	}
	return c
}

// printTask prints a task as JSON, with Blocks as the board has them now, or one line that says what became of it.
// Blocks is computed from the other tasks, so it is asked for only where it is printed. A task that has them keeps
// them: it was deleted, and nothing waits for it any more.
func (t taskCommands) printTask(
	ctx context.Context, tasks team.Tasks, task muster.Task, err error, what string,
) error {
	if err == nil && t.json && len(task.Blocks) == 0 {
		task, err = tasks.WithBlocks(ctx, task)
	}
	return t.printLine(task, err, "task %d %s", task.ID, what)
}

// hintAtList adds a hint to the error that there is no such task. Any other error, and one that has a hint, is
// returned as it is.
func hintAtList(err error) error {
	e, ok := errors.AsType[*muster.Error](err)
	if ok && e.Code == muster.NotFound && e.Hint == "" {
		return e.WithHint("muster task list")
	}
	return err
}

// taskChange changes the task with an id, and says what became of it.
type taskChange func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (task muster.Task, what string, err error)

// onTask returns the function of a command that changes the task that its argument names, and prints the task with
// what became of it.
func (t taskCommands) onTask(do taskChange) func(*cobra.Command, []string) error {
	return t.on(t.changing, do)
}

// onTeamTask is onTask for a task that a team is to do then: see App.telling.
func (t taskCommands) onTeamTask(do taskChange) func(*cobra.Command, []string) error {
	return t.on(t.telling, do)
}

// on checks the id before it opens the workspace with change.
func (t taskCommands) on(
	change func(action) func(*cobra.Command, []string) error, do taskChange,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		id, err := parseTaskID(c, args[0])
		if err != nil {
			return err
		}
		return change(func(c *cobra.Command, o opened, _ []string) error {
			task, what, err := do(c.Context(), o.Tasks(), id)
			return t.printTask(c.Context(), o.Tasks(), task, hintAtList(err), what)
		})(c, args)
	}
}

// claim returns muster task claim, with which people and other programs take tasks beside the team. The board
// decides who comes first when several claim the same task.
func (t taskCommands) claim() *cobra.Command {
	var as, role string
	c := &cobra.Command{Use: "claim ID", Args: namedArgs("ID"),
		Short: "take a task for somebody outside the team; exits 1 when another has it",
		Long: "NAME need not be a member. The task has no lane and is never taken away for idleness:\n" +
			"it ends with muster task complete or muster task release."}
	c.Flags().StringVar(&as, "as", "", "`NAME` of the new owner")
	c.Flags().StringVar(&role, "role", "", "the owner's `ROLE`, for tasks that want one")
	c.RunE = t.onTask(func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (muster.Task, string, error) {
		// cobra could mark the flag as required, but its message would not say how to get help.
		if as == "" {
			return muster.Task{}, "", &usageError{c.CommandPath(), c.CommandPath() + " wants --as NAME"}
		}
		task, err := tasks.Claim(ctx, id, muster.Name(as), role)
		return task, fmt.Sprintf("is %s's", task.Owner), err
	})
	return c
}

// complete returns muster task complete. The user may complete any task, and with --as only the owner may. It never
// lands anything.
func (t taskCommands) complete() *cobra.Command {
	var as, result string
	c := &cobra.Command{Use: "complete ID", Args: namedArgs("ID"),
		Short: "complete a task that has no unlanded work in a lane"}
	c.Flags().StringVar(&as, "as", "", "complete it as `NAME`, who must own it")
	c.Flags().StringVar(&result, "result", "", "`TEXT` that the owners of its dependants read")
	c.RunE = t.onTask(func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (muster.Task, string, error) {
		// Without --as the user completes the task, whoever owns it.
		task, wasCompleted, err := tasks.Complete(ctx, id, muster.Name(as), result)
		if wasCompleted {
			return task, "is completed already", err
		}
		return task, "completed", err
	})
	return c
}

// release returns muster task release. The fence of the task moves on, so nothing that the old owner still does can
// change it.
func (t taskCommands) release() *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "release ID", Short: "take a task from its owner and put it back on the board",
		Args: namedArgs("ID"), Long: "What the old owner still does for it is refused; its lane is kept."}
	c.Flags().StringVar(&reason, "reason", "released by the user", "`TEXT` that the events keep")
	c.RunE = t.onTeamTask(func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (muster.Task, string, error) {
		task, err := tasks.Release(ctx, id, reason)
		return task, "is back on the board", err
	})
	return c
}

// retry returns muster task retry. Only a task that needs attention can be retried; the board refuses any other.
func (t taskCommands) retry() *cobra.Command {
	return &cobra.Command{Use: "retry ID", Args: namedArgs("ID"),
		Short: "let a task that needs you be tried again",
		RunE: t.onTeamTask(func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (muster.Task, string, error) {
			task, err := tasks.Change(ctx, id, team.TaskChange{Retry: true})
			return task, "is on the board again", err
		})}
}

// delete returns muster task delete. The deleted task is printed as it was, with the tasks that waited for it.
func (t taskCommands) delete() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "delete ID", Args: namedArgs("ID"),
		Short: "remove a task; refused while others wait for it"}
	c.Flags().BoolVar(&force, "force", false, "remove it all the same: those that wait for it no longer do")
	c.RunE = t.onTask(func(ctx context.Context, tasks team.Tasks, id muster.TaskID) (muster.Task, string, error) {
		task, err := tasks.Delete(ctx, id, force)
		return task, "deleted", err
	})
	return c
}

// taskFilter says which tasks are listed, and how. An empty field matches every task.
type taskFilter struct {
	status, owner string
	all           bool // completed ones too, where they are only counted otherwise
}

// list returns muster task list. A wrong status is an error of usage, because an empty list would look like an
// answer.
func (t taskCommands) list() *cobra.Command {
	var f taskFilter
	c := &cobra.Command{Use: "list", Args: namedArgs(),
		Short: "all tasks; on a terminal as a tree, each under the one that it waits for",
		Long: "On a terminal completed tasks are only counted, unless --all or --status asks for them.\n" +
			"Elsewhere, and with --json, all are listed."}
	c.Flags().StringVar(&f.status, "status", "", "only those with this `STATUS`: "+strings.Join(taskStatuses(), ", "))
	c.Flags().StringVar(&f.owner, "owner", "", "only those of `NAME`")
	c.Flags().BoolVar(&f.all, "all", false, "completed ones too")
	c.RunE = func(c *cobra.Command, args []string) error {
		if f.status != "" && !slices.Contains(append(taskStatuses(), jsonStatuses...), f.status) {
			return &usageError{c.CommandPath(), fmt.Sprintf("there is no status %q", f.status)}
		}
		// Without a team there is an empty board, so that a script need not ask first.
		none := func() error { return t.printList(f, []muster.Task{}) }
		return t.looking(none, func(c *cobra.Command, o opened, _ []string) error {
			all, unreadable, err := o.Tasks().List(c.Context())
			if err != nil {
				return err
			}
			// One document that cannot be read hides only its own task.
			for _, u := range unreadable {
				explain(t.Stderr, u.Why, "muster doctor")
			}
			return t.printList(f, all)
		})(c, args)
	}
	return c
}

// taskStatuses returns what --status takes: the words that the list shows, with a hyphen for a space.
func taskStatuses() []string {
	all := view.TaskWords()
	for i, word := range all {
		all[i] = strings.ReplaceAll(word, " ", "-")
	}
	return all
}

// isStatus reports whether a task has the status that --status names: a word of the list, or a value of the JSON.
func isStatus(t muster.Task, status string) bool {
	return status == strings.ReplaceAll(view.TaskWord(t), " ", "-") || status == string(t.Status)
}

// jsonStatuses are the values of the JSON, which --status takes too.
var jsonStatuses = []string{string(muster.Pending), string(muster.InProgress), string(muster.Landing),
	string(muster.Completed), string(muster.NeedsAttention)}

// printList prints the tasks that match: as JSON, as a table for programs and pipes, or as a tree on a terminal.
// The list of all tasks is used up: the matching ones are moved to its front.
func (t taskCommands) printList(f taskFilter, all []muster.Task) error {
	all = slices.DeleteFunc(all, func(t muster.Task) bool {
		return f.status != "" && !isStatus(t, f.status) || f.owner != "" && string(t.Owner) != f.owner
	})
	return t.print(append([]muster.Task{}, all...), func(s view.Screen) string {
		switch {
		case len(all) == 0:
			return "no tasks: muster task add SUBJECT\n"
		case s.Width == 0: // a pipe gets one line for each task, with the same columns in each
			return taskTable(all).Draw(s)
		}
		// A conversation shows the tasks of its own run, whose completed ones are what people look for.
		return taskTree(s, all, f.all || f.status != "" || t.screenShape != nil)
	})
}

// taskTree returns the tasks as a tree. Completed ones are only counted, unless they are wanted too. Most tasks of an
// old board are completed, and the open ones would not be seen among them.
func taskTree(s view.Screen, all []muster.Task, completedToo bool) (drawn string) {
	// Here hidden is the number of all tasks; below it becomes the number of those left out.
	hidden := len(all)
	if !completedToo {
		all = slices.DeleteFunc(all, func(t muster.Task) bool { return t.Status == muster.Completed })
	}
	if len(all) > 0 {
		drawn = view.Tree(s, all)
	}
	if hidden -= len(all); hidden > 0 {
		drawn += text.Count(hidden, "task") + " completed: muster task list --all\n"
	}
	return drawn
}

// taskTable returns the tasks as a table. A ready task that only one role may claim waits for that role.
func taskTable(all []muster.Task) view.Table {
	// The subject is the column that is cut on a narrow terminal.
	t := view.Table{Titles: []string{">ID", "STATUS", "SUBJECT", "OWNER", "WAITS FOR"}, Wide: 2}
	for _, x := range all {
		waits := view.IDs(x.BlockedBy)
		if waits == "" && x.Status == muster.Pending && x.ClaimRole != "" {
			waits = "a " + x.ClaimRole
		}
		t.Row(x.ID, view.TaskState(x), x.Subject, view.Named(x.Owner), waits)
	}
	return t
}

// show returns muster task show. It prints the description and the result too, which lists leave out.
func (t taskCommands) show() *cobra.Command {
	return &cobra.Command{Use: "show ID", Short: "one task, whole", Args: namedArgs("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(c, args[0])
			if err != nil {
				return err
			}
			// A program that asks for one task has to be told that it is not there, so this is an error.
			none := func() error {
				return hintAtList(muster.Errorf(muster.NotFound, "there is no task %d", id))
			}
			return t.looking(none, func(c *cobra.Command, o opened, _ []string) error {
				task, err := o.Tasks().Get(c.Context(), id)
				if err != nil {
					return hintAtList(err)
				}
				// Which tasks wait for this one is not part of its record.
				if task, err = o.Tasks().WithBlocks(c.Context(), task); err != nil {
					return err
				}
				return t.print(task, func(s view.Screen) string { return view.Task(s.Paint, task, t.Now()) })
			})(c, args)
		}}
}
