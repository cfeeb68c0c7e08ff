package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/board"
	"muster/internal/view"
)

func (a *App) taskCommand() *cobra.Command {
	return a.group("task", "the board: add, list, claim, complete", a.taskAdd(), a.taskList(), a.taskShow(), a.taskClaim(),
		a.taskComplete(), a.taskRelease(), a.taskRetry(), a.taskDelete())
}

// taskID reads a task's id: 3 or #3.
func taskID(c *cobra.Command, s string) (muster.TaskID, error) {
	n, err := strconv.Atoi(strings.TrimPrefix(s, "#"))
	if err != nil || n <= 0 {
		return 0, &usageError{c.CommandPath(), fmt.Sprintf("%q is not a task's id: ids are numbers, muster task list shows them", s)}
	}
	return muster.TaskID(n), nil
}

// told prints a task as JSON, with Blocks as the board has them now, or one line about it.
func (a *App) told(ctx context.Context, b *board.Board, t muster.Task, f string, args ...any) error {
	if a.json {
		var err error
		if t, err = b.WithBlocks(ctx, t); err != nil {
			return err
		}
	}
	return a.toldAsIs(t, f, args...)
}

// toldAsIs is told for a task that has its Blocks already, or is gone.
func (a *App) toldAsIs(t muster.Task, f string, args ...any) error {
	return a.print(t, func(w io.Writer, _ view.Paint, _ int) error {
		_, err := fmt.Fprintf(w, f+"\n", args...)
		return err
	})
}

func (a *App) taskAdd() *cobra.Command {
	var d board.Draft
	var blockers []string
	c := &cobra.Command{Use: "add SUBJECT", Short: "put a task on the board", Args: exactly("SUBJECT...")}
	f := c.Flags()
	f.StringVarP(&d.Description, "description", "d", "", "`TEXT` that says what is wanted; - reads it from standard input")
	f.StringSliceVar(&blockers, "blocked-by", nil, "`IDS` of tasks that must be completed first: 1,2")
	f.StringVar(&d.Role, "role", "", "only members of this `ROLE` may claim it")
	f.IntVar(&d.Priority, "priority", 0, "higher goes first")
	c.RunE = func(c *cobra.Command, args []string) error {
		ctx := c.Context()
		for _, s := range blockers {
			id, err := taskID(c, strings.TrimSpace(s))
			if err != nil {
				return err
			}
			d.BlockedBy = append(d.BlockedBy, id)
		}
		if d.Description == "-" {
			data, err := io.ReadAll(a.Stdin)
			if err != nil {
				return err
			}
			d.Description = string(data)
		}
		d.Subject, d.CreatedBy = strings.Join(args, " "), muster.User
		p, err := a.change(ctx)
		if err != nil {
			return err
		}
		defer p.close()
		t, err := p.theBoard().Create(ctx, d)
		if err != nil {
			return err
		}
		return a.told(ctx, p.theBoard(), t, "task %d added", t.ID)
	}
	return c
}

func (a *App) taskList() *cobra.Command {
	var state, owner string
	var whole bool
	c := &cobra.Command{Use: "list", Short: "all tasks; on a terminal as a tree, each under the one that it waits for", Args: exactly(),
		Long: "On a terminal completed tasks are only counted, unless --all or --status asks for them.\nElsewhere, and with --json, all are listed."}
	c.Flags().StringVar(&state, "status", "", "only those with this `STATUS`: "+strings.Join(statuses(), ", "))
	c.Flags().StringVar(&owner, "owner", "", "only those of `NAME`")
	c.Flags().BoolVar(&whole, "all", false, "completed ones too")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if state != "" && !slices.Contains(statuses(), state) {
			return &usageError{c.CommandPath(), fmt.Sprintf("there is no status %q", state)}
		}
		all, err := a.tasks(c.Context())
		if err != nil {
			return err
		}
		all = slices.DeleteFunc(all, func(t muster.Task) bool {
			return state != "" && string(t.Status) != state || owner != "" && string(t.Owner) != owner
		})
		if a.json {
			return writeList(a.Stdout, all)
		}
		return a.print(all, func(w io.Writer, p view.Paint, width int) error {
			if width == 0 || len(all) == 0 {
				return writeTasks(w, p, width, all)
			}
			return writeBoard(w, p, width, all, whole || state != "")
		})
	}
	return c
}

// statuses are what a task can be.
func statuses() []string {
	return []string{string(muster.Pending), string(muster.InProgress), string(muster.Landing), string(muster.Completed), string(muster.NeedsAttention)}
}

