package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"muster"
	"muster/internal/git"
)

// scratches are the checkouts in which members without a task work: detached worktrees at .team/scratch/NAME, which no
// index lists. Nothing in them ever lands.
type scratches struct {
	repo *git.Repo
	dir  string

	locks sync.Map // by member, a *sync.Mutex: one refresh of a checkout at a time
}

// Scratch returns the scratch checkout of a member, at the commit. When the commit is another one than last time,
// tracked files move to it, whatever was done to them; files that the member made stay. A checkout that is broken is
// moved aside and made anew.
func (l *Lanes) Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error) {
	if member != muster.Lead {
		if err := muster.CheckName(member); err != nil {
			return "", err
		}
	}
	if commit, err = l.repo.Resolve(ctx, commit); err != nil {
		return "", err
	}
	s := l.scratches
	// A mutex of this process is enough, because one process hosts the member.
	lock, _ := s.locks.LoadOrStore(member, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	dir = filepath.Join(s.dir, string(member))
	if !isMissing(dir) {
		moved, err := s.move(ctx, dir, commit)
		if err != nil || moved {
			return dir, err
		}
		if err := moveAside(dir); err != nil {
			return "", err
		}
	}
	return dir, s.create(ctx, dir, commit)
}

// move moves the checkout to the commit. It returns false when dir is no checkout any more, or when git cannot move it.
func (s *scratches) move(ctx context.Context, dir, commit string) (moved bool, err error) {
	if _, err := headOf(ctx, s.repo, dir); err != nil {
		return false, context.Cause(ctx) // unless ctx has ended, dir is no checkout
	}
	if at, err := s.repo.ResolveIn(ctx, dir, "HEAD"); err == nil && at == commit {
		return true, nil
	}
	// --force gives up changes to tracked files. Members know that nothing here lands, and are told so by their tools.
	_, err = s.repo.Run(ctx, dir, "checkout", "-q", "--force", "--detach", commit)
	if _, isExit := errors.AsType[*git.ExitError](err); isExit {
		return false, nil
	}
	return err == nil, err
}

// create checks the commit out in a new directory.
func (s *scratches) create(ctx context.Context, dir, commit string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o700)
	if err == nil {
		err = s.repo.AddWorktree(ctx, dir, "", commit)
	}
	if err != nil && ctx.Err() == nil {
		return muster.Errorf(muster.Unavailable, "the scratch checkout %s cannot be made: %w", dir, err)
	}
	return err
}

// moveAside renames a broken checkout, so that the member's files in it are kept. It also removes the link to the
// repository: git has the path registered, and that registration is the new checkout's.
func moveAside(dir string) error {
	aside := ""
	// No earlier one is replaced: each may hold files that its member wants back.
	for n := 1; aside == "" || !isMissing(aside); n++ {
		aside = fmt.Sprintf("%s.aside-%d", dir, n)
	}
	if err := os.Rename(dir, aside); err != nil {
		return muster.Errorf(muster.Unavailable,
			"the scratch checkout %s is broken and cannot be moved aside: %w", dir, err)
	}
	link := filepath.Join(aside, ".git")
	if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
		return nil
	}
	if err := os.Remove(link); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be removed: %w", link, err)
	}
	return nil
}
