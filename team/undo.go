package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/journal"
)

// Undone is what Undo has done, or would do.
type Undone struct {
	Task muster.Task `json:"task"` // that takes the others back; it has no id where nothing was done
	// Undoes are the tasks that are taken back, Dependants those that landed later and depend on them.
	Undoes     []muster.Task `json:"undoes"`
	Dependants []muster.Task `json:"dependants"`
	Files      []string      `json:"files"` // that change
}

func (o operations) undo(ctx context.Context, ids []muster.TaskID, isDryRun bool) (u Undone, err error) {
	if err := o.workspace.PrepareChange(ctx); err != nil {
		return u, err
	}
	run, err := o.lastRun(ctx, "nothing has landed")
	if err != nil {
		return u, err
	}
	// As in a run: its check, its set-up and its hooks hold for what is taken back too.
	s, err := o.open(ctx, run)
	if err != nil {
		return u, err
	}
	w := s.workspace
	x := &undoing{ids: ids, site: s, workspace: w, launch: o.launch}
	if err := x.read(ctx); err != nil {
		return u, err
	}
	if err := x.prepare(ctx); err != nil {
		return x.Undone, err
	}
	if isDryRun {
		return x.Undone, nil
	}
	// While the lease is held no team takes the task for one whose process has died.
	lease, err := w.Store().Leases().Acquire(ctx, workspace.UndoLease)
	if errors.Is(err, muster.ErrHeld) {
		return u, muster.Errorf(muster.Held, "another process is taking tasks back right now").
			WithHint("muster task list")
	}
	if err != nil {
		return u, err
	}
	defer func() { logDropped(ctx, o.log, "releasing the lease", lease.Release()) }()
	return x.Undone, x.land(ctx)
}

// undoing is one call of Undo. Its steps are these:
//
//  1. read finds the tasks and their landed commits; nothing is written.
//  2. prepare makes the commit that takes them back, in memory. A conflict ends the call here.
//  3. task writes the task, with its owner, while the lease is held.
//  4. fillLane makes the lane and puts the commit into it.
//  5. Lander.Land merges, checks and lands the lane, as for every other task.
//
// A process that dies before step 3 leaves nothing. One that dies later leaves the task: while nobody holds the lease
// it is known for one whose process is dead. A landing that was cut off is gone on with by Land itself.
type undoing struct {
	Undone
	ids    []muster.TaskID
	tasks  []muster.Task // of the board
	commit string        // on the target's tip, that takes the tasks back
	tip    string

	site      *site
	workspace *workspace.Workspace
	launch    func(context.Context) (proc.Launcher, error)
}

func (x *undoing) read(ctx context.Context) (err error) {
	if x.tasks, err = x.site.board.List(ctx); err != nil {
		return err
	}
	// In one order, so that a call that is repeated finds the task that an earlier one has left.
	slices.Sort(x.ids)
	x.ids = slices.Compact(x.ids)
	for _, id := range x.ids {
		t, err := x.site.board.Get(ctx, id)
		if err != nil {
			return err
		}
		if t.Landed == nil {
			return errNotLanded(t)
		}
		if by := undoneBy(x.tasks, id); by != 0 {
			return muster.Errorf(muster.Invalid, "task %d was taken back already, by task %d", id, by).
				WithHint("have it again:  muster undo %d", by)
		}
		x.Undoes = append(x.Undoes, t)
	}
	// Those that were taken back themselves need nothing any more.
	for _, t := range x.tasks {
		depends := slices.ContainsFunc(x.ids, func(id muster.TaskID) bool { return slices.Contains(t.DependsOn, id) })
		if depends && t.Landed != nil && !slices.Contains(x.ids, t.ID) && undoneBy(x.tasks, t.ID) == 0 {
			x.Dependants = append(x.Dependants, t)
		}
	}
	return nil
}

func errNotLanded(t muster.Task) error {
	is, hint := "it is "+view.TaskWord(t), fmt.Sprintf("muster task show %d", t.ID)
	switch {
	case t.Status == muster.NeedsAttention:
		is = "it needs you"
	case t.Status == muster.Completed:
		is = "it was completed without a change"
	case t.Open():
		hint = fmt.Sprintf("give it up:  muster task delete %d", t.ID)
	}
	return muster.Errorf(muster.Invalid, "task %d has not landed, so there is nothing to take back: %s", t.ID, is).
		WithHint("%s", hint)
}

