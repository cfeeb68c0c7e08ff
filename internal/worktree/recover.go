package worktree

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/git"
)

// Recover finishes or undoes what a crash left half done, row by row of the index, and adds the lanes that git has and
// the index lacks. It leaves alone what other processes are making at the moment. A lane that cannot be removed as its
// row says is reported as an event, and stays.
func (l *Lanes) Recover(ctx context.Context) error {
	doc, err := l.index.read(ctx)
	if err != nil {
		return err
	}
	if err := l.index.removeTemporaryFiles(ctx); err != nil {
		return err
	}
	// A directory that cannot be removed is no error here: it stays noted, and the next recovery tries again.
	if _, err := l.CheckDirs.RemoveAbandoned(); err != nil {
		return err
	}
	// Only the runtime moves these refs, in an instant each: a lock that stays is a killed git's.
	if err := l.repo.BreakLocks(ctx, "refs/muster"); err != nil {
		return err
	}
	// Rows of other programs that cannot be read are left as they are.
	for _, lane := range l.index.lanes(doc) {
		if err := l.recoverLane(ctx, doc, lane); err != nil {
			return err
		}
	}
	return l.index.addMissing(ctx)
}

// rejoin brings a lane, its row and git together again after the repository was moved.
func (l *Lanes) rejoin(ctx context.Context, doc *document, lane muster.Lane) error {
	if admin := git.Moved(l.repo.CommonDir(), lane.Path, branchRef(lane)); admin != "" {
		if err := git.Rejoin(admin, lane.Path); err != nil {
			return err
		}
	}
	// Other programs read the row too.
	row, err := doc.lane(lane.Name)
	if err != nil || !filepath.IsAbs(row.Path) || row.Path == lane.Path {
		return err
	}
	_, err = l.index.update(ctx, lane.Name, func(row *muster.Lane) error { row.Path = lane.Path; return nil })
	return err
}

// recoverLane finishes or undoes what the row of a lane says is under way, and checks one that is at rest.
func (l *Lanes) recoverLane(ctx context.Context, doc *document, lane muster.Lane) error {
	if err := l.index.checkRow(lane); err != nil {
		if lane.Status == muster.LaneFailed {
			return nil // it was told
		}
		return l.fail(ctx, lane, "", err)
	}
	if err := l.rejoin(ctx, doc, lane); err != nil {
		return err
	}
	r, isRemoving := removalOf(lane)
	switch {
	case lane.Status == muster.LaneCreating:
		return l.recoverCreation(ctx, lane)
	case isRemoving:
		return l.recoverRemoval(ctx, lane, r)
	case lane.Status == muster.LaneFailed:
		return nil
	case durable.IsMissing(lane.Path):
		return l.recoverMissing(ctx, lane)
	}
	// A directory that is not the lane's is left alone; Check says what is wrong with it.
	if _, err := l.checkout(lane).verify(ctx); err != nil {
		return ctx.Err()
	}
	// A killed git may have left locks with which the next owner could not commit.
	if err := l.repo.BreakLocks(ctx, branchRef(lane)); err != nil {
		return err
	}
	admin := git.AdminDir(l.repo.CommonDir(), lane.Path) // a command in a lane may let its .git file name another's
	if admin == "" {
		return nil
	}
	return git.AwaitWorktreeLock(ctx, admin)
}

// gitEndTime is how long the git of a killed process may need to end after it.
const gitEndTime = 150 * time.Millisecond

// endLeftGit waits until a git that a killed process left has ended, and breaks its lock on the lane's branch. What a
// dead process began is undone or finished after that: two gits at once in one worktree could leave a mixture.
func endLeftGit(ctx context.Context, repo *git.Repo, lane muster.Lane) error {
	if clock.Sleep(ctx, gitEndTime) != nil {
		return context.Cause(ctx)
	}
	return repo.BreakLocks(ctx, branchRef(lane))
}

// Finding is something that is wrong with a lane or with the index.
type Finding struct {
	Lane muster.Name // "": the index itself
	Text string      // what is wrong
	Fix  string      // what people must do before a repair can help; "": Repair mends it
	Busy bool        // it may also be the work of a process that is alive
	Done string      // of a finding that Repair has mended: what was done, or what the lane is now
}