// writeBoard prints the tasks as a tree; unless the whole is wanted, completed ones are counted only.
func writeBoard(w io.Writer, p view.Paint, width int, all []muster.Task, whole bool) error {
	n := len(all)
	if !whole {
		all = slices.DeleteFunc(all, func(t muster.Task) bool { return t.Status == muster.Completed })
	}
	if len(all) > 0 {
		if err := view.WriteTree(w, p, width, all); err != nil {
			return err
		}
	}
	if n -= len(all); n > 0 {
		_, err := fmt.Fprintf(w, "%s completed: muster task list --all\n", view.Count(n, "task"))
		return err
	}
	return nil
}

// tasks is the board, an empty list where there is none.
func (a *App) tasks(ctx context.Context) ([]muster.Task, error) {
	p, err := a.look(ctx)
	if errors.Is(err, nobody) {
		return []muster.Task{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	all, err := p.theBoard().List(ctx)
	if err != nil {
		return nil, err
	}
	for _, u := range p.theBoard().Corrupt() {
		explain(a.Stderr, u.Why, "muster doctor")
	}
	return all, nil
}

func writeTasks(w io.Writer, p view.Paint, width int, all []muster.Task) error {
	if len(all) == 0 {
		_, err := fmt.Fprintln(w, "no tasks: muster task add SUBJECT")
		return err
	}
	t := view.Table{Titles: []string{">ID", "STATUS", "SUBJECT", "OWNER", "WAITS FOR"}, Wide: 2}
	for _, x := range all {
		waits := view.IDs(x.BlockedBy)
		if waits == "" && x.Status == muster.Pending && x.ClaimRole != "" {
			waits = "a " + view.OneLine(x.ClaimRole)
		}
		t.Row(view.Text(fmt.Sprint(x.ID)), view.TaskStatus(x.Status), view.Text(view.OneLine(x.Subject)), view.Cell{Text: view.OneLine(string(x.Owner)), Who: view.OneLine(string(x.Owner))}, view.Text(waits))
	}
	return t.Write(w, p, width)
}

func (a *App) taskShow() *cobra.Command {
	return &cobra.Command{Use: "show ID", Short: "one task, whole", Args: exactly("ID"), RunE: func(c *cobra.Command, args []string) error {
		id, err := taskID(c, args[0])
		if err != nil {
			return err
		}
		p, err := a.look(c.Context())
		if errors.Is(err, nobody) {
			return muster.Errorf(muster.NotFound, "there is no task %d", id).WithHint("muster task list")
		}
		if err != nil {
			return err
		}
		defer p.close()
		t, err := p.theBoard().Get(c.Context(), id)
		if err != nil {
			return listed(err)
		}
		if t, err = p.theBoard().WithBlocks(c.Context(), t); err != nil {
			return err
		}
		return a.print(t, func(w io.Writer, pt view.Paint, _ int) error { return view.WriteTask(w, pt, t, a.Now()) })
	}}
}

// listed hints at the list where there is no such task.
func listed(err error) error {
	var e *muster.Error
	if errors.As(err, &e) && e.Code == muster.NotFound && e.Hint == "" {
		return e.WithHint("muster task list")
	}
	return err
}

// one is a command that changes the task that its argument names.
func (a *App) one(c *cobra.Command, args []string, settles bool, f func(ctx context.Context, p *place, b *board.Board, id muster.TaskID) error) error {
	id, err := taskID(c, args[0])
	if err != nil {
		return err
	}
	ctx := c.Context()
	p, err := a.change(ctx)
	if err != nil {
		return err
	}
	defer p.close()
	b := p.theBoard()
	if settles {
		if b, err = p.settling(ctx); err != nil {
			return err
		}
	}
	return listed(f(ctx, p, b, id))
}

func (a *App) taskClaim() *cobra.Command {
	var as, role string
	c := &cobra.Command{Use: "claim ID", Short: "take a task for somebody outside the team; exits 1 when another has it", Args: exactly("ID"),
		Long: "NAME need not be a member. The task has no lane and is never taken away for idleness:\nit ends with muster task complete or muster task release."}
	c.Flags().StringVar(&as, "as", "", "`NAME` of the new owner")
	c.Flags().StringVar(&role, "role", "", "the owner's `ROLE`, for tasks that want one")
	c.RunE = func(c *cobra.Command, args []string) error {
		if as == "" {
			return &usageError{c.CommandPath(), c.CommandPath() + " wants --as NAME"}
		}
		return a.one(c, args, false, func(ctx context.Context, p *place, b *board.Board, id muster.TaskID) error {
			t, err := b.Claim(ctx, id, board.Claim{Owner: muster.Name(as), Role: role, Source: muster.SourceManual})
			if err != nil {
				return err
			}
			return a.told(ctx, b, t, "task %d is %s's", t.ID, t.Owner)
		})
	}
	return c
}

func (a *App) taskComplete() *cobra.Command {
	var as, result string
	c := &cobra.Command{Use: "complete ID", Short: "complete a task that has no unlanded work in a lane", Args: exactly("ID")}
	c.Flags().StringVar(&as, "as", "", "complete it as `NAME`, who must own it")
	c.Flags().StringVar(&result, "result", "", "`TEXT` that the owners of its dependants read")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.one(c, args, true, func(ctx context.Context, p *place, b *board.Board, id muster.TaskID) error {
			t, err := b.Get(ctx, id)
			if err != nil {
				return err
			}
			by := muster.User
			if as != "" {
				by = muster.Name(as)
				if t.Status == muster.Completed {
					return a.told(ctx, b, t, "task %d is completed already", t.ID)
				}
				if t.Owner != by {
					return notTheirs(t, by)
				}
			}
			if err := p.nothingUnlanded(ctx, t); err != nil {
				return err
			}
			already := t.Status == muster.Completed
			if t, err = b.Finish(ctx, id, by, result); err != nil {
				return err
			}
			if already {
				return a.told(ctx, b, t, "task %d is completed already", t.ID)
			}
			return a.told(ctx, b, t, "task %d completed", t.ID)
		})
	}
	return c
}

// notTheirs refuses a completion in somebody's name who does not own the task.
func notTheirs(t muster.Task, by muster.Name) error {
	if t.Owner == "" {
		return muster.Errorf(muster.Invalid, "task %d is %s and nobody's, so %s cannot complete it", t.ID, t.Status, by).
			WithHint("muster task claim %d --as %s\nor, as yourself:  muster task complete %d", t.ID, by, t.ID)
	}
	return muster.Errorf(muster.Held, "task %d is %s's, not %s's", t.ID, t.Owner, by).WithHint("as yourself:  muster task complete %d", t.ID)
}

// nothingUnlanded refuses to complete a task whose lane holds work that is not on the target: it would be dropped.
func (p *place) nothingUnlanded(ctx context.Context, t muster.Task) error {
	if t.Worktree == "" || t.Status == muster.Completed {
		return nil
	}
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return err
	}
	changed, err := lanes.Changed(ctx, t.Worktree)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return nil
	case err != nil:
		return muster.Errorf(muster.Invalid, "task %d is not completed: cannot verify that lane %s holds nothing unlanded: %w", t.ID, t.Worktree, err).
			WithHint("muster worktree list")
	case changed:
		return muster.Errorf(muster.Invalid, "task %d is not completed: its lane %s holds work that has not landed", t.ID, t.Worktree).
			WithHint("see it:         muster worktree run %[1]s -- git status\nlet it land:    its owner completes it, or muster resume\nput it aside:   muster worktree remove %[1]s --force   (archived first), then again", t.Worktree)
	}
	return nil
}

