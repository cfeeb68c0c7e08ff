package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/git"
)

// Scratch is where a member without a task stands: a detached checkout of the commit at .team/scratch/NAME, in no index.
// When the commit is another one than last time, tracked files move to it, whatever was done to them, for nothing there
// ever lands; files that the member made stay.
func (l *Lanes) Scratch(ctx context.Context, member muster.Name, commit string) (dir string, err error) {
	if member != muster.Lead {
		if err := muster.CheckName(member); err != nil {
			return "", err
		}
	}
	if commit, err = l.repo.Resolve(ctx, commit); err != nil {
		return "", err
	}
	unlock := l.scratchTurn(member)
	defer unlock()
	dir = filepath.Join(l.dir.Scratch(), string(member))
	if gone(dir) {
		return dir, l.newScratch(ctx, dir, commit)
	}
	out, err := l.repo.Run(ctx, dir, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-common-dir", "HEAD")
	line := strings.Split(strings.TrimSpace(out), "\n")
	if ctx.Err() != nil {
		return "", err
	}
	if err == nil && len(line) == 3 && samePath(line[0], dir) && samePath(line[1], l.repo.CommonDir()) {
		if line[2] == commit {
			return dir, nil
		}
		_, err = l.repo.Run(ctx, dir, "checkout", "-q", "--force", "--detach", commit)
		if err == nil {
			return dir, nil
		}
		if _, isExit := errors.AsType[*git.ExitError](err); !isExit || ctx.Err() != nil {
			return "", err
		}
	}
	// It is no checkout any more, or git cannot move it: it is set aside and made anew.
	if err := l.setAside(dir); err != nil {
		return "", err
	}
	return dir, l.newScratch(ctx, dir, commit)
}

func (l *Lanes) newScratch(ctx context.Context, dir, commit string) error {
	err := os.MkdirAll(filepath.Dir(dir), 0o700)
	if err == nil {
		err = l.repo.AddWorktree(ctx, dir, "", commit)
	}
	if err != nil && ctx.Err() == nil {
		return muster.Errorf(muster.Unavailable, "the scratch checkout %s cannot be made: %w", dir, err)
	}
	return err
}

func (l *Lanes) setAside(dir string) error {
	for n := 1; ; n++ {
		aside := fmt.Sprintf("%s.aside-%d", dir, n)
		if !gone(aside) {
			continue
		}
		if err := os.Rename(dir, aside); err != nil {
			return muster.Errorf(muster.Unavailable, "the scratch checkout %s is broken and cannot be moved aside: %w", dir, err)
		}
		// What it was registered as is the new one's now.
		link := filepath.Join(aside, ".git")
		if info, err := os.Lstat(link); err != nil || !info.Mode().IsRegular() {
			return nil
		}
		if err := os.Remove(link); err != nil {
			return muster.Errorf(muster.Unavailable, "%s cannot be removed: %w", link, err)
		}
		return nil
	}
}

func (l *Lanes) scratchTurn(member muster.Name) (unlock func()) {
	l.mu.Lock()
	m := l.scratch[member]
	if m == nil {
		m = &sync.Mutex{}
		l.scratch[member] = m
	}
	l.mu.Unlock()
	m.Lock()
	return m.Unlock
}
