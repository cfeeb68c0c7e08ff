package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/journal"
)

const makerLease = "lane-maker"

// Create makes a lane from the commit that base names ("" is the default base): a branch wt/NAME and its worktree.
// Errors: Invalid (the name, or this repository can have no lanes: see CheckBranchNames), NotFound (the base), Held
// (the lane, its branch or its directory exists already). An error leaves nothing of the lane, or a row that says
// "failed".
func (l *Lanes) Create(ctx context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	if err := muster.CheckName(name); err != nil {
		return muster.Lane{}, err
	}
	commit, err := l.repo.Resolve(ctx, cmp.Or(base, l.options.Base))
	if err != nil {
		return muster.Lane{}, err
	}
	lane := l.newLane(name)
	lane.TaskID, lane.Base = task, commit
	// The lease is held until the lane is made or undone. While it is held, no recovery touches the row that names it.
	maker, release, err := l.CheckDirs.leases.acquire(makerLease)
	if err != nil {
		return muster.Lane{}, err
	}
	defer release()
	if err := l.refuseRow(ctx, name); err != nil {
		return muster.Lane{}, err
	}
	if err := l.refuseTaken(ctx, lane); err != nil {
		return muster.Lane{}, err
	}
	setField(&lane, fieldMaker, maker)
	// The row is written before git acts: a crash is undone by it.
	err = l.index.edit(ctx, func(doc *document) error {
		if doc.has(name) {
			return errHasLane(name)
		}
		return doc.put(lane)
	})
	if err != nil {
		return muster.Lane{}, err
	}
	failpoint.Hit("lane.creating")
	err = l.events.record(ctx, lane, event{name: "worktree.create.before"})
	hasBranch := false
	if err == nil {
		hasBranch, err = l.make(ctx, lane)
	}
	if err != nil {
		return muster.Lane{}, l.abandon(ctx, lane, hasBranch, err)
	}
	failpoint.Hit("lane.added")
	// The worktree exists now. If ctx ended here and the row stayed "creating", the next process would undo a lane that
	// its caller has been told of.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	_, _ = RemoveTemporaries(late, l) // of lanes that are gone; what stays is found again
	if lane, err = l.index.setMade(late, lane.Name, muster.LaneActive, l.assignPorts(late, lane)...); err != nil {
		return muster.Lane{}, err
	}
	failpoint.Hit("lane.active")
	return lane, l.events.record(ctx, lane, event{kind: journal.LaneCreated, name: "worktree.create.after"})
}

func (l *Lanes) newLane(name muster.Name) muster.Lane {
	return muster.Lane{Name: name, Path: filepath.Join(l.options.Dir, string(name)), Branch: branchName + string(name),
		Status: muster.LaneCreating, CreatedAt: muster.UnixTime(time.Now())}
}

func errHasLane(name muster.Name) error {
	return muster.Errorf(muster.Held, "there is a lane %q already", string(name))
}

// refuseTaken refuses a lane whose branch or directory exists already. It only gives the better message: make itself
// fails when one of them appears later.
func (l *Lanes) refuseTaken(ctx context.Context, lane muster.Lane) (clash error) {
	if tip, _ := l.repo.Ref(ctx, branchRef(lane)); tip != "" {
		clash = muster.Errorf(muster.Held, "there is a branch %s already, and no lane of that name", lane.Branch).
			WithHint("git branch -m %s ANOTHER-NAME", lane.Branch)
	} else if !durable.IsMissing(lane.Path) {
		clash = muster.Errorf(muster.Held, "%s exists already, and is no lane", lane.Path).WithHint("move it away")
	}
	// The events are for the readers of a board's lanes. Without a board nothing is written where nothing was begun.
	if clash == nil || l.options.Task == nil {
		return clash
	}
	err := l.events.record(ctx, lane, event{name: "worktree.create.before"})
	if lane.Status = muster.LaneFailed; err == nil {
		err = l.events.record(ctx, lane, event{name: "worktree.create.failed", cause: clash})
	}
	return cmp.Or(err, clash)
}

