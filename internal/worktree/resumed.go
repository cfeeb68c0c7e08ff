package worktree

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"muster"
	"muster/internal/git"
)

// resumeRemoval finishes a removal that another process has announced, or a row of another program. That everything is
// archived is the row's word alone, so what the archive lacks is archived before anything is removed.
func (l *lifecycle) resumeRemoval(ctx context.Context, lane muster.Lane, r removal) (ref string, err error) {
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
func (l *lifecycle) archiveRest(ctx context.Context, lane muster.Lane, r removal) (ref string, err error) {
	if strings.HasPrefix(r.Ref, archiveRefs+string(lane.Name)+"-") {
		if at, err := l.repo.Ref(ctx, r.Ref); err != nil {
			return "", err
		} else if at != "" {
			ref = r.Ref
		}
	}
	// Another process may be removing the files meanwhile, and git fails at one that vanishes.
	for try := 1; ; try++ {
		if isEmpty(lane.Path) {
			return ref, nil
		}
		commit := ""
		if err = git.RestoreLink(l.repo.CommonDir(), lane.Path); err == nil {
			commit, err = l.checkout(lane).snapshot(ctx)
		}
		if err == nil && commit != "" {
			return l.archiveUncovered(ctx, lane, ref, commit)
		}
		if err == nil || try == archiveTries || ctx.Err() != nil || l.isRemoved(ctx, lane.Name) {
			break
		}
		if err := wait(ctx, time.Duration(try)*10*time.Millisecond); err != nil {
			return "", err
		}
	}
	if err != nil && ctx.Err() == nil {
		err = muster.Errorf(muster.Invalid, "cannot verify what the lane %s still holds, so it is kept: %w",
			lane.Name, err).WithHint("%s", muster.HintOf(err))
	}
	return ref, err
}

// archiveTries is how often git may fail to see what a lane holds that another process is removing.
const archiveTries = 8

// archiveUncovered archives a snapshot of a lane that its archive, or its base where it has none, does not cover.
func (l *lifecycle) archiveUncovered(ctx context.Context, lane muster.Lane, ref, commit string) (string, error) {
	if kept := cmp.Or(ref, lane.Base); kept != "" {
		if covers, err := covers(ctx, l.repo, kept, commit); err == nil && covers {
			return ref, nil
		} else if ctx.Err() != nil {
			return ref, err
		}
	}
	return l.archive(ctx, lane, commit)
}

// isEmpty reports that nothing is at path, or a directory with nothing in it.
func isEmpty(path string) bool {
	entries, err := os.ReadDir(path)
	return errors.Is(err, os.ErrNotExist) || err == nil && len(entries) == 0
}
