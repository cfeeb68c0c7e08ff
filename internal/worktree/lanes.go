// Package worktree keeps the lanes: one git worktree for each task, on a branch of its own.
//
// Read the files in this order: lanes.go (what there is), index.go (the record of intent), create.go and recover.go
// (how a lane comes to be, and what becomes of a half-made one), remake.go (a damaged index), enter.go (is it the one we mean), occupy.go (who stands in it),
// commit.go and merge.go (what the runtime does inside), archive.go (how it goes: archived first, then removed), scratch.go (where
// members without a task stand), outside.go (where checks run), events.go.
//
// Two rules. The index is written before git acts, so that a crash leaves a row to finish or undo by; nothing is ever
// pruned by guess. And whatever cannot be verified is kept: no check that failed counts as "nothing to lose".
package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"muster"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/journal"
)

// Options are the settings of lanes.
type Options struct {
	Dir  string // where lanes are made; "" is .worktrees in the repository
	Base string // what a lane is made from when Create names nothing; "" is HEAD

	Inbox muster.Inbox // where the lead is told that the index was damaged; nil: only the events say so
}

// Lanes are the lanes of one repository. Several values, in several processes, may work on the same ones.
type Lanes struct {
	repo    *git.Repo
	files   *durable.Files
	dir     paths.Dir
	journal *journal.Journal
	log     muster.Log
	teller  *corruption.Teller
	place   string // where lanes are made
	base    string

	mu      sync.Mutex
	scratch map[muster.Name]*sync.Mutex // one refresh of a member's scratch checkout at a time
}

// Open returns the lanes of repo, whose state lies at dir. It writes nothing.
func Open(repo *git.Repo, files *durable.Files, dir paths.Dir, j *journal.Journal, log muster.Log, o Options) (*Lanes, error) {
	l := &Lanes{repo: repo, files: files, dir: dir, journal: j, log: log, teller: corruption.New(log, o.Inbox, j), place: o.Dir, base: o.Base, scratch: map[muster.Name]*sync.Mutex{}}
	if l.place == "" {
		l.place = dir.Worktrees()
	}
	if !filepath.IsAbs(l.place) {
		l.place = filepath.Join(string(dir), l.place)
	}
	if l.base == "" {
		l.base = "HEAD"
	}
	var err error
	if l.place, err = realPath(l.place); err != nil {
		return nil, muster.Errorf(muster.Invalid, "lanes cannot be made in %s: %w", o.Dir, err)
	}
	return l, nil
}

// realPath resolves the symbolic links of a path, whose last parts may not exist yet.
func realPath(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return real, err
	}
	up := filepath.Dir(path)
	if up == path {
		return path, nil
	}
	real, err = realPath(up)
	return filepath.Join(real, filepath.Base(path)), err
}

// Get is a lane. The error is NotFound when there is none of that name.
func (l *Lanes) Get(ctx context.Context, name muster.Name) (muster.Lane, error) {
	x, err := l.read(ctx)
	if err != nil {
		return muster.Lane{}, err
	}
	lane, ok, err := x.lane(name)
	if err != nil || ok {
		return l.resolved(lane), err
	}
	return muster.Lane{}, absent(name)
}

func absent(name muster.Name) error {
	return muster.Errorf(muster.NotFound, "there is no lane %q", string(name))
}

// List is all lanes by name. Rows of other programs that cannot be read as a lane are left out.
func (l *Lanes) List(ctx context.Context) ([]muster.Lane, error) {
	x, err := l.read(ctx)
	if err != nil {
		return nil, err
	}
	return l.rows(x), nil
}

func (l *Lanes) rows(x *index) (all []muster.Lane) {
	for name := range x.rows {
		if lane, ok, err := x.lane(muster.Name(name)); ok && err == nil {
			all = append(all, l.resolved(lane))
		}
	}
	slices.SortFunc(all, func(a, b muster.Lane) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return all
}

// resolved is a lane with an absolute path: other programs may write relative ones.
func (l *Lanes) resolved(lane muster.Lane) muster.Lane {
	if lane.Path != "" && !filepath.IsAbs(lane.Path) {
		lane.Path = filepath.Join(string(l.dir), lane.Path)
	}
	return lane
}

// Keep marks a lane to be kept because somebody asked for it: Remove refuses it unless forced, and it stays when its
// task is done.
func (l *Lanes) Keep(ctx context.Context, name muster.Name) error {
	return l.keep(ctx, name, func(lane *muster.Lane) error { return setField(lane, fieldKeep, true) })
}

// Release marks a lane to be kept for whoever takes its task next: Remove refuses it unless forced, and it goes when its
// task is done.
func (l *Lanes) Release(ctx context.Context, name muster.Name) error {
	return l.keep(ctx, name, func(*muster.Lane) error { return nil })
}

func (l *Lanes) keep(ctx context.Context, name muster.Name, mark func(*muster.Lane) error) error {
	lane, err := l.change(ctx, name, func(lane *muster.Lane) error {
		lane.Status = muster.LaneKept
		return mark(lane)
	})
	if err != nil {
		return err
	}
	return l.tell(ctx, journal.LaneKept, "worktree.keep", lane, "", nil)
}

func branchRef(lane muster.Lane) string { return "refs/heads/" + lane.Branch }

func gone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, os.ErrNotExist)
}
