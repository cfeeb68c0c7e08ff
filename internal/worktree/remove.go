package worktree

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/internal/text"
	"muster/journal"
)

// Archive keeps all that the lane holds, but for ignored files, as a commit under refs/muster/archive/NAME-N, then
// removes the lane. The ref is "" when there was nothing beyond the base. When anything is unclear it returns an error
// and everything stays. Several processes may archive a lane at once: there is one archive and one removal, and who
// comes after its end gets NotFound.
func (l *Lanes) Archive(ctx context.Context, name muster.Name) (ref string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	if r, ok := removalOf(lane); ok {
		return l.resumeRemoval(ctx, lane, r)
	}
	if lane.Status == muster.LaneCreating {
		return "", muster.Errorf(muster.Held, "the lane %s is being made right now", name)
	}
	if err := l.events.record(ctx, lane, event{name: "worktree.remove.before"}); err != nil {
		return "", err
	}
	release, err := l.hold(ctx, lane.Path)
	if err != nil {
		return "", err
	}
	defer release()
	// First the archive, then the announcement, then the removal. A crash after the archive leaves the lane as it was
	// and one ref more, which the next archive finds by its content.
	ref, err = l.preserve(ctx, lane)
	failpoint.Hit("lane.archived")
	var theirs removal
	var isTheirs bool // another process has announced the removal meanwhile
	if err == nil {
		_, err = l.index.update(ctx, name, func(row *muster.Lane) error {
			if theirs, isTheirs = removalOf(*row); !isTheirs {
				setField(row, fieldRemoving, removal{ref})
			}
			return nil
		})
	}
	failpoint.Hit("lane.removing")
	if err != nil && l.isRemoved(ctx, name) {
		return "", errNoLane(name) // another process was faster: that is why it failed
	}
	switch {
	case err == nil && isTheirs:
		ref, err = l.resumeRemoval(ctx, lane, theirs)
	case err == nil:
		ref, err = l.finish(ctx, lane, ref)
	}
	if err != nil {
		return "", cmp.Or(l.events.record(ctx, lane, event{name: "worktree.remove.failed", cause: err}), err)
	}
	return ref, nil
}

// ArchiveAll recovers all lanes, then archives each of them; saved is called after each one. It stops at the first
// lane that cannot be archived.
func (l *Lanes) ArchiveAll(ctx context.Context, saved func(name muster.Name, ref string) error) error {
	if err := l.Recover(ctx); err != nil {
		return err
	}
	lanes, err := l.List(ctx)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		// What a row names and what is no lane is not the team's to put aside; it is reported and stays.
		if l.index.checkRow(lane) != nil {
			continue
		}
		ref, err := l.Archive(ctx, lane.Name)
		if errors.Is(err, errOtherWorktree) {
			continue
		}
		if err != nil {
			return muster.Errorf(muster.Invalid, "lane %s cannot be archived: %w", lane.Name, err).
				WithHint("muster worktree list")
		}
		if err := saved(lane.Name, ref); err != nil {
			return err
		}
	}
	return nil
}

// ArchiveCompleted is Archive for the lane of a completed task. It writes the completion to the lanes' log, once, and
// leaves a lane that somebody asked to keep. It may be repeated; a lane that is gone already is no error.
func (l *Lanes) ArchiveCompleted(ctx context.Context, t muster.Task) (ref string, err error) {
	lane, err := l.Get(ctx, t.Worktree)
	if err != nil {
		return "", ignoreNotFound(err)
	}
	// The fence tells a repeat for the same claim from the completion of a later claim on the same lane.
	if recorded, ok := field[int](lane, fieldCompleted); !ok || recorded != t.Fence {
		// The journal has it from the board.
		if err := l.events.record(ctx, lane, event{name: "task.completed", task: t}); err != nil {
			return "", err
		}
		// Noted after the write: a crash in between repeats the line, which its readers bear, and never loses it.
		lane, err = l.index.update(ctx, lane.Name,
			func(row *muster.Lane) error { setField(row, fieldCompleted, t.Fence); return nil })
		if err != nil {
			return "", ignoreNotFound(err)
		}
	}
	if IsAskedToKeep(lane) {
		return "", nil
	}
	ref, err = l.Archive(ctx, lane.Name)
	return ref, ignoreNotFound(err)
}