func (a *App) taskRelease() *cobra.Command {
	var reason string
	c := &cobra.Command{Use: "release ID", Short: "take a task from its owner and put it back on the board", Args: exactly("ID"),
		Long: "What the old owner still does for it is refused; its lane is kept."}
	c.Flags().StringVar(&reason, "reason", "released by the user", "`TEXT` that the events keep")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.one(c, args, false, func(ctx context.Context, p *place, b *board.Board, id muster.TaskID) error {
			t, err := p.revoke(ctx, id, reason)
			if err != nil {
				return err
			}
			return a.told(ctx, b, t, "task %d is back on the board", t.ID)
		})
	}
	return c
}

func (a *App) taskRetry() *cobra.Command {
	return &cobra.Command{Use: "retry ID", Short: "let a task that needs attention be tried again", Args: exactly("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			return a.one(c, args, false, func(ctx context.Context, _ *place, b *board.Board, id muster.TaskID) error {
				t, err := b.Update(ctx, id, board.Patch{Retry: true, By: muster.User})
				if err != nil {
					return err
				}
				return a.told(ctx, b, t, "task %d is pending again", t.ID)
			})
		}}
}

func (a *App) taskDelete() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "delete ID", Short: "remove a task; refused while others wait for it", Args: exactly("ID")}
	c.Flags().BoolVar(&force, "force", false, "remove it all the same: those that wait for it no longer do")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.one(c, args, false, func(ctx context.Context, p *place, b *board.Board, id muster.TaskID) error {
			t, err := b.Get(ctx, id)
			if err != nil {
				return err
			}
			if a.json { // now: when it is gone nothing depends on it any more
				if t, err = b.WithBlocks(ctx, t); err != nil {
					return err
				}
			}
			b.OnRevoke(p.revokeLanding)
			if err := b.Delete(ctx, id, force); err != nil {
				return err
			}
			return a.toldAsIs(t, "task %d deleted", id)
		})
	}
	return c
}
