package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/collision"
	"muster/internal/text"
	"muster/internal/treediff"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// Tasks is the board: what there is to do, and who does it. What it changes is done in the name of the user.
type Tasks struct{ t *Team }

// Tasks returns the board.
func (t *Team) Tasks() Tasks { return Tasks{t} }

// TaskDraft is what a new task says. Only Subject is needed.
type TaskDraft struct {
	Subject     string // one line
	Description string
	BlockedBy   []muster.TaskID // tasks that must be completed first
	Role        string          // only members of this role may claim it; "" is everyone
	Priority    int             // higher goes first
	RequirePlan bool            // its owner asks for approval of a plan first
	Review      bool            // its work is reviewed before it lands
	// Files are paths, directories or globs that its work is expected to change: while somebody works on some of them,
	// other tasks are handed out first.
	Files []string
}

// TaskChange is a change of a task. Fields that are nil stay as they are.
type TaskChange struct {
	Subject, Description, Role *string
	Priority                   *int
	RequirePlan                *bool
	AddBlockers                []muster.TaskID // only while nobody works on the task
	RemoveBlockers             []muster.TaskID
	Retry                      bool // a task that needs attention is pending again
}

// Add puts a task on the board. The error is Invalid when a field is wrong or a blocker does not exist.
func (s Tasks) Add(ctx context.Context, d TaskDraft) (muster.Task, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	return w.Board().Create(ctx, board.Draft{Subject: d.Subject, Description: d.Description, BlockedBy: d.BlockedBy,
		Role: muster.RoleName(d.Role), Priority: d.Priority, RequirePlan: d.RequirePlan, Review: d.Review,
		Files: d.Files, CreatedBy: muster.User})
}

// Get returns a task without its Blocks, which WithBlocks adds.
func (s Tasks) Get(ctx context.Context, id muster.TaskID) (muster.Task, error) {
	return s.t.services().Board().Get(ctx, id)
}

// WithBlocks returns the task with the tasks that wait for it. It reads the whole board.
func (s Tasks) WithBlocks(ctx context.Context, task muster.Task) (muster.Task, error) {
	return s.t.services().Board().WithBlocks(ctx, task)
}

// List returns all tasks by id, and beside them those whose record cannot be read.
func (s Tasks) List(ctx context.Context) (tasks []muster.Task, unreadable []muster.UnreadableTask, err error) {
	b := s.t.services().Board()
	tasks, err = b.List(ctx)
	return tasks, b.Corrupt(), err
}

// Change changes a task that is not completed. Errors: NotFound, Invalid (a cycle of blockers, for example) and Held.
func (s Tasks) Change(ctx context.Context, id muster.TaskID, c TaskChange) (muster.Task, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	if c.Role != nil {
		c.Role = new(muster.RoleName(*c.Role))
	}
	return w.Board().Update(ctx, id, board.Patch{Subject: c.Subject, Description: c.Description, Role: c.Role,
		Priority: c.Priority, RequirePlan: c.RequirePlan, AddBlockers: c.AddBlockers,
		RemoveBlockers: c.RemoveBlockers, Retry: c.Retry, By: muster.User})
}

// Claim gives a pending task to owner, who need not be a member. The task has no lane and is never taken away for
// idleness: it ends with Complete or Release. role is the owner's, for tasks that want one. The error is Held when
// somebody else has the task.
func (s Tasks) Claim(ctx context.Context, id muster.TaskID, owner muster.Name, role string) (muster.Task, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	if err := checkClaimedFromOutside(ctx, w, owner); err != nil {
		return muster.Task{}, err
	}
	// A manual claim names no host: no process takes it back when its owner is idle or dies.
	return w.Board().Claim(ctx, id, board.Claim{Owner: owner, Role: role, Source: muster.SourceManual})
}