// Preserve archives all that the lane holds now and leaves the lane as it is. The ref is "" when there is nothing
// beyond the base. The same content has one ref. The error is Held while commands run there.
func (l *Lanes) Preserve(ctx context.Context, name muster.Name) (ref string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	release, err := l.hold(ctx, lane.Path)
	if err != nil {
		return "", err
	}
	defer release()
	return l.preserve(ctx, lane)
}

// Remove removes a lane. One that is kept, or that holds work beyond its base, is refused (Held) unless force, which
// archives the work first. After an error that says "cannot verify" nothing was touched.
func (l *Lanes) Remove(ctx context.Context, name muster.Name, force bool) error {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return err
	}
	if !force && lane.Status == muster.LaneKept {
		return muster.Errorf(muster.Held, "the lane %s is kept", name).
			WithHint("muster worktree remove --force %s archives and removes it", name)
	}
	if _, isRemoving := removalOf(lane); !isRemoving && !force {
		changed, err := l.checkout(lane).isChanged(ctx)
		if err != nil {
			return err
		}
		if changed {
			return muster.Errorf(muster.Held, "the lane %s holds work that has not landed", name).
				WithHint("muster worktree remove --force %s archives it under %s and removes it", name, archiveRefs)
		}
	}
	_, err = l.Archive(ctx, name)
	return err
}

// finish finishes an announced removal: what it removes is archived at ref. It returns the archive, as removeBranch
// does. Two processes may do it at once.
func (l *Lanes) finish(ctx context.Context, lane muster.Lane, ref string) (string, error) {
	err := l.removeWorktree(ctx, lane)
	if err == nil {
		failpoint.Hit("lane.removed")
		ref, err = l.removeBranch(ctx, lane, ref)
	}
	if err != nil && l.isRemoved(ctx, lane.Name) {
		return ref, nil // another process has finished it
	}
	if err != nil {
		return ref, err
	}
	failpoint.Hit("lane.branchless")
	return ref, l.drop(ctx, lane, ref)
}

// drop removes the row of a lane of which nothing else is left, and what belongs to the row. Of two processes that do
// it, the one that deletes the row writes the events.
func (l *Lanes) drop(ctx context.Context, lane muster.Lane, ref string) error {
	// The row goes last: as long as it is there, a crash is recovered by doing the removal once more.
	late, cancel := clock.Detach(ctx)
	defer cancel()
	if l.options.Removed != nil {
		if err := l.options.Removed(late, lane); err != nil {
			return err
		}
	}
	// What the lane has for itself goes before the row: nobody makes a lane of that name meanwhile. What stays does no
	// harm to the next one.
	if dir, err := l.temporaryDir(lane); err == nil {
		_ = durable.RemoveAll(dir)
	}
	if l.options.Ports != nil {
		_ = l.options.Ports.Release(late, lane.Path)
	}
	_ = git.RemovePlace(l.repo, lane.Path)
	existed, err := l.index.delete(late, lane.Name)
	failpoint.Hit("lane.dropped")
	if err != nil || !existed {
		return err
	}
	lane.Status = laneRemoved
	// A crash before the events loses them, which is better than to tell of a removal that has not happened.
	if ref != "" {
		if err := l.events.record(ctx, lane, event{kind: journal.LaneArchived, ref: ref}); err != nil {
			return err
		}
	}
	return l.events.record(ctx, lane, event{kind: journal.LaneRemoved, name: "worktree.remove.after"})
}

// isRemoved reports that the lane has no row any more.
func (l *Lanes) isRemoved(ctx context.Context, name muster.Name) bool {
	_, err := l.index.get(ctx, name)
	return errors.Is(err, muster.ErrNotFound)
}