// undoneBy returns the task that has taken a task back and that was not taken back itself, 0 for none.
func undoneBy(tasks []muster.Task, id muster.TaskID) muster.TaskID {
	for _, t := range slices.Backward(tasks) {
		// A task only takes back older ones, so this ends.
		if t.ID > id && t.Landed != nil && slices.Contains(t.Undoes, id) && undoneBy(tasks, t.ID) == 0 {
			return t.ID
		}
	}
	return 0
}

// prepare makes the commit that takes the tasks back. Nothing is changed: no ref is at the commit.
func (x *undoing) prepare(ctx context.Context) error {
	r, isGit := x.site.repository.(gitRepository)
	if !isGit {
		return muster.Errorf(muster.Invalid, "tasks can be taken back in a git repository only")
	}
	// A landing would wait until it is not.
	if err := r.ValidateTarget(ctx, x.site.target()); err != nil {
		return err
	}
	lander, err := x.workspace.Lander(ctx)
	if err != nil {
		return err
	}
	state, err := lander.State(ctx)
	if err == nil {
		err = errDisplaced(state)
	}
	if err != nil {
		return err
	}
	// The landing merges with whatever the target is at by then: this tip only decides what the revert is made of.
	x.tip = state.Tip
	var commits []string
	for _, t := range x.Undoes {
		commits = append(commits, t.Landed.Commit)
	}
	x.commit, err = landing.Revert(ctx, r.Repo, x.tip, commits, x.subject()+"\n\n"+x.summary()+"\n")
	if c, ok := errors.AsType[*landing.RevertConflict](err); ok {
		return x.errConflict(c)
	}
	if err == nil {
		x.Files, err = r.LandedFiles(ctx, x.commit)
	}
	return err
}

func (x *undoing) errConflict(c *landing.RevertConflict) error {
	var later []muster.TaskID
	for _, t := range landedIn(x.tasks, c.Later) {
		later = append(later, t.ID)
	}
	words, hint := c.Error(), ""
	if len(later) > 0 {
		words += fmt.Sprintf(", by %s %s", text.Plural(len(later), "task", "tasks"), view.IDs(later))
		hint = fmt.Sprintf("take them back too:   muster undo %s\n", blanks(append(slices.Clone(x.ids), later...)))
	}
	return muster.Errorf(muster.Invalid, "%s; nothing has changed", words).
		WithHint("%sor let a team do it:  muster run \"take back task %s (git revert %.12s), and keep what came "+
			"later\"", hint, blanks(x.ids), c.Commit)
}

func blanks(ids []muster.TaskID) string { return strings.Trim(fmt.Sprint(ids), "[]") }

func (x *undoing) subject() string {
	if len(x.Undoes) == 1 {
		return text.CutColumns(fmt.Sprintf("Undo #%d: %s", x.ids[0], text.OneLine(x.Undoes[0].Subject)), 200)
	}
	return text.CutColumns("Undo #"+strings.ReplaceAll(blanks(x.ids), " ", ", #"), 200)
}

func (x *undoing) summary() string {
	return view.Join(x.Undoes, "\n", func(t muster.Task) string {
		return "This reverts commit " + t.Landed.Commit + "."
	})
}

func (x *undoing) land(ctx context.Context) error {
	// The check runs what members have written.
	confinedBy, err := x.site.config.findSandbox(ctx, x.site.repository.Root())
	if err != nil {
		return err
	}
	// The task is written first, with its owner: from here on a kill leaves a record that others find, and no teammate
	// can claim it in between.
	t, err := x.task(ctx)
	if err != nil {
		return err
	}
	if t, err = x.fillLane(ctx, t); err != nil {
		return x.giveUp(ctx, t, err)
	}
	launcher, err := x.launch(ctx)
	if err != nil {
		return x.giveUp(ctx, t, err)
	}
	defer func() { logDropped(ctx, x.site.log, "closing the launcher", launcher.Close()) }()
	_, removeDirs, err := x.site.setLaunchers(ctx, launcher, confinedBy)
	if err != nil {
		return x.giveUp(ctx, t, err)
	}
	defer removeDirs()
	at, err := x.site.journal.Tail(ctx, 0)
	if err != nil {
		return x.giveUp(ctx, t, err)
	}
	v, err := x.site.lander.LandWith(ctx, t.ID, t.Fence, x.summary(), muster.User, landing.Owner{})
	if err == nil && v.Task.Status != muster.Completed {
		err = x.errReturned(ctx, t, at)
	}
	if err != nil {
		return x.giveUp(ctx, t, err)
	}
	x.Task = v.Task
	return nil
}