// checkClaimedFromOutside refuses to claim a task for a member that is at work: its process would not know of the
// claim, so nobody would work on the task. A member that nobody hosts finds the claim when it begins.
func checkClaimedFromOutside(ctx context.Context, w *workspace.Workspace, owner muster.Name) error {
	m, err := w.Roster(ctx).Find(ctx, owner)
	if errors.Is(err, muster.ErrNotFound) || err == nil && (m.Status == muster.Shutdown || m.Host == "") {
		return nil
	}
	alive := false
	if err == nil {
		alive, err = w.Roster(ctx).Alive(ctx, m.Host)
	}
	if err == nil && alive {
		err = muster.Errorf(muster.Held, "%s is at work in the team, and takes its tasks from the board itself", owner).
			WithHint("tell it:  muster mail send %s \"...\"", owner)
	}
	return err
}

// Complete completes a task in the name of by, who must own it, or of the user where by is "": the user may complete
// every task. done is true when the task was completed before. The error is Invalid while the task's lane holds work
// that has not landed, and Held when somebody else than by owns it.
func (s Tasks) Complete(
	ctx context.Context, id muster.TaskID, by muster.Name, result string,
) (task muster.Task, done bool, err error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return task, false, err
	}
	if task, err = w.Board().Get(ctx, id); err != nil {
		return task, false, err
	}
	done = task.Status == muster.Completed
	switch {
	case by == "":
		by = muster.User
	case done: // left as it is, whoever owned it: a script may repeat the call
		return task, true, nil
	case task.Owner == "":
		return task, false, muster.Errorf(muster.Invalid, "task %d is %s and nobody's, so %s cannot complete it",
			id, view.TaskWord(task), by).
			WithHint("muster task claim %d --as %s\nor, as yourself:  muster task complete %d", id, by, id)
	case task.Owner != by:
		return task, false, muster.Errorf(muster.Held, "task %d is %s's, not %s's", id, task.Owner, by).
			WithHint("as yourself:  muster task complete %d", id)
	}
	if err := checkAllLanded(ctx, w, task); err != nil {
		return task, done, err
	}
	// Finish also does what was cut short after an earlier completion.
	task, err = w.Board().CompleteByHand(ctx, id, by, result)
	return task, done, err
}

// checkAllLanded refuses to complete a task whose lane holds work that is not on the target: it would be lost. When
// that cannot be verified, the task stays open: lost work cannot be restored, and a refused call can be repeated.
func checkAllLanded(ctx context.Context, w *workspace.Workspace, t muster.Task) error {
	if t.Worktree == "" || t.Status == muster.Completed {
		return nil
	}
	// Only git knows whether the lane has something that the target does not have.
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return err
	}
	// Only a lane without a row and without a branch was removed; what it held was archived then. A lane of which
	// something else is missing, such as the commit that it was made from, may hold work.
	if _, err := lanes.Get(ctx, t.Worktree); errors.Is(err, muster.ErrNotFound) {
		left, err := hasBranch(ctx, w, t.Worktree)
		if err == nil && left {
			err = muster.Errorf(muster.NotFound, "its branch is there, and the lanes' index does not list it")
		}
		if err == nil {
			return nil
		}
		return errUnverified(t, err).WithHint("muster doctor --repair")
	}
	changed, err := lanes.Changed(ctx, t.Worktree)
	switch {
	// What cannot be verified is kept.
	case err != nil:
		return errUnverified(t, err).WithHint("muster worktree list")
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

func errUnverified(t muster.Task, err error) *muster.Error {
	return muster.Errorf(muster.Invalid,
		"task %d is not completed: cannot verify that lane %s holds nothing unlanded: %w", t.ID, t.Worktree, err)
}

func hasBranch(ctx context.Context, w *workspace.Workspace, lane muster.Name) (bool, error) {
	repo, err := w.Repo(ctx)
	if err != nil {
		return false, err
	}
	tip, err := repo.Ref(ctx, worktree.BranchPrefix+string(lane))
	return tip != "", err
}

// Release takes a task from its owner and puts it back on the board. What the old owner still does for it is refused,
// and its lane is kept. The error is Held when the task has landed.
func (s Tasks) Release(ctx context.Context, id muster.TaskID, reason string) (muster.Task, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	for { // until nobody claims the task between the two steps
		task, err := w.Board().Get(ctx, id)
		if err != nil {
			return task, err
		}
		if task, err = w.RevokeTask(ctx, task, muster.User, reason); !errors.Is(err, muster.ErrFenced) {
			return task, err
		}
	}
}

// Delete removes a task and returns it as it was, with its Blocks. It is refused while other tasks wait for it, unless
// force says that these need not wait any longer.
func (s Tasks) Delete(ctx context.Context, id muster.TaskID, force bool) (muster.Task, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Task{}, err
	}
	task, err := w.Board().Get(ctx, id)
	if err != nil {
		return task, err
	}
	// Blocks are read before the task is deleted, because then nothing depends on it any more.
	if task, err = w.Board().WithBlocks(ctx, task); err != nil {
		return task, err
	}
	return task, w.Board().Delete(ctx, id, force)
}

