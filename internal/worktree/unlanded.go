package worktree

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/journal"
)

// Leftover is what members have changed and the target does not have.
type Leftover struct {
	Member muster.Name   // whose scratch checkout had it; "": a lane
	Lane   muster.Name   // the lane that has it, or that had it before it was archived
	Task   muster.TaskID // of the lane; 0: none
	Ref    string        // the commit that keeps it; "": it is where it was made
	Files  []string      // what the target would get by it
	// Err says why it cannot be told, or kept: then it is where it was made.
	Err error
}

// Archived is the archive of a lane. HasLanded says that the lane's task has landed: then only what came into the lane
// after that counts.
type Archived struct {
	Lane      muster.Name
	Task      muster.TaskID
	Ref       string
	HasLanded bool
}

const scratchName = "scratch-"

// IsScratch reports whether an archive of that name is of a scratch checkout.
func IsScratch(lane muster.Name) bool { return strings.HasPrefix(string(lane), scratchName) }

// ScratchChanges returns the files of a member's scratch checkout that the member has changed or committed there and
// that the target does not have at any of the tips, which are where it is and where landings left it. What git ignores
// does not count.
func (l *Lanes) ScratchChanges(ctx context.Context, member muster.Name, tips []string) ([]string, error) {
	_, files, err := l.scratchWork(ctx, member, tips)
	if errors.Is(err, errScratchTooLarge) {
		err = nil // what it has is known
	}
	return files, err
}

// maxScratchBytes is how much the changed files of a scratch checkout may have in all. More is not read: a member is
// told of its changes after each command, and a sparse file may have terabytes.
const maxScratchBytes = 256 << 20

// errScratchTooLarge says that changes are not archived, and stay where they are.
var errScratchTooLarge = muster.Errorf(muster.Invalid,
	"the files have more than %d MB, and stay in the scratch checkout", maxScratchBytes>>20)

func (l *Lanes) scratchOf(member muster.Name) checkout {
	return checkout{repo: l.repo, temp: l.CheckDirs,
		lane: muster.Lane{Name: scratchName + member, Path: filepath.Join(l.scratch, string(member))}}
}

// scratchWork returns a commit of all that a scratch checkout holds, and the files of it that are not on the target.
// There are no files when the member has changed nothing.
func (l *Lanes) scratchWork(ctx context.Context, member muster.Name, tips []string) (string, []string, error) {
	c := l.scratchOf(member)
	if info, err := os.Lstat(c.lane.Path); err != nil || !info.IsDir() {
		return "", nil, nil // there is none, or what is there is not the member's
	}
	if _, err := headOf(ctx, l.repo, c.lane.Path); err != nil {
		return "", nil, context.Cause(ctx) // it is no checkout any more
	}
	head, err := c.head(ctx)
	if err != nil {
		return "", nil, err
	}
	_, changes, err := c.changes(ctx)
	if err != nil {
		return "", nil, err
	}
	var files []string
	size := int64(0)
	for _, change := range changes {
		files = append(files, change.file)
		if info, err := os.Lstat(filepath.Join(c.dir(), change.file)); err == nil && info.Mode().IsRegular() {
			size += info.Size()
		}
	}
	if size > maxScratchBytes {
		return "", files, errScratchTooLarge
	}
	if len(changes) == 0 {
		for _, tip := range tips {
			if has, err := l.repo.IsAncestor(ctx, head, tip); err != nil || has {
				return "", nil, err
			}
		}
	}
	commit, err := c.snapshotOn(ctx, head, "")
	if err != nil {
		return "", nil, err
	}
	files, err = unlandedFiles(ctx, l.repo, tips, commit)
	return commit, files, err
}

// unlandedFiles returns the files that the target would get by a merge with the commit. There are none when it has, at
// any of the tips, all that the commit has changed, in whatever commits.
func unlandedFiles(ctx context.Context, repo *git.Repo, tips []string, commit string) (files []string, err error) {
	for _, tip := range tips {
		tree, conflicts, err := repo.MergeTree(ctx, tip, commit)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if files = conflicts; len(files) > 0 {
			continue
		}
		if err != nil {
			tree = commit // histories without a common start: nothing of it is on the target
		}
		out, err := repo.Run(ctx, repo.CommonDir(), "diff-tree", "-r", "--name-only", "-z", tip, tree)
		if files = git.SplitNUL(out); err != nil || len(files) == 0 {
			return nil, err
		}
	}
	return files, nil
}

