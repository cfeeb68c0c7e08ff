package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/board"
	"muster/internal/workspace"
)

// taskCommands are the commands of the board. A person can do with them what members do with their tools.
type taskCommands struct{ *App }

// group returns muster task and its commands.
func (t taskCommands) group() *cobra.Command {
	return newGroup("task", "the board: add, list, claim, complete",
		t.add(), t.list(), t.show(), t.claim(), t.complete(), t.release(), t.retry(), t.delete())
}

// add returns muster task add. What can be wrong in the command line is checked before the workspace is opened. The
// subject may be several words without quotes.
func (t taskCommands) add() *cobra.Command {
	var d board.Draft
	var blockers []string
	c := &cobra.Command{Use: "add SUBJECT", Short: "put a task on the board", Args: namedArgs("SUBJECT...")}
	f := c.Flags()
	f.StringVarP(&d.Description, "description", "d", "",
		"`TEXT` that says what is wanted; - reads it from standard input")
	f.StringSliceVar(&blockers, "blocked-by", nil, "`IDS` of tasks that must be completed first: 1,2")
	f.StringVar(&d.Role, "role", "", "only members of this `ROLE` may claim it")
	f.IntVar(&d.Priority, "priority", 0, "higher goes first")
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
		d.Subject, d.CreatedBy = strings.Join(args, " "), muster.User
		return t.changing(func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			task, err := w.Board().Create(c.Context(), d)
			if err != nil {
				return err
			}
			return t.printTask(c.Context(), w, task, "task %d added", task.ID)
		})(c, args)
	}
	return c
}