// removeWorktree removes the lane's worktree. The error says what helps.
func (l *Lanes) removeWorktree(ctx context.Context, lane muster.Lane) error {
	err := l.repo.RemoveWorktree(ctx, lane.Path)
	if err == nil || ctx.Err() != nil {
		return err
	}
	hint := cmp.Or(l.checkout(lane).unlockHint(ctx), "mend that, then: muster doctor --repair")
	if git.AdminDir(l.repo.CommonDir(), lane.Path) == "" {
		hint = "git worktree repair " + text.ShellQuote(lane.Path) + ", then: muster doctor --repair"
	}
	return muster.Errorf(muster.Held, "the worktree of lane %s cannot be removed, so it is kept: %w", lane.Name, err).
		WithHint("%s", hint)
}

// removeBranch deletes the lane's branch, unless a worktree of the user's is on it. Commits on it that neither the
// archive nor any other ref has are archived first: the branch moved in the last instant, the archive has the same
// content in another commit, or the row names a wrong base. It returns the archive, a new one in these cases.
func (l *Lanes) removeBranch(ctx context.Context, lane muster.Lane, ref string) (string, error) {
	for {
		tip, err := l.repo.Ref(ctx, branchRef(lane))
		if err != nil || tip == "" {
			return ref, err
		}
		archived := false
		if ref != "" {
			archived, err = l.repo.IsAncestor(ctx, tip, ref)
		} else if tip == lane.Base { // a branch at its base has no work
			archived, err = hasOtherRef(ctx, l.repo, tip, branchRef(lane))
		}
		if err != nil {
			return ref, err
		}
		if !archived {
			if ref, err = l.archive(ctx, lane, tip); err != nil {
				return ref, err
			}
		}
		// A worktree of the user's would be left on a branch without a commit.
		if at, err := l.repo.CheckedOut(ctx, branchRef(lane)); err != nil || at != "" {
			return ref, err
		}
		// Stale: the branch moved after it was looked at, and what it has now must be archived too.
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), Old: tip}})
		if !errors.Is(err, muster.ErrStale) {
			return ref, err
		}
	}
}

// preserve archives what the lane holds. When another process is removing the lane by now, the archive is that
// process's: files that vanish during the snapshot make it fail or are missing in it.
func (l *Lanes) preserve(ctx context.Context, lane muster.Lane) (ref string, err error) {
	left := make(chan []string, 1)
	if _, ok := l.nothingLeft.LoadAndDelete(lane.Path); ok {
		left <- nil
	} else {
		go func() {
			names, _ := l.checkout(lane).leftOut(ctx) // at worst the archive lacks what can be made again
			left <- names
		}()
	}
	// The row is read after the snapshot: a removal that began before the snapshot ended is seen.
	commit, err := l.checkout(lane).snapshot(ctx)
	names := <-left
	if ctx.Err() != nil {
		return "", cmp.Or(err, context.Cause(ctx))
	}
	// The error of the snapshot is looked at last: it says nothing about a lane that somebody else was removing.
	now, getErr := l.index.get(ctx, lane.Name)
	if getErr != nil {
		return "", getErr
	}
	if theirs, ok := removalOf(now); ok {
		return theirs.Ref, nil
	}
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "cannot verify what the lane %s holds, so it is kept: %w",
			lane.Name, err).WithHint("%s", cmp.Or(muster.HintOf(err),
			"mend that, or give up what is in it: git worktree remove --force "+lane.Path))
	}
	if commit == "" {
		return "", nil
	}
	// The base is what the row says: a commit that only the lane has is work, whatever the row calls it.
	if commit == lane.Base {
		if isElsewhere, err := hasOtherRef(ctx, l.repo, commit, branchRef(lane)); err != nil || isElsewhere {
			return "", err
		}
	}
	if with, err := l.checkout(lane).withLeftovers(ctx, commit, names); err == nil {
		commit = with
	}
	return l.archive(ctx, lane, commit)
}