// CheckBranchNames refuses, as Invalid, a repository in which no lane can have a branch: a branch of the user's is
// named wt, and git cannot have both wt and wt/NAME.
func CheckBranchNames(ctx context.Context, repo *git.Repo) error {
	// A ref is a file or a directory, never both.
	at, err := repo.Ref(ctx, path.Clean(BranchPrefix))
	if err != nil || at == "" {
		return err
	}
	return muster.Errorf(muster.Invalid,
		"lanes need branches named wt/NAME, and the name of your branch wt is in their way").
		WithHint("git branch -m wt ANOTHER-NAME")
}

// make makes the branch and the worktree. Both steps fail when there is one already, so undo takes nothing of the
// user's. hasBranch tells whether there is anything to undo.
func (l *Lanes) make(ctx context.Context, lane muster.Lane) (hasBranch bool, err error) {
	// The update fails when the branch exists: one that the user has made since refuseTaken is never taken over.
	err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), New: lane.Base}})
	switch {
	case errors.Is(err, muster.ErrStale):
		err = muster.Errorf(muster.Held, "there is a branch %s already", lane.Branch)
	case errors.Is(err, muster.ErrHeld):
		err = cmp.Or(CheckBranchNames(ctx, l.repo), err)
	}
	if err != nil {
		return false, err
	}
	failpoint.Hit("lane.branch")
	// From here on the row leads an undo to the branch, so hasBranch is true whatever fails.
	if err := os.MkdirAll(l.options.Dir, 0o700); err != nil {
		return true, muster.Errorf(muster.Unavailable, "the lanes' directory cannot be made: %w", err)
	}
	// git may end in the middle of the checkout. Then the worktree is registered, and undo finds it there.
	err = l.repo.AddWorktree(ctx, lane.Path, lane.Branch, lane.Base)
	if err != nil && ctx.Err() == nil {
		err = muster.Errorf(muster.Unavailable, "git cannot make the lane %s: %w", lane.Name, err)
	}
	return true, err
}

// abandon undoes a creation that failed, and returns why it did. What cannot be undone stays, marked as failed.
func (l *Lanes) abandon(ctx context.Context, lane muster.Lane, hasBranch bool, cause error) error {
	// Undoing goes on after the end of ctx, which may be why the creation failed.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	var err error
	if hasBranch {
		err = l.undo(ctx, lane)
	} else {
		_, err = l.index.delete(ctx, lane.Name)
	}
	lane.Status = muster.LaneFailed
	err = cmp.Or(err,
		l.events.record(ctx, lane, event{kind: journal.LaneFailed, name: "worktree.create.failed", cause: cause}))
	if err != nil {
		return fmt.Errorf("%w (and it could not be undone: %w)", cause, err)
	}
	return cause
}

// refuseRow returns an error where the index has a lane of that name. It first undoes a half-made one whose maker is
// dead.
func (l *Lanes) refuseRow(ctx context.Context, name muster.Name) error {
	doc, err := l.index.read(ctx)
	if err != nil {
		return err
	}
	if row, err := doc.lane(name); err == nil && row.Status == muster.LaneCreating {
		if err := l.recoverCreation(ctx, l.index.resolved(row)); err != nil {
			return err
		}
		if doc, err = l.index.read(ctx); err != nil {
			return err
		}
	}
	if doc.has(name) {
		return errHasLane(name)
	}
	return nil
}