// Collisions returns which tasks that are under way collide with which, as the team has seen it last.
func (s Tasks) Collisions(ctx context.Context) ([]muster.Collision, error) {
	all, err := s.t.services().Board().Claimed(ctx)
	underWay := map[muster.TaskID]bool{0: true} // the target
	for _, t := range all {
		underWay[t.ID] = t.Worktree != ""
	}
	// What was found of a task that has landed or was given back since is over.
	found := []muster.Collision{}
	for _, c := range collision.Read(s.t.Root()) {
		if c.Task != 0 && underWay[c.Task] && underWay[c.With] && err == nil {
			found = append(found, c)
		}
	}
	return found, err
}

// Planned returns the tasks that a run with start.Playbook would put on the board, with the ids that they would get if
// nobody adds a task before. It writes nothing. Errors are Invalid, with the place in the file.
func (s Tasks) Planned(ctx context.Context, start Start) ([]muster.Task, error) {
	at := s.t.site
	repo, err := at.openRepository(ctx)
	if err != nil {
		return nil, err
	}
	at.repository = repo
	book, err := start.book(ctx, &at)
	if err != nil {
		return nil, err
	}
	next, err := board.UnusedID(ctx, s.t.services().Board())
	if err != nil {
		return nil, err
	}
	ids := map[string]muster.TaskID{}
	var tasks []muster.Task
	for i, x := range book.Tasks {
		ids[x.Key] = next + muster.TaskID(i)
		on := blockerIDs(x, ids)
		tasks = append(tasks, muster.Task{ID: ids[x.Key], Key: x.Key, Subject: x.Subject, Description: x.Description,
			Status: muster.Pending, DependsOn: on, BlockedBy: on, ClaimRole: x.Role, Priority: x.Priority,
			RequirePlan: x.RequirePlan, CreatedBy: muster.System})
	}
	return tasks, nil
}

// Diff is what a task has changed, and what the user has said about lines of it: see Tasks.ReviewedDiff.
type Diff struct {
	treediff.Diff
	Comments []Comment `json:"comments,omitempty"`
}

// FileChange is what a task has changed of a file.
type FileChange = treediff.FileChange

// Diff returns what a task has changed: its landed commit, or all that its lane holds beyond the target, uncommitted
// files too. With files it returns only their changes. The error is NotFound for a task that has changed nothing
// because its work has not begun.
func (s Tasks) Diff(ctx context.Context, id muster.TaskID, files ...string) (Diff, error) {
	w := s.t.services()
	_, from, to, err := s.sides(ctx, w, id)
	if err != nil {
		return Diff{}, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return Diff{}, err
	}
	d, err := treediff.DiffOf(ctx, repo, from, to, files...)
	return Diff{Diff: d}, err
}