// archive makes the archive ref of a commit, which is durable before the ref names it: nothing else has it when the
// lane is gone, so it must survive a power cut.
func (l *Lanes) archive(ctx context.Context, lane muster.Lane, commit string) (ref string, err error) {
	base := lane.Base
	if base == commit {
		base = "" // the row is wrong: lanes are made from commits that others have
	}
	err = l.repo.Pack(ctx, base, commit)
	if err != nil && base != "" && ctx.Err() == nil {
		err = l.repo.Pack(ctx, "", commit) // git may not have what the row calls the base
	}
	if err != nil {
		return "", err
	}
	return ArchiveRef(ctx, l.repo, string(lane.Name), commit)
}

// resumeRemoval finishes a removal that another process has announced, or a row of another program. That everything is
// archived is the row's word alone, so what the archive lacks is archived before anything is removed.
func (l *Lanes) resumeRemoval(ctx context.Context, lane muster.Lane, r removal) (ref string, err error) {
	if ref, err = l.archiveRest(ctx, lane, r); err == nil {
		return l.finish(ctx, lane, ref)
	}
	if l.isRemoved(ctx, lane.Name) {
		return ref, nil // another process has finished it
	}
	return ref, err
}

// archiveRest archives what a lane holds that is being removed, unless the announced archive has it already. It returns
// the archive. Of a lane whose removal was cut off, some files are missing: what is left counts.
func (l *Lanes) archiveRest(ctx context.Context, lane muster.Lane, r removal) (ref string, err error) {
	if strings.HasPrefix(r.Ref, archiveRefs+string(lane.Name)+"-") {
		if at, err := l.repo.Ref(ctx, r.Ref); err != nil {
			return "", err
		} else if at != "" {
			ref = r.Ref
		}
	}
	// Another process may be removing the files meanwhile, and git fails at one that vanishes.
	const tries = 8
	for try := 1; ; try++ {
		entries, err := os.ReadDir(lane.Path)
		if errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0 {
			return ref, nil
		}
		commit := ""
		if err = git.RestoreLink(l.repo.CommonDir(), lane.Path); err == nil {
			commit, err = l.checkout(lane).snapshot(ctx)
		}
		switch {
		case err == nil && commit == "":
			return ref, nil
		case err == nil:
			isCovered, err := covers(ctx, l.repo, cmp.Or(ref, lane.Base), commit)
			if err == nil && isCovered {
				return ref, nil
			}
			return l.archive(ctx, lane, commit)
		case ctx.Err() != nil:
			return ref, err
		case try == tries || l.isRemoved(ctx, lane.Name):
			return ref, muster.Errorf(muster.Invalid, "cannot verify what the lane %s still holds, so it is kept: %w",
				lane.Name, err).WithHint("%s", muster.HintOf(err))
		}
		if clock.Sleep(ctx, time.Duration(try)*10*time.Millisecond) != nil {
			return "", context.Cause(ctx)
		}
	}
}

// recoverRemoval finishes a removal that was cut off. A lane that cannot be removed, as where the user has locked its
// worktree, stays marked and does not stop the recovery of the others.
func (l *Lanes) recoverRemoval(ctx context.Context, lane muster.Lane, announced removal) error {
	if err := endLeftGit(ctx, l.repo, lane); err != nil {
		return err
	}
	_, err := l.resumeRemoval(ctx, lane, announced)
	if ctx.Err() == nil && (errors.Is(err, muster.ErrHeld) || errors.Is(err, muster.ErrInvalid)) {
		return l.events.record(ctx, lane, event{kind: journal.LaneFailed, name: "worktree.remove.failed", cause: err})
	}
	return err
}

// recoverMissing decides about a lane whose directory is gone. While its branch is there its commits are, and the lane
// stays as failed; without the branch nothing is left of it.
func (l *Lanes) recoverMissing(ctx context.Context, lane muster.Lane) error {
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil {
		return err
	}
	if tip == "" {
		// Nothing else is removed: if the directory comes back meanwhile, what is in it was never archived.
		return l.drop(ctx, lane, "")
	}
	return l.fail(ctx, lane, "", muster.Errorf(muster.NotFound, "its directory %s is gone", lane.Path))
}
