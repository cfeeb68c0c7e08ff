package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/journal"
)

// archiveRefs is where what is removed goes first.
const archiveRefs = "refs/muster/archive/"

// Archive keeps all that the lane holds, untracked files too (ignored ones not), as a commit under
// refs/muster/archive/NAME-N, then removes the lane. The ref is "" when there was nothing beyond the base.
// Whatever is unclear is an error, and everything stays. Several may do it at once, in several processes: one archive,
// one removal; who comes after it has ended gets NotFound.
func (l *Lanes) Archive(ctx context.Context, name muster.Name) (ref string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	var r removal
	if field(lane, fieldRemoving, &r) {
		return r.Ref, l.finishRemoval(ctx, lane, r.Ref)
	}
	if lane.Status == muster.LaneCreating {
		return "", muster.Errorf(muster.Held, "the lane %s is just being made", name)
	}
	if err := l.tell(ctx, "", "worktree.remove.before", lane, "", nil); err != nil {
		return "", err
	}
	ref, err = l.preserve(ctx, lane)
	failpoint.Hit("lane.archived")
	if err == nil {
		err = l.markRemoval(ctx, &lane, ref)
	}
	failpoint.Hit("lane.removing")
	if err != nil && l.removed(ctx, name) {
		return "", absent(name) // somebody else was faster: that is why it failed
	}
	if err == nil {
		err = l.finishRemoval(ctx, lane, ref)
	}
	if err != nil {
		if terr := l.tell(ctx, "", "worktree.remove.failed", lane, "", err); terr != nil {
			return "", terr
		}
		return "", err
	}
	return ref, nil
}

// markRemoval says in the row that the lane is on its way out. On an error lane stays as it was.
func (l *Lanes) markRemoval(ctx context.Context, lane *muster.Lane, ref string) error {
	marked, err := l.change(ctx, lane.Name, func(row *muster.Lane) error { return setField(row, fieldRemoving, removal{ref}) })
	if err == nil {
		*lane = marked
	}
	return err
}

// Finish is Archive for the lane of a completed task: the completion is written into the lanes' log, once, and a lane that
// somebody asked to keep stays. It may be repeated; a lane that is gone already is no error.
func (l *Lanes) Finish(ctx context.Context, t muster.Task) (ref string, err error) {
	lane, err := l.Get(ctx, t.Worktree)
	if err != nil {
		return "", ignoreAbsent(err)
	}
	var told int
	if !field(lane, fieldCompleted, &told) || told != t.Fence {
		if err := l.tellCompleted(ctx, lane, t); err != nil {
			return "", err
		}
		if lane, err = l.change(ctx, lane.Name, func(row *muster.Lane) error { return setField(row, fieldCompleted, t.Fence) }); err != nil {
			return "", ignoreAbsent(err)
		}
	}
	if AskedToKeep(lane) {
		return "", nil
	}
	ref, err = l.Archive(ctx, lane.Name)
	return ref, ignoreAbsent(err)
}

// Preserve is Archive without the removal: a copy of all that the lane holds now. The ref is "" when there is nothing
// beyond the base; the same content has one ref.
func (l *Lanes) Preserve(ctx context.Context, name muster.Name) (ref string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return "", err
	}
	return l.preserve(ctx, lane)
}