// ReviewedDiff is Diff with what the user has said about lines of it. Finding that reads the mail of all members.
// Comments that cannot be read are left out.
func (s Tasks) ReviewedDiff(ctx context.Context, id muster.TaskID, files ...string) (Diff, error) {
	d, err := s.Diff(ctx, id, files...)
	if err != nil {
		return d, err
	}
	d.Comments, _ = commentsOn(ctx, s.t.services(), id)
	if len(files) > 0 {
		d.Comments = slices.DeleteFunc(d.Comments, func(c Comment) bool { return !slices.Contains(files, c.File) })
	}
	locate(d.Diff, d.Comments)
	return d, nil
}

// sides returns the task, what its work is compared with, and its work: a commit or a tree.
func (s Tasks) sides(
	ctx context.Context, w *workspace.Workspace, id muster.TaskID,
) (t muster.Task, from, to string, err error) {
	if t, err = w.Board().Get(ctx, id); err != nil {
		return t, "", "", err
	}
	switch {
	case t.Landed != nil:
		repo, err := w.Repo(ctx)
		if err == nil {
			from, err = repo.Resolve(ctx, t.Landed.Commit+"^1")
		}
		return t, from, t.Landed.Commit, err
	case t.Status == muster.Completed:
		return t, "", "", muster.Errorf(muster.NotFound, "task %d is completed without a change", id)
	case t.Worktree == "":
		return t, "", "", muster.Errorf(muster.NotFound, "task %d has no lane yet: nobody has begun it", id).
			WithHint("muster task show %d", id)
	}
	lanes, err := w.Lanes(ctx)
	if err != nil {
		return t, "", "", err
	}
	tip, err := w.LaneBase(ctx, "")
	if err != nil {
		return t, "", "", err
	}
	to, from, err = worktree.Content(ctx, lanes, t.Worktree, tip)
	return t, from, to, err
}

// Comment sends what the user says about a line of a task's work to the task's owner; to the lead, once it has landed
// or while nobody has it. The line is one of the file as it is now in the lane, or as it has landed. Errors: NotFound
// when there is no such task or file, and Invalid when the file has no such line or nothing is said.
func (s Tasks) Comment(
	ctx context.Context, id muster.TaskID, file string, line int, comment string,
) (muster.Message, error) {
	if strings.TrimSpace(comment) == "" {
		return muster.Message{}, muster.Errorf(muster.Invalid, "the comment is empty, so nothing was sent")
	}
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Message{}, err
	}
	t, from, to, err := s.sides(ctx, w, id)
	if err != nil {
		return muster.Message{}, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return muster.Message{}, err
	}
	quoted, err := treediff.LineOf(ctx, repo, to, file, line)
	if e, ok := errors.AsType[*muster.Error](err); ok && e.Code == muster.NotFound {
		var names []string
		d, _ := treediff.DiffOf(ctx, repo, from, to) // only words of the hint
		for _, f := range d.Files {
			names = append(names, f.File)
		}
		return muster.Message{}, e.WithHint("task %d changes: %s", id, text.List(names, 10))
	}
	if err != nil {
		return muster.Message{}, err
	}
	c := Comment{File: file, Line: line, Quoted: quote(quoted), Text: comment}
	name := fmt.Sprintf("task #%d (%s)", t.ID, t.Subject)
	if t.Landed == nil && t.Owner != "" {
		m, err := s.t.Mail().Send(ctx, t.Owner, commentMail("your "+name, c))
		if !errors.Is(err, muster.ErrNotFound) { // the owner is somebody outside the team, who has no mail
			return m, err
		}
	}
	whose := ", which nobody has now"
	if t.Landed != nil {
		whose = fmt.Sprintf(", which has landed as %.7s", t.Landed.Commit)
	} else if t.Owner != "" {
		whose = fmt.Sprintf(", which %s has", t.Owner)
	}
	return s.t.Mail().Send(ctx, muster.Lead, commentMail(name+whose, c))
}