func (x *undoing) task(ctx context.Context) (muster.Task, error) {
	for _, t := range x.tasks {
		if t.ClaimSource == muster.SourceUndo && t.Claimed() && slices.Equal(t.Undoes, x.ids) {
			return t, nil
		}
	}
	return x.site.board.Create(ctx, board.Draft{Subject: x.subject(), CreatedBy: muster.User, Undoes: x.ids,
		Description: "Take back what has landed with these commits, and nothing else:\n" + x.summary() +
			"\nIn the lane: git revert -n COMMIT (with -m 1 for a merge commit). The lane may have it already."})
}

// fillLane makes the lane of the task, with the commit in it. Each step may have been done by a killed process.
func (x *undoing) fillLane(ctx context.Context, t muster.Task) (muster.Task, error) {
	lanes, err := x.workspace.Lanes(ctx)
	if err != nil {
		return t, err
	}
	// Held: a killed process has made it already. It is this task's, unless somebody else has taken the name.
	name := cmp.Or(t.Worktree, muster.LaneName(t.ID, t.Subject))
	lane, err := lanes.Create(ctx, name, t.ID, x.tip)
	if errors.Is(err, muster.ErrHeld) {
		if left, e := lanes.Get(ctx, name); e == nil && left.TaskID == t.ID {
			lane, err = left, nil
		}
	}
	if err != nil {
		return t, err
	}
	now, err := x.site.board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
	if err != nil {
		return t, err
	}
	// Once it is landing, the commit of the lane is that of the landing ref, and the lane stays as it is.
	if now.Status == muster.InProgress {
		err = lanes.Reset(ctx, lane.Name, x.commit)
	}
	return now, err
}

func (x *undoing) errReturned(ctx context.Context, t muster.Task, from muster.Pos) error {
	why, hint := "it could not land", ""
	for e, err := range x.site.journal.Read(ctx, from) {
		if err != nil || e.Task != t.ID || e.Kind != journal.TaskReturned {
			continue
		}
		switch why = "it is in conflict with what has landed meanwhile: muster undo again"; e.Text("reason") {
		case "check":
			why = "the check fails without it"
			if failed := e.Text("failed"); failed != "" {
				why += ": " + failed
			}
			hint = fmt.Sprintf("its log:         %s\nlet a team do it: muster run \"take back task %s (%s), and mend "+
				"what needs it\"\n", e.Text("log"), blanks(x.ids), text.OneLine(x.Undoes[0].Subject))
		case "conflict":
		default:
			why = e.Text("text")
		}
	}
	return muster.Errorf(muster.Invalid, "%s stays as it is, with task %s: %s", x.site.branch, view.IDs(x.ids), why).
		WithHint("%s", strings.TrimSpace(hint))
}

// giveUp removes the task and its lane after an error, and returns that. What cannot be removed stays as a task on the
// board, which the next Undo, or a team, goes on with.
func (x *undoing) giveUp(ctx context.Context, t muster.Task, cause error) error {
	ctx = context.WithoutCancel(ctx)
	// First the right to land, then the task, then the lane: what has landed meanwhile stays landed, and a crash in
	// between leaves a task that still has its lane.
	now, err := x.site.board.Get(ctx, t.ID)
	if err == nil && now.Claimed() {
		now, err = x.workspace.RevokeTask(ctx, now, muster.User, "it was given up")
	}
	if err == nil {
		err = x.site.board.Delete(ctx, t.ID, true)
	}
	if err == nil && now.Worktree != "" {
		var lanes *worktree.Lanes
		if lanes, err = x.workspace.Lanes(ctx); err == nil {
			err = lanes.Remove(ctx, now.Worktree, true)
		}
	}
	logDropped(ctx, x.site.log, "giving up a task that takes others back", err)
	return cause
}