// Remove removes a lane. One with work beyond its base, or one that is kept, is refused (Held) unless force, which
// archives the work first. An error that says "cannot verify" means that nothing was touched.
func (l *Lanes) Remove(ctx context.Context, name muster.Name, force bool) error {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return err
	}
	if !force && lane.Status == muster.LaneKept {
		return muster.Errorf(muster.Held, "the lane %s is kept", name).WithHint("muster worktree remove --force %s archives and removes it", name)
	}
	if _, removing := lane.Extra[fieldRemoving]; !removing && !force {
		changed, err := l.changed(ctx, lane)
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

// finishRemoval does what the row's mark promises: what it removes is archived. Two may do it at once.
func (l *Lanes) finishRemoval(ctx context.Context, lane muster.Lane, ref string) error {
	if err := l.dismantle(ctx, lane, ref); err != nil {
		if l.removed(ctx, lane.Name) {
			return nil // somebody else has finished it
		}
		return err
	}
	late, cancel := grace(ctx)
	defer cancel()
	was, err := l.drop(late, lane.Name)
	failpoint.Hit("lane.dropped")
	if err != nil || !was {
		return err
	}
	if ref != "" {
		if err := l.tell(ctx, journal.LaneArchived, "", lane, ref, nil); err != nil {
			return err
		}
	}
	return l.tell(ctx, journal.LaneRemoved, "worktree.remove.after", lane, "", nil)
}

// removed reports that the lane has no row any more.
func (l *Lanes) removed(ctx context.Context, name muster.Name) bool {
	_, err := l.Get(ctx, name)
	return errors.Is(err, muster.ErrNotFound)
}

// dismantle removes the lane's worktree and its branch.
func (l *Lanes) dismantle(ctx context.Context, lane muster.Lane, ref string) error {
	err := l.repo.RemoveWorktree(ctx, lane.Path)
	if err != nil && ctx.Err() == nil && !gone(lane.Path) && gone(filepath.Join(lane.Path, ".git")) {
		err = l.repo.ClearWorktree(ctx, lane.Path) // a removal that was killed in the middle
	}
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		held := muster.Errorf(muster.Held, "the worktree of lane %s cannot be removed, so it is kept: %w", lane.Name, err)
		return held.WithHint("%s", l.unlockIt(ctx, lane))
	}
	failpoint.Hit("lane.removed")
	if err := l.removeBranch(ctx, lane, ref); err != nil {
		return err
	}
	failpoint.Hit("lane.branchless")
	return nil
}

// removeBranch deletes the lane's branch. What it holds beyond the archive is archived first: it moved in the last
// instant, or the archive was of the same content in another commit.
func (l *Lanes) removeBranch(ctx context.Context, lane muster.Lane, ref string) error {
	for {
		tip, err := l.repo.Ref(ctx, branchRef(lane))
		if err != nil || tip == "" {
			return err
		}
		safe := tip == lane.Base
		if !safe && ref != "" {
			if safe, err = l.repo.IsAncestor(ctx, tip, ref); err != nil {
				return err
			}
		}
		if !safe {
			if ref, err = l.archive(ctx, lane, tip, false); err != nil {
				return err
			}
		}
		err = l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), Old: tip}})
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// preserve makes the commit and its ref. Where somebody else is removing the lane by now, it is their ref: files that
// vanish under the snapshot are an error of it, or missing in it.
func (l *Lanes) preserve(ctx context.Context, lane muster.Lane) (ref string, err error) {
	commit, fresh, err := l.snapshot(ctx, lane)
	if ctx.Err() != nil {
		return "", cmp.Or(err, context.Cause(ctx))
	}
	now, gerr := l.Get(ctx, lane.Name)
	if gerr != nil {
		return "", gerr
	}
	if r := (removal{}); field(now, fieldRemoving, &r) {
		return r.Ref, nil
	}
	if err != nil {
		return "", muster.Errorf(muster.Invalid, "cannot verify what the lane %s holds, so it is kept: %w", lane.Name, err)
	}
	if commit == "" || commit == lane.Base {
		return "", nil
	}
	return l.archive(ctx, lane, commit, fresh)
}

// archive makes the ref for a commit. A fresh one, which no branch knows, may be stood for by another of the same content.
func (l *Lanes) archive(ctx context.Context, lane muster.Lane, commit string, fresh bool) (ref string, err error) {
	if err := l.repo.Pack(ctx, []string{commit}, []string{lane.Base}); err != nil {
		return "", err
	}
	var same string
	if fresh {
		if same, err = content(ctx, l.repo, commit); err != nil {
			return "", err
		}
	}
	return archiveRef(ctx, l.repo, string(lane.Name), commit, same)
}