// recoverCreation undoes a half-made lane whose maker is dead. It leaves one alone that is being made right now.
func (l *Lanes) recoverCreation(ctx context.Context, lane muster.Lane) error {
	maker, ok := field[string](lane, fieldMaker)
	if !ok {
		return l.undo(ctx, lane) // a row of another program: no process of the team can be making it
	}
	// A process that the maker was starting when it died inherited the lease, and has it for another instant.
	limited, cancel := context.WithTimeout(ctx, 2*gitEndTime)
	defer cancel()
	leases := l.CheckDirs.leases
	release, err := leases.files.Lock(limited, leases.path(maker))
	if err != nil && limited.Err() != nil {
		return context.Cause(ctx) // nil where its maker lives
	}
	if err != nil {
		return err
	}
	defer release()
	now, err := l.index.get(ctx, lane.Name)
	if err != nil {
		return ignoreNotFound(err)
	}
	// The row was read before the lease was taken. By now another process may have undone it and made the lane anew.
	if by, _ := field[string](now, fieldMaker); now.Status != muster.LaneCreating || by != maker {
		return nil
	}
	if err := endLeftGit(ctx, l.repo, now); err != nil {
		return err
	}
	return l.undo(ctx, now)
}

// undo takes back a lane that was never handed out: its worktree, its branch if that is still at its base, and its row
// last, so that a crash in between leaves the rest to the next undo. What is not as it was made is kept: a lane in
// which somebody has worked is active, and of anything else the row says failed.
func (l *Lanes) undo(ctx context.Context, lane muster.Lane) error {
	isUsed, err := l.isUsed(ctx, lane)
	if err == nil && isUsed {
		_, err = l.index.setMade(ctx, lane.Name, muster.LaneActive)
		return err
	}
	if err == nil {
		// UndoWorktree refuses a directory with files that git does not know, so nothing of the user's is removed.
		err = l.repo.UndoWorktree(ctx, lane.Path)
	}
	failpoint.Hit("lane.undone")
	if err == nil && lane.Base != "" {
		err = l.undoBranch(ctx, lane)
	}
	if err == nil {
		failpoint.Hit("lane.unbranched")
		_, err = l.index.delete(ctx, lane.Name)
		return err
	}
	if ctx.Err() != nil {
		return err
	}
	cause := muster.Errorf(muster.Held,
		"cannot verify that the half-made lane %s has nothing to lose, so it is kept: %w", lane.Name, err)
	return l.fail(ctx, lane, "worktree.create.failed", cause)
}

// isUsed reports whether somebody has worked in a lane whose row says that it is half made. Then the row is an old one
// that another program has written again. The error says that the directory is not the lane's.
func (l *Lanes) isUsed(ctx context.Context, lane muster.Lane) (bool, error) {
	if err := l.index.checkRow(lane); err != nil {
		return false, err
	}
	w, found, err := l.repo.WorktreeAt(ctx, lane.Path)
	if err != nil || !found {
		return false, err
	}
	// git writes the index when all files are there: without one the worktree was never handed out.
	admin := git.AdminDir(l.repo.CommonDir(), lane.Path)
	isHalfMade := admin == "" || durable.IsMissing(filepath.Join(admin, "index"))
	if w.Branch != branchRef(lane) && (w.Branch != "" || !isHalfMade) {
		_, err := l.checkout(lane).verify(ctx)
		return err == nil, err // it is the lane, in which its owner has switched branches, or it is not the lane
	}
	if !isHalfMade {
		out, err := l.checkout(lane).run(ctx, "status", "--porcelain", "-z", "--ignored", "--untracked-files=normal")
		if err != nil || out != "" {
			return err == nil, err
		}
	}
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	return tip != "" && tip != lane.Base, err
}

// undoBranch deletes the branch of a lane that was never handed out. A branch that has moved is kept, and so is one
// with commits that no other ref has: lanes are made from commits that others have.
func (l *Lanes) undoBranch(ctx context.Context, lane muster.Lane) error {
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil || tip == "" {
		return err
	}
	isElsewhere, err := hasOtherRef(ctx, l.repo, tip, branchRef(lane))
	if err != nil {
		return err
	}
	if tip != lane.Base || !isElsewhere {
		return muster.Errorf(muster.Held, "the branch %s has work of its own", lane.Branch)
	}
	err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), Old: tip}})
	if errors.Is(err, muster.ErrStale) {
		return muster.Errorf(muster.Held, "the branch %s has moved", lane.Branch)
	}
	return err
}