// Check returns what Recover would mend, and what only the user can (Finding.Fix). It changes nothing.
func (l *Lanes) Check(ctx context.Context) (all []Finding, err error) {
	doc, err := l.index.load()
	if err != nil {
		return nil, err
	}
	if doc.damage != nil {
		all = append(all, Finding{Text: doc.damage.Error()})
	}
	for _, lane := range l.index.lanes(doc) {
		f, err := checkLane(ctx, l, lane)
		if err != nil {
			return nil, err
		}
		if f.Text != "" {
			f.Lane = lane.Name
			all = append(all, f)
		}
	}
	// Of a damaged index these are the lanes whose rows lie behind the damage.
	missing, err := l.index.missing(ctx, doc)
	for _, lane := range missing {
		all = append(all, Finding{Lane: lane.Name, Text: "git has it, and the index does not"})
	}
	return all, err
}

// Repair recovers the lanes, and returns what it has mended. Call it while no process of the team is alive. A second
// Check tells what is left.
func (l *Lanes) Repair(ctx context.Context) (done []Finding, err error) {
	before, err := l.Check(ctx)
	if err != nil || len(before) == 0 {
		return nil, err
	}
	if err := l.Recover(ctx); err != nil {
		return nil, err
	}
	after, err := l.Check(ctx)
	if err != nil {
		return nil, err
	}
	// Recover does not say what it did, so the two lists are compared. A finding that is still there was not mended;
	// the caller's own Check reports it.
	for _, f := range before {
		if slices.Contains(after, f) {
			continue
		}
		lane, err := l.index.get(ctx, f.Lane)
		switch {
		case f.Lane == "":
			f.Done = "written anew from git; what it was is in .team/" + corruption.Table
		case errors.Is(err, muster.ErrNotFound):
			f.Done = "it is gone"
		case err != nil:
			return nil, err
		default:
			f.Done = "it is " + string(lane.Status) + " now"
		}
		done = append(done, f)
	}
	return done, nil
}

// checkLane returns what is wrong with a lane, and changes nothing. A Finding without a Text is none.
func checkLane(ctx context.Context, l *Lanes, lane muster.Lane) (f Finding, err error) {
	if err := l.index.checkRow(lane); err != nil {
		return Finding{Text: err.Error(), Fix: muster.HintOf(err)}, nil
	}
	c := l.checkout(lane)
	_, isRemoving := removalOf(lane)
	switch {
	case git.Moved(l.repo.CommonDir(), lane.Path, branchRef(lane)) != "":
		return Finding{Text: "git does not find it any more, because the repository was moved"}, nil
	case lane.Status == muster.LaneCreating:
		if maker, ok := field[string](lane, fieldMaker); ok {
			// It only looks: who takes a lease keeps others from working.
			leases := l.CheckDirs.leases
			if isHeld, err := leases.files.Locked(leases.path(maker)); err != nil || isHeld {
				return f, err // its maker lives
			}
		}
		return Finding{Text: "the process that made it died before it was complete"}, nil
	case isRemoving:
		if unlock := c.unlockHint(ctx); unlock != "" {
			return Finding{Text: "it cannot be removed: its worktree is locked", Fix: unlock, Busy: true}, nil
		}
		return Finding{Text: "its removal was interrupted", Busy: true}, nil
	case lane.Status == muster.LaneFailed:
		return f, nil
	case durable.IsMissing(lane.Path):
		tip, err := l.repo.Ref(ctx, branchRef(lane))
		if tip == "" {
			return Finding{Text: "the index has it, and its directory and its branch are gone"}, err
		}
		return Finding{Text: "its directory is gone; the branch " + lane.Branch + " has its commits"}, nil
	}
	_, wrong := c.verify(ctx)
	if wrong == nil || ctx.Err() != nil {
		return f, wrong
	}
	// Another process may have begun to remove the lane since the index was read. load, because read would rebuild.
	if doc, err := l.index.load(); err == nil {
		now, err := doc.lane(lane.Name)
		if _, isRemoving := removalOf(now); isRemoving || errors.Is(err, muster.ErrNotFound) {
			return f, nil
		}
	}
	return Finding{Text: wrong.Error(), Fix: c.reconnectHint(ctx)}, nil
}
