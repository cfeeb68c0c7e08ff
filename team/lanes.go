package team

import (
	"cmp"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/proc"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// Lanes are the worktrees in which members work.
type Lanes struct{ t *Team }

// Lanes returns the lanes of the team.
func (t *Team) Lanes() Lanes { return Lanes{t} }

// List returns all lanes. Where none was ever made it does not ask git, which takes longer than all else that a command
// does that shows how a team stands.
func (s Lanes) List(ctx context.Context) ([]muster.Lane, error) {
	w := s.t.services()
	if !w.HasLanes() {
		return nil, nil
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return nil, err
	}
	return lanes.List(ctx)
}

// Get returns one lane. The error is NotFound when there is none of that name.
func (s Lanes) Get(ctx context.Context, name muster.Name) (muster.Lane, error) {
	if !s.t.services().HasLanes() {
		return muster.Lane{}, muster.Errorf(muster.NotFound, "there is no lane %s", name)
	}
	lanes, err := s.t.services().Lanes(ctx)
	if err != nil {
		return muster.Lane{}, err
	}
	return lanes.Get(ctx, name)
}

// LaneSize returns how many bytes the files of a lane have, those that git ignores too; 0 where it is gone. What git
// shares between worktrees is no part of them. It takes seconds for a large lane.
func LaneSize(lane muster.Lane) int64 { return sizeOf(lane.Path) }

// LaneDraft is what a lane that is made by hand is like. Only Name is needed.
type LaneDraft struct {
	Name muster.Name
	Task muster.TaskID // the pending task that is bound to it; 0 is none
	Base string        // the commit it starts from; "" is the team's target, or HEAD while there is none
}

// Create makes a lane. A task that is bound to it stays pending for its claimer; lanes of claimed tasks are made
// without Create. The error is Invalid when the task is not pending or has a lane already.
func (s Lanes) Create(ctx context.Context, d LaneDraft) (lane muster.Lane, err error) {
	w, lanes, err := s.change(ctx)
	if err != nil {
		return lane, err
	}
	var t muster.Task
	if d.Task != 0 {
		if t, err = w.Board().Get(ctx, d.Task); err != nil {
			return lane, err
		}
		if t.Status != muster.Pending || t.Worktree != "" {
			return lane, muster.Errorf(muster.Invalid,
				"task %d cannot be bound to a lane: only a pending task without one can", t.ID).
				WithHint("muster task show %d", t.ID)
		}
	}
	// The base is resolved to a commit now, so that the lane does not depend on where a branch moves.
	base, err := w.LaneBase(ctx, d.Base)
	if err != nil {
		return lane, err
	}
	local, err := w.Trust().LocalFiles(ctx)
	if err != nil {
		return lane, err
	}
	// The lane is made first: a task that names a lane which does not exist could not be worked on.
	if lane, err = lanes.Create(ctx, d.Name, d.Task, base); err != nil {
		return lane, err
	}
	if err := lanes.SetLocal(ctx, lane.Name, local.Names()); err != nil {
		return lane, err
	}
	if _, err := local.Put(lane.Path); err != nil || d.Task == 0 {
		return lane, err
	}
	// The fence makes sure that the task was not claimed meanwhile. If it was, the lane stays and belongs to nobody.
	_, err = w.Board().SetLane(ctx, d.Task, t.Fence, lane.Name, lane.Base)
	return lane, err
}

func (s Lanes) change(ctx context.Context) (*workspace.Workspace, *worktree.Lanes, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return nil, nil, err
	}
	lanes, err := w.Lanes(ctx)
	return w, lanes, err
}

// Command is a program that Lanes.Run runs.
type Command struct {
	// Args are the program and its arguments. A single word with spaces or shell characters in it is given to the
	// shell.
	Args  []string
	Env   []string // NAME=value; nil is this process's environment. The command sees what a check would see of it
	Stdin io.Reader
	Out   io.Writer // gets standard output and standard error; nil discards them
	// PassEnv names variables that the command sees beside those of Config.PassEnv.
	PassEnv []string
}

// Run runs a command in a lane's directory and returns its exit code. Nothing of the command outlives the call.
func (s Lanes) Run(ctx context.Context, name muster.Name, c Command) (exit int, err error) {
	_, lanes, err := s.change(ctx)
	if err != nil {
		return 0, err
	}
	dir, err := lanes.Enter(ctx, name)
	if err != nil {
		return 0, err
	}
	// One word with a blank in it cannot be the name of a program, so it is meant for the shell.
	argv := c.Args
	if len(argv) == 1 && strings.ContainsAny(argv[0], " \t\n;|&<>$*") {
		argv = proc.Shell(argv[0])
	}
	if c.Env == nil {
		c.Env = s.t.site.config.wholeEnviron()
	}
	env := proc.Environment(c.Env, slices.Concat(s.t.site.config.PassEnv, c.PassEnv))
	if _, err := os.Stat(filepath.Join(dir, "go.work")); err != nil {
		env = append(env, "GOWORK=off") // a go.work of the user's above the lane is not the lane's
	}
	env = proc.WithVariables(env, worktree.Environ(ctx, lanes, dir, env)...)
	// The launcher is one like that of a member's tools: what the command leaves behind is killed with it.
	launcher, err := proc.New(ctx)
	if err != nil {
		return 0, err
	}
	defer launcher.Close()
	p, err := launcher.Start(ctx, proc.Spec{Argv: argv, Dir: dir, Env: env, Stdin: c.Stdin,
		Out: cmp.Or(c.Out, io.Discard)})
	if err != nil {
		return 0, err
	}
	return p.Wait()
}

// Keep marks a lane to be kept after its task is done, and returns it.
func (s Lanes) Keep(ctx context.Context, name muster.Name) (muster.Lane, error) {
	_, lanes, err := s.change(ctx)
	if err == nil {
		err = lanes.Keep(ctx, name)
	}
	if err != nil {
		return muster.Lane{}, err
	}
	return lanes.Get(ctx, name)
}

// Remove removes a lane and returns it as it was. It is refused while a member works in the lane or while the lane
// holds work that has not landed. With force it is removed all the same, and what it holds is archived first.
func (s Lanes) Remove(ctx context.Context, name muster.Name, force bool) (muster.Lane, error) {
	w, lanes, err := s.change(ctx)
	if err != nil {
		return muster.Lane{}, err
	}
	lane, err := lanes.Get(ctx, name)
	if err != nil {
		return lane, err
	}
	// With force the lane is archived before it is removed, so nothing is lost even where somebody works in it.
	if !force && lane.TaskID != 0 {
		// The lane of a completed task, or of one without an owner, may go: nobody works in it.
		t, err := w.Board().Get(ctx, lane.TaskID)
		if err == nil && t.Worktree == lane.Name && t.Owner != "" && t.Open() {
			return lane, muster.Errorf(muster.Held, "lane %s is where %s works on task %d", lane.Name, t.Owner, t.ID).
				WithHint("muster task release %d", t.ID)
		}
	}
	return lane, lanes.Remove(ctx, name, force)
}
