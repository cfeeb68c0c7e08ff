package cli

import (
	"context"
	"errors"
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
	"muster/internal/worktree"
)

func (a *App) worktreeCommand() *cobra.Command {
	return a.group("worktree", "lanes: a git worktree for each task", a.worktreeList(), a.worktreeCreate(), a.worktreeRun(), a.worktreeKeep(), a.worktreeRemove())
}

func (a *App) worktreeList() *cobra.Command {
	return &cobra.Command{Use: "list", Short: "all lanes", Args: exactly(), RunE: func(c *cobra.Command, _ []string) error {
		lanes, err := a.lanes(c.Context())
		if err != nil {
			return err
		}
		return a.print(lanes, func(w io.Writer, p view.Paint, width int) error {
			if len(lanes) == 0 {
				_, err := fmt.Fprintln(w, "no lanes")
				return err
			}
			t := view.Table{Titles: []string{"NAME", "STATUS", ">TASK", "BRANCH", "BASE", "PATH"}, Wide: 5}
			for _, l := range lanes {
				task := ""
				if l.TaskID != 0 {
					task = fmt.Sprint(l.TaskID)
				}
				state := view.Cell{Text: string(l.Status)}
				if l.Status == muster.LaneFailed {
					state.Tone = view.Bad
				}
				t.Row(view.Text(string(l.Name)), state, view.Text(task), view.Text(l.Branch), view.Text(fmt.Sprintf("%.7s", l.Base)), view.Text(l.Path))
			}
			return t.Write(w, p, width)
		})
	}}
}

func (a *App) lanes(ctx context.Context) ([]muster.Lane, error) {
	p, err := a.look(ctx)
	if errors.Is(err, nobody) {
		return []muster.Lane{}, nil
	}
	if err != nil {
		return nil, err
	}
	defer p.close()
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return nil, err
	}
	all, err := lanes.List(ctx)
	if all == nil {
		all = []muster.Lane{}
	}
	return all, err
}

// inLanes is a command that changes lanes.
func (a *App) inLanes(c *cobra.Command, f func(ctx context.Context, p *place, l *worktree.Lanes) error) error {
	p, err := a.change(c.Context())
	if err != nil {
		return err
	}
	defer p.close()
	lanes, err := p.theLanes(c.Context())
	if err != nil {
		return err
	}
	return f(c.Context(), p, lanes)
}

// toldLane prints a lane as JSON, or one line about it.
func (a *App) toldLane(v any, f string, args ...any) error {
	return a.print(v, func(w io.Writer, _ view.Paint, _ int) error {
		_, err := fmt.Fprintf(w, f+"\n", args...)
		return err
	})
}

func (a *App) worktreeCreate() *cobra.Command {
	var task, base string
	c := &cobra.Command{Use: "create NAME", Short: "make a lane by hand", Args: exactly("NAME"),
		Long: "Claimed tasks get their lanes by themselves. A task that is bound to one stays pending for its claimer."}
	c.Flags().StringVar(&task, "task", "", "bind it to the pending task `ID`")
	c.Flags().StringVar(&base, "base", "", "the `COMMIT` it starts from (default: the team's target branch, else HEAD)")
	c.RunE = func(c *cobra.Command, args []string) error {
		var id muster.TaskID
		if task != "" {
			var err error
			if id, err = taskID(c, task); err != nil {
				return err
			}
		}
		return a.inLanes(c, func(ctx context.Context, p *place, l *worktree.Lanes) error {
			var t muster.Task
			if id != 0 {
				var err error
				if t, err = p.theBoard().Get(ctx, id); err != nil {
					return listed(err)
				}
				if t.Status != muster.Pending || t.Worktree != "" {
					return muster.Errorf(muster.Invalid, "task %d cannot be bound to a lane: only a pending task without one can", t.ID).
						WithHint("muster task show %d", t.ID)
				}
			}
			from, err := p.base(ctx, base)
			if err != nil {
				return err
			}
			lane, err := l.Create(ctx, muster.Name(args[0]), id, from)
			if err != nil {
				return err
			}
			if id != 0 {
				if _, err := p.theBoard().SetLane(ctx, id, t.Fence, lane.Name, lane.Base); err != nil {
					return err
				}
			}
			return a.toldLane(lane, "lane %s made on %s: %s", lane.Name, lane.Branch, lane.Path)
		})
	}
	return c
}