// printTask prints a task as JSON, with Blocks as the board has them now, or one line about it. Blocks is computed
// from the other tasks, so it is asked for only where it is printed.
func (t taskCommands) printTask(
	ctx context.Context, w *workspace.Workspace, task muster.Task, format string, args ...any,
) error {
	if t.json {
		var err error
		if task, err = w.Board().WithBlocks(ctx, task); err != nil {
			return err
		}
	}
	return t.printLine(task, format, args...)
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

// onTask returns the function of a command that changes the task that its argument names. The id is checked before
// the workspace is opened.
func (t taskCommands) onTask(
	do func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error,
) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, args []string) error {
		id, err := parseTaskID(c, args[0])
		if err != nil {
			return err
		}
		return t.changing(func(c *cobra.Command, w *workspace.Workspace, _ []string) error {
			return hintAtList(do(c.Context(), w, id))
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
	c.RunE = t.onTask(func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error {
		if as == "" {
			return &usageError{c.CommandPath(), c.CommandPath() + " wants --as NAME"}
		}
		// A manual claim has no lane and no host: nobody takes it back for the owner's idleness or death.
		claim := board.Claim{Owner: muster.Name(as), Role: role, Source: muster.SourceManual}
		task, err := w.Board().Claim(ctx, id, claim)
		if err != nil {
			return err
		}
		return t.printTask(ctx, w, task, "task %d is %s's", task.ID, task.Owner)
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
	c.RunE = t.onTask(func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error {
		task, err := w.Board().Get(ctx, id)
		if err != nil {
			return err
		}
		// Without --as the user completes the task, whoever owns it.
		by := muster.User
		if as != "" {
			by = muster.Name(as)
			// A completed task is left as it is, whoever owned it: the command may be repeated by a script.
			if task.Owner != by && task.Status != muster.Completed {
				return errNotOwner(task, by)
			}
		}
		isCompleted := task.Status == muster.Completed
		if !isCompleted || as == "" {
			if err := checkAllLanded(ctx, w, task); err != nil {
				return err
			}
			// Also for one that is completed: what was cut short of what follows is done now.
			if task, err = w.Board().Finish(ctx, id, by, result); err != nil {
				return err
			}
		}
		if isCompleted {
			return t.printTask(ctx, w, task, "task %d is completed already", id)
		}
		return t.printTask(ctx, w, task, "task %d completed", id)
	})
	return c
}

// errNotOwner refuses a completion in somebody's name who does not own the task. The hint says how to complete the
// task all the same.
func errNotOwner(t muster.Task, by muster.Name) error {
	if t.Owner == "" {
		return muster.Errorf(muster.Invalid, "task %d is %s and nobody's, so %s cannot complete it",
			t.ID, t.Status, by).
			WithHint("muster task claim %d --as %s\nor, as yourself:  muster task complete %d", t.ID, by, t.ID)
	}
	return muster.Errorf(muster.Held, "task %d is %s's, not %s's", t.ID, t.Owner, by).
		WithHint("as yourself:  muster task complete %d", t.ID)
}

// checkAllLanded refuses to complete a task whose lane holds work that is not on the target: it would be dropped.
// When it cannot be verified, the task stays open: work that is lost cannot be restored, and a refused command can
// be repeated.
func checkAllLanded(ctx context.Context, w *workspace.Workspace, t muster.Task) error {
	if t.Worktree == "" || t.Status == muster.Completed {
		return nil
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return err
	}
	changed, err := lanes.Changed(ctx, t.Worktree)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return nil // it was removed, and what it held was archived then
	case err != nil: // what cannot be verified is kept
		return muster.Errorf(muster.Invalid,
			"task %d is not completed: cannot verify that lane %s holds nothing unlanded: %w", t.ID, t.Worktree, err).
			WithHint("muster worktree list")
	// The hint names three ways to go on, because only the user knows which one is right.
	case changed:
		return muster.Errorf(muster.Invalid, "task %d is not completed: its lane %s holds work that has not landed",
			t.ID, t.Worktree).
			WithHint("see it:         muster worktree run %[1]s -- git status\n"+
				"let it land:    its owner completes it, or muster resume\n"+
				"put it aside:   muster worktree remove %[1]s --force   (archived first), then again", t.Worktree)
	}
	return nil
}

// release returns muster task release. The fence of the task moves on, so nothing that the old owner still does can
// change it.
func (t taskCommands) release() *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "release ID", Short: "take a task from its owner and put it back on the board",
		Args: namedArgs("ID"), Long: "What the old owner still does for it is refused; its lane is kept."}
	c.Flags().StringVar(&reason, "reason", "released by the user", "`TEXT` that the events keep")
	c.RunE = t.onTask(func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error {
		task, err := w.RevokeTask(ctx, id, muster.User, reason)
		if err != nil {
			return err
		}
		return t.printTask(ctx, w, task, "task %d is back on the board", task.ID)
	})
	return c
}

// retry returns muster task retry. Only a task that needs attention can be retried; the board refuses any other.
func (t taskCommands) retry() *cobra.Command {
	return &cobra.Command{Use: "retry ID", Args: namedArgs("ID"),
		Short: "let a task that needs attention be tried again",
		RunE: t.onTask(func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error {
			task, err := w.Board().Update(ctx, id, board.Patch{Retry: true, By: muster.User})
			if err != nil {
				return err
			}
			return t.printTask(ctx, w, task, "task %d is pending again", task.ID)
		})}
}

// delete returns muster task delete. The deleted task is printed as it was, with the tasks that waited for it.
func (t taskCommands) delete() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "delete ID", Args: namedArgs("ID"),
		Short: "remove a task; refused while others wait for it"}
	c.Flags().BoolVar(&force, "force", false, "remove it all the same: those that wait for it no longer do")
	c.RunE = t.onTask(func(ctx context.Context, w *workspace.Workspace, id muster.TaskID) error {
		task, err := w.Board().Get(ctx, id)
		if err != nil {
			return err
		}
		// Before it is deleted, because then nothing depends on it any more.
		if task, err = w.Board().WithBlocks(ctx, task); err != nil {
			return err
		}
		if err := w.Board().Delete(ctx, id, force); err != nil {
			return err
		}
		return t.printLine(task, "task %d deleted", id)
	})
	return c
}
