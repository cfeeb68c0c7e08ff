package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/git"
	"muster/journal"
)

// Create makes a lane from the commit that base names ("" is the default base): a branch wt/NAME and its worktree.
// Errors: Invalid (the name, or no lane can be made at all: see Nameable), NotFound (the base), Held (the lane, its branch or
// its directory is there already).
func (l *Lanes) Create(ctx context.Context, name muster.Name, task muster.TaskID, base string) (muster.Lane, error) {
	if err := muster.CheckName(name); err != nil {
		return muster.Lane{}, err
	}
	if base == "" {
		base = l.base
	}
	commit, err := l.repo.Resolve(ctx, base)
	if err != nil {
		return muster.Lane{}, err
	}
	maker, free, err := l.lease()
	if err != nil {
		return muster.Lane{}, err
	}
	defer free()
	if err := l.clearDead(ctx, name, maker); err != nil {
		return muster.Lane{}, err
	}
	lane := muster.Lane{Name: name, Path: filepath.Join(l.place, string(name)), Branch: "wt/" + string(name), TaskID: task,
		Status: muster.LaneCreating, Base: commit, CreatedAt: muster.Stamp(time.Now())}
	if err := l.vacant(ctx, lane); err != nil {
		return muster.Lane{}, err
	}
	if err := setField(&lane, fieldMaker, maker); err != nil {
		return muster.Lane{}, err
	}
	if err := l.edit(ctx, func(x *index) error {
		if _, there := x.rows[string(name)]; there {
			return taken(name)
		}
		return x.put(lane)
	}); err != nil {
		return muster.Lane{}, err
	}
	failpoint.Hit("lane.creating")
	err = l.tell(ctx, "", "worktree.create.before", lane, "", nil)
	if err == nil {
		err = l.make(ctx, lane)
	}
	if err != nil {
		return muster.Lane{}, l.giveUp(ctx, lane, err)
	}
	failpoint.Hit("lane.added")
	// What is made is noted, also when ctx has just ended.
	late, cancel := grace(ctx)
	defer cancel()
	lane, err = l.change(late, name, func(row *muster.Lane) error {
		row.Status = muster.LaneActive
		clearField(row, fieldMaker)
		return nil
	})
	if err != nil {
		return muster.Lane{}, err
	}
	failpoint.Hit("lane.active")
	return lane, l.tell(ctx, journal.LaneCreated, "worktree.create.after", lane, "", nil)
}

func grace(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
}

func taken(name muster.Name) error {
	return muster.Errorf(muster.Held, "there is a lane %q already", string(name))
}

// vacant says what already has the lane's branch or directory.
func (l *Lanes) vacant(ctx context.Context, lane muster.Lane) error {
	at, err := l.repo.Ref(ctx, branchRef(lane))
	if err != nil {
		return err
	}
	if at != "" {
		return muster.Errorf(muster.Held, "there is a branch %s already, and no lane of that name", lane.Branch).
			WithHint("git branch -m %s ANOTHER-NAME", lane.Branch)
	}
	if !gone(lane.Path) {
		return muster.Errorf(muster.Held, "%s exists already, and is no lane", lane.Path).WithHint("move it away")
	}
	return nil
}

// Nameable refuses a repository in which no lane can have a branch, as Invalid: one of the user's is named wt.
func Nameable(ctx context.Context, repo *git.Repo) error {
	at, err := repo.Ref(ctx, "refs/heads/wt")
	if err != nil || at == "" {
		return err
	}
	return muster.Errorf(muster.Invalid, "lanes need branches named wt/NAME, and the name of your branch wt is in their way").
		WithHint("git branch -m wt ANOTHER-NAME")
}

// make does the work. Branch and directory are made by steps that fail when there is one already, so what undo
// finds afterwards is ours.
func (l *Lanes) make(ctx context.Context, lane muster.Lane) error {
	err := l.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: branchRef(lane), New: lane.Base}})
	if errors.Is(err, muster.ErrStale) {
		err = muster.Errorf(muster.Held, "there is a branch %s already", lane.Branch)
	} else if errors.Is(err, muster.ErrHeld) {
		err = cmp.Or(Nameable(ctx, l.repo), err)
	}
	if err != nil {
		return &notOurs{err}
	}
	failpoint.Hit("lane.branch")
	if err := os.MkdirAll(l.place, 0o700); err != nil {
		return muster.Errorf(muster.Unavailable, "the lanes' directory cannot be made: %w", err)
	}
	if err := l.repo.AddWorktree(ctx, lane.Path, lane.Branch, lane.Base); err != nil {
		if ctx.Err() != nil {
			return err
		}
		return muster.Errorf(muster.Unavailable, "git cannot make the lane %s: %w", lane.Name, err)
	}
	return nil
}

// notOurs is a failure after which nothing was made.
type notOurs struct{ error }

func (e *notOurs) Unwrap() error { return e.error }

// giveUp undoes a creation that failed. What cannot be undone stays, marked failed.
func (l *Lanes) giveUp(ctx context.Context, lane muster.Lane, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	nothing, isNothing := errors.AsType[*notOurs](cause)
	var err error
	if isNothing {
		cause = nothing.error
		_, err = l.drop(ctx, lane.Name)
	} else {
		err = l.undo(ctx, lane)
	}
	lane.Status = muster.LaneFailed
	if told := l.tell(ctx, journal.LaneFailed, "worktree.create.failed", lane, "", cause); err == nil {
		err = told
	}
	if err != nil {
		return fmt.Errorf("%w (and it could not be undone: %w)", cause, err)
	}
	return cause
}

// lease takes the first free lease of those who make lanes. A row that is creating names its maker's; whoever gets that
// lease knows that the maker is dead. The lease guards nothing, and its files are as many as ever made lanes at once.
func (l *Lanes) lease() (maker string, free func() error, err error) {
	for n := 1; n <= 1000; n++ {
		maker = fmt.Sprintf("lane-maker-%d", n)
		free, err = l.tryLease(maker)
		if !errors.Is(err, muster.ErrHeld) {
			return maker, free, err
		}
	}
	return "", nil, err
}

func (l *Lanes) tryLease(maker string) (func() error, error) {
	return l.files.TryLock(filepath.Join(l.dir.Locks(), maker+".lock"))
}
