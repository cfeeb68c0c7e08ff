package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
)

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
		if f.status != "" && !slices.Contains(taskStatuses(), f.status) {
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

// taskStatuses returns what a task can be. The names are those of the JSON.
func taskStatuses() []string {
	return []string{string(muster.Pending), string(muster.InProgress), string(muster.Landing),
		string(muster.Completed), string(muster.NeedsAttention)}
}

// printList prints the tasks that match: as JSON, as a table for programs and pipes, or as a tree on a terminal.
// The list of all tasks is used up: the matching ones are moved to its front.
func (t taskCommands) printList(f taskFilter, all []muster.Task) error {
	all = slices.DeleteFunc(all, func(t muster.Task) bool {
		return f.status != "" && string(t.Status) != f.status || f.owner != "" && string(t.Owner) != f.owner
	})
	if t.json { // not print, which would have the whole list encoded at once
		return writeList(t.Stdout, all)
	}
	return t.print(all, func(s view.Screen) string {
		switch {
		case len(all) == 0:
			return "no tasks: muster task add SUBJECT\n"
		case s.Width == 0: // a pipe gets one line for each task, with the same columns in each
			return taskTable(all).Draw(s)
		}
		return taskTree(s, all, f.all || f.status != "")
	})
}

// taskTree returns the tasks as a tree. Completed ones are only counted, unless they are wanted too. Most tasks of an
// old board are completed, and the open ones would not be seen among them.
func taskTree(s view.Screen, all []muster.Task, completedToo bool) (text string) {
	// Here hidden is the number of all tasks; below it becomes the number of those left out.
	hidden := len(all)
	if !completedToo {
		all = slices.DeleteFunc(all, func(t muster.Task) bool { return t.Status == muster.Completed })
	}
	if len(all) > 0 {
		text = view.Tree(s, all)
	}
	if hidden -= len(all); hidden > 0 {
		text += view.Count(hidden, "task") + " completed: muster task list --all\n"
	}
	return text
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
		t.Row(x.ID, view.TaskStatus(x.Status), x.Subject, view.Named(x.Owner), waits)
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
