package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"muster"
	"muster/internal/durable"
)

// Scratch returns the checkout in which a member without a task works, at the commit: a detached worktree at
// .team/scratch/NAME, which no index lists. Nothing in it ever lands. When the commit is another one than last time,
// tracked files move to it, and what was done to them is archived first; files that the member made stay. A checkout
// that is broken is moved aside and made anew.
func (l *Lanes) Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error) {
	if member != muster.Lead {
		if err := muster.CheckName(member); err != nil {
			return "", err
		}
	}
	dir = filepath.Join(l.scratch, string(member))
	release, err := l.hold(ctx, dir) // a hold of this process is enough, because one process hosts the member
	if err != nil {
		return "", err
	}
	defer release()
	if err := durable.MakeDirBelow(l.repo.Root(), l.scratch); err != nil {
		return "", muster.Errorf(muster.Unavailable, "the scratch checkouts in %s cannot be made: %w", l.scratch, err)
	}
	// A link would lead git, which gives up what was changed there, to another checkout.
	if info, err := os.Lstat(dir); err == nil && info.IsDir() {
		moved, err := l.moveScratch(ctx, member, commit)
		if err != nil || moved {
			return dir, err
		}
	}
	if !durable.IsMissing(dir) {
		if err := moveAside(dir); err != nil {
			return "", err
		}
	}
	err = l.repo.AddWorktree(ctx, dir, "", commit)
	if err != nil && ctx.Err() == nil {
		err = muster.Errorf(muster.Unavailable, "the scratch checkout %s cannot be made: %w", dir, err)
	}
	return dir, err
}

// moveScratch moves the checkout to the commit. It returns false when it is none any more, when git cannot move it, or
// when what the member has changed there cannot be archived.
func (l *Lanes) moveScratch(ctx context.Context, member muster.Name, commit string) (moved bool, err error) {
	c := l.scratchOf(member)
	if _, err := headOf(ctx, l.repo, c.lane.Path); err != nil {
		return false, context.Cause(ctx) // unless ctx has ended, it is no checkout
	}
	at, err := c.head(ctx)
	if err == nil && at == commit {
		return true, nil
	}
	// In most cases nothing was changed. git refuses to move a checkout where that would overwrite anything.
	_, err = c.run(ctx, "diff", "--quiet", "HEAD", "--")
	if isOld, ancestryErr := l.repo.IsAncestor(ctx, at, commit); err == nil && ancestryErr == nil && isOld {
		if _, err = c.run(ctx, "checkout", "-q", "--detach", commit); err == nil {
			return true, nil
		}
	}
	// --force gives up changes to tracked files. Members know that nothing here lands, and are told so by their tools.
	if err = l.keepScratch(ctx, member, []string{commit}).Err; err == nil {
		_, err = c.run(ctx, "checkout", "-q", "--force", "--detach", commit)
	}
	return err == nil, context.Cause(ctx)
}

// moveAside renames a broken checkout, so that the member's files in it are kept. It also removes the link to the
// repository: git has the path registered, and that registration is the new checkout's.
func moveAside(dir string) error {
	aside := ""
	// No earlier one is replaced: each may hold files that its member wants back.
	for n := 1; aside == "" || !durable.IsMissing(aside); n++ {
		aside = fmt.Sprintf("%s.aside-%d", dir, n)
	}
	if err := os.Rename(dir, aside); err != nil {
		return muster.Errorf(muster.Unavailable,
			"the scratch checkout %s is broken and cannot be moved aside: %w", dir, err)
	}
	link := filepath.Join(aside, ".git")
	dirInfo, err := os.Lstat(aside)
	info, linkErr := os.Lstat(link)
	if err != nil || !dirInfo.IsDir() || linkErr != nil || !info.Mode().IsRegular() {
		return nil // what a link leads to is not the member's, and a repository of its own is connected to none
	}
	if err := os.Remove(link); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be removed: %w", link, err)
	}
	return nil
}