// base is the commit that a lane made by hand starts from.
func (p *place) base(ctx context.Context, named string) (string, error) {
	repo, err := p.gitRepo(ctx)
	if err != nil {
		return "", err
	}
	if named != "" {
		sha, err := repo.Resolve(ctx, named)
		if err != nil {
			return "", muster.Errorf(muster.NotFound, "there is no commit %q", named).WithHint("git log --oneline --all")
		}
		return sha, nil
	}
	if run, err := p.run(ctx); err == nil && run.Target != "" {
		if sha, err := repo.Resolve(ctx, "refs/heads/"+run.Target); err == nil {
			return sha, nil
		}
	}
	return repo.Head(ctx)
}

func (a *App) worktreeRun() *cobra.Command {
	return &cobra.Command{Use: "run NAME -- CMD", Short: "run a command in a lane; exits as it does", Args: exactly("NAME", "CMD..."),
		Long: "CMD is a program with its arguments; a single word with spaces in it is given to the shell.",
		RunE: func(c *cobra.Command, args []string) error {
			return a.inLanes(c, func(ctx context.Context, _ *place, l *worktree.Lanes) error {
				dir, err := l.Enter(ctx, muster.Name(args[0]))
				if err != nil {
					return err
				}
				return a.runIn(ctx, muster.Name(args[0]), dir, args[1:])
			})
		}}
}

func (a *App) runIn(ctx context.Context, lane muster.Name, dir string, argv []string) error {
	if len(argv) == 1 && strings.ContainsAny(argv[0], " \t\n;|&<>$*") {
		argv = proc.Shell(argv[0])
	}
	launcher, err := proc.New(ctx)
	if err != nil {
		return err
	}
	defer launcher.Close()
	env := slices.Clone(a.Env)
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
		env = append(env, "GOWORK=off") // the user's own go.work above the lane is not the lane's
	}
	var kept strings.Builder
	out := a.Stdout
	if a.json {
		out = &kept
	}
	p, err := launcher.Start(ctx, proc.Spec{Argv: argv, Dir: dir, Env: env, Stdin: a.Stdin, Out: out})
	if err != nil {
		return err
	}
	exit, err := p.Wait()
	if err != nil {
		return err
	}
	if a.json {
		if err := a.print(map[string]any{"lane": lane, "exit": exit, "output": kept.String()}, nil); err != nil {
			return err
		}
	}
	if exit != 0 {
		return status(exit)
	}
	return nil
}

func (a *App) worktreeKeep() *cobra.Command {
	return &cobra.Command{Use: "keep NAME", Short: "mark a lane to be kept", Args: exactly("NAME"), RunE: func(c *cobra.Command, args []string) error {
		return a.inLanes(c, func(ctx context.Context, _ *place, l *worktree.Lanes) error {
			name := muster.Name(args[0])
			if err := l.Keep(ctx, name); err != nil {
				return err
			}
			lane, err := l.Get(ctx, name)
			if err != nil {
				return err
			}
			return a.toldLane(lane, "lane %s is kept", name)
		})
	}}
}

func (a *App) worktreeRemove() *cobra.Command {
	var force bool
	c := &cobra.Command{Use: "remove NAME", Short: "remove a lane; refused while it holds unlanded work", Args: exactly("NAME")}
	c.Flags().BoolVar(&force, "force", false, "archive what it holds under refs/muster/archive/, then remove it")
	c.RunE = func(c *cobra.Command, args []string) error {
		return a.inLanes(c, func(ctx context.Context, p *place, l *worktree.Lanes) error {
			name := muster.Name(args[0])
			lane, err := l.Get(ctx, name)
			if err != nil {
				return err
			}
			if err := p.notInHand(ctx, lane, force); err != nil {
				return err
			}
			if err := l.Remove(ctx, name, force); err != nil {
				return err
			}
			return a.toldLane(lane, "lane %s is removed", name)
		})
	}
	return c
}

// notInHand refuses to take a lane away under a member that works in it.
func (p *place) notInHand(ctx context.Context, lane muster.Lane, force bool) error {
	if lane.TaskID == 0 || force {
		return nil
	}
	t, err := p.theBoard().Get(ctx, lane.TaskID)
	if err != nil || t.Worktree != lane.Name || t.Owner == "" || !t.Open() {
		return nil // no task that is somebody's
	}
	return muster.Errorf(muster.Held, "lane %s is where %s works on task %d", lane.Name, t.Owner, t.ID).
		WithHint("muster task release %d", t.ID)
}