// keepScratch archives what a scratch checkout holds and the target does not have at any of the tips.
func (l *Lanes) keepScratch(ctx context.Context, member muster.Name, tips []string) Leftover {
	commit, files, err := l.scratchWork(ctx, member, tips)
	left := Leftover{Member: member, Files: files, Err: err}
	if err != nil || len(files) == 0 {
		return left
	}
	lane := muster.Lane{Name: scratchName + member, Base: tips[0]} // the target is durable: what it lacks is written
	if left.Ref, left.Err = l.archive(ctx, lane, commit); left.Err == nil {
		left.Err = l.events.record(ctx, lane, event{kind: journal.LaneArchived, ref: left.Ref})
	}
	return left
}

// Unlanded returns what lanes, scratch checkouts and archives hold and the target does not have at any of the tips. A
// scratch checkout with changes is archived, and then has the files of the first tip again: nothing is lost, and the
// next run begins without them. It is for the end of a run, when no member works.
func (l *Lanes) Unlanded(ctx context.Context, tips []string, archived []Archived) (all []Leftover, err error) {
	dirs, err := os.ReadDir(l.scratch)
	if err != nil && !os.IsNotExist(err) {
		return nil, muster.Errorf(muster.Unavailable, "the scratch checkouts cannot be listed: %w", err)
	}
	for _, d := range dirs {
		if member := muster.Name(d.Name()); member == muster.Lead || muster.CheckName(member) == nil {
			left := l.keepScratch(ctx, member, tips)
			if left.Err != nil || len(left.Files) > 0 {
				all = append(all, left)
			}
			if left.Err == nil && left.Ref != "" {
				c := l.scratchOf(member) // it is archived: what stays here does no harm
				_, _ = c.run(ctx, "checkout", "-q", "--force", "--detach", tips[0])
				_, _ = c.run(ctx, "clean", "-fdq")
			}
		}
	}
	lanes, err := l.List(ctx)
	if err != nil {
		return all, err
	}
	for _, lane := range lanes {
		left := Leftover{Lane: lane.Name, Task: lane.TaskID}
		if changed, err := l.checkout(lane).isChanged(ctx); err != nil || !changed {
			continue // what cannot be looked at is reported by Check
		}
		commit, err := l.checkout(lane).snapshot(ctx)
		if err == nil {
			left.Files, err = unlandedFiles(ctx, l.repo, tips, commit)
		}
		if left.Err = err; err != nil || len(left.Files) > 0 {
			all = append(all, left)
		}
	}
	more, err := unlandedArchives(ctx, l, tips, archived)
	return append(all, more...), cmp.Or(err, context.Cause(ctx))
}

// unlandedArchives returns what of the archives is not on the target.
func unlandedArchives(ctx context.Context, l *Lanes, tips []string, archived []Archived) (all []Leftover, err error) {
	refs, err := l.repo.Refs(ctx, archiveRefs)
	if err != nil {
		return nil, err
	}
	for _, a := range archived {
		if refs[a.Ref] == "" {
			continue
		}
		commit := a.Ref
		content, subject := contentOf(ctx, l.repo, commit)
		if subject == leftoversSubject(a.Lane) {
			commit += "^"
			content, subject = contentOf(ctx, l.repo, commit)
		}
		// A landing commits all that the lane holds: of a lane that has landed, only what was made after that is in a
		// commit of its archive's own.
		if a.HasLanded && content != "" && subject != archiveSubject(a.Lane) {
			continue
		}
		files, err := unlandedFiles(ctx, l.repo, tips, commit)
		if err != nil || len(files) > 0 {
			all = append(all, Leftover{Lane: a.Lane, Task: a.Task, Ref: a.Ref, Files: files, Err: err})
		}
	}
	return all, nil
}