// ArchiveRef makes refs/muster/archive/NAME-N for a commit, with the first free N; when one of NAME is at the commit
// already, it is that one.
func ArchiveRef(ctx context.Context, repo *git.Repo, name, commit string) (string, error) {
	return archiveRef(ctx, repo, name, commit, "")
}

// archiveRef takes a ref of the content same, if that is not "", for one of the commit.
func archiveRef(ctx context.Context, repo *git.Repo, name, commit, same string) (string, error) {
	for n := 1; ; {
		have, err := repo.Refs(ctx, archiveRefs)
		if err != nil {
			return "", err
		}
		var ref string
		for ; ; n++ {
			ref = fmt.Sprintf("%s%s-%d", archiveRefs, name, n)
			at := have[ref]
			if at == "" {
				break
			}
			if at == commit {
				return ref, nil
			}
			if same == "" {
				continue
			}
			if its, err := content(ctx, repo, at); err == nil && its == same {
				return ref, nil
			}
		}
		err = repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, New: commit}})
		if !errors.Is(err, muster.ErrStale) {
			return ref, err
		}
	}
}

// content is a commit's tree and parents.
func content(ctx context.Context, repo *git.Repo, commit string) (string, error) {
	out, err := repo.Run(ctx, repo.CommonDir(), "rev-list", "--max-count=1", "--no-commit-header", "--format=%T %P", commit)
	return strings.TrimSpace(out), err
}

// snapshot is a commit of all that the lane holds; its branch's tip when nothing is uncommitted, else a fresh one.
// Nothing in the lane changes: the files are added to a copy of its index.
func (l *Lanes) snapshot(ctx context.Context, lane muster.Lane) (commit string, fresh bool, err error) {
	tip, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil {
		return "", false, err
	}
	if gone(lane.Path) {
		return tip, false, nil
	}
	if _, err := l.look(ctx, lane); err != nil {
		return "", false, err
	}
	head, err := l.repo.ResolveIn(ctx, lane.Path, "HEAD")
	if err != nil {
		return "", false, err
	}
	merging, err := l.merging(ctx, lane)
	if err != nil {
		return "", false, err
	}
	tree, err := l.treeOf(ctx, lane)
	if err != nil {
		return "", false, err
	}
	parents := []string{}
	for _, p := range []string{head, tip, merging} {
		if p != "" && !slices.Contains(parents, p) {
			parents = append(parents, p)
		}
	}
	if len(parents) == 1 {
		was, err := l.repo.Tree(ctx, head)
		if err != nil || was == tree {
			return head, false, err
		}
	}
	commit, err = l.repo.CommitTree(ctx, tree, parents, fmt.Sprintf("lane %s as it was when it was archived\n", lane.Name))
	return commit, true, err
}

// treeOf writes the tree of the lane's files.
func (l *Lanes) treeOf(ctx context.Context, lane muster.Lane) (string, error) {
	tmp, err := os.MkdirTemp("", "muster-index-")
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "no temporary directory can be made: %w", err)
	}
	defer os.RemoveAll(tmp)
	own, err := l.repo.Run(ctx, lane.Path, "rev-parse", "--path-format=absolute", "--git-path", "index")
	if err != nil {
		return "", err
	}
	index := filepath.Join(tmp, "index")
	env := []string{"GIT_INDEX_FILE=" + index}
	if err := copyFile(filepath.FromSlash(strings.TrimRight(own, "\n")), index); err != nil {
		return "", muster.Errorf(muster.Unavailable, "the lane's index cannot be read: %w", err)
	}
	if err := l.stage(ctx, lane, env); err != nil {
		return "", err
	}
	out, err := l.repo.Do(ctx, git.Call{Dir: lane.Path, Args: []string{"write-tree"}, Env: env})
	return strings.TrimSpace(out), err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // an empty index
	}
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
