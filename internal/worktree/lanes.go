// Package worktree keeps the lanes of a repository: one git worktree for each task, on a branch of its own.
//
// Lanes is the service that the other packages use. It is put together from these parts:
//
//   - index (index.go, rebuild.go) is the durable table of lanes, .worktrees/index.json. A row also records what is
//     being done to its lane, so that another process can finish or undo it (row.go has the fields). It finds lanes
//     again from what git and the journal know, and puts rows right that another program has written over. identity.go
//     decides which rows and directories are lanes at all.
//   - checkout (checkout.go, stage.go, commit.go, merge.go, archive.go) is the working tree of one lane as git sees it.
//     It changes nothing in the index.
//   - recorder (events.go) writes what happened to the journal and to the lanes' own log.
//   - CheckDirs (checkdir.go) are directories outside the repository, in which landing runs the check.
//
// create.go makes lanes, remove.go archives and removes them, and recover.go finishes what a crash left half done, and
// checks and repairs. scratch.go has the checkouts of members that have no task.
//
// The package keeps these invariants:
//
//   - The index is written before git acts. A crash therefore leaves a row that says what to finish or to undo.
//   - A row is a claim. What it names is touched only where the lanes directory, git's registration and the logs of
//     refs say the same.
//   - Work is archived before it is removed, and what cannot be verified is kept: a check that fails never counts as
//     "there is nothing to lose".
//   - No git runs while the index is locked.
//   - Several processes may use the same lanes at once. The locked index decides between them.
//
// # The life of a lane
//
// Create takes the lease of a maker, writes a row with status "creating", and has git make the branch wt/NAME and the
// worktree. Then the row says "active". The owner of the task works there, and the row names the member as the Occupant
// as long as its commands may run. landing calls Commit and Merge. When the task is completed, ArchiveCompleted
// archives the lane; when it is given back, Release keeps the lane for the next owner, who finds everything as it was
// left.
//
// Archive commits all that the lane holds beside its branch, gives the commit a ref under refs/muster/archive/, notes
// that ref in the row, and removes worktree, branch and row in this order. Once the row names the archive, any process
// may finish it, and several may at once.
//
// A process may die between any two of these steps. The next one that calls Recover or Create finds the row, and the
// row tells what to do:
//
//   - "creating", and the maker's lease is free: undo. The lane was never handed out, and what is not exactly as it was
//     made stays: "active" where somebody has worked in it, else "failed".
//   - "removing": do the removal once more. What the archive lacks is archived first.
//   - "active" or "kept", and the directory is gone: the branch still has the commits, so the lane is "failed" and
//     stays; without the branch the row goes.
//   - A worktree on a branch wt/NAME without a row: it gets one again, from git and the journal.
//
// The package does not know when a lane is made or removed: that is for teammate and landing to decide.
package worktree

import (
	"cmp"
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
	"muster/internal/ports"
	"muster/internal/text"
	"muster/journal"
)

// The name of each lane's branch begins with branchName, and its ref with BranchPrefix. The rest is the lane's name.
const (
	branchName   = "wt/"
	BranchPrefix = "refs/heads/" + branchName
)

// Options are the settings of lanes.
type Options struct {
	Dir  string // where lanes are made; "" is .worktrees in the repository
	Base string // what a lane starts from when Create names nothing; "" is HEAD

	// Task returns a task, for the events of its lane; nil: they have its id only.
	Task func(context.Context, muster.TaskID) (muster.Task, error)
	// Removed is called when nothing but the row of a lane is left, possibly several times, so that a task need not
	// name a lane that is gone. nil: nobody is told.
	Removed func(context.Context, muster.Lane) error

	Ports     *ports.Table // where the ports of lanes are noted; nil: they have none
	PortCount int          // how many ports a lane has

	Inbox muster.Inbox // where the lead is told that the index was damaged; nil: only the events say so
}

// Lanes are the lanes of one repository. They are safe for concurrent use, by several values in several processes too.
type Lanes struct {
	CheckDirs *CheckDirs // where landing runs checks

	options Options // Dir is absolute
	repo    *git.Repo
	index   *index
	events  recorder
	holds   *holds
	scratch string // the directory of the scratch checkouts

	nothingLeft sync.Map // the paths of lanes where builds have left nothing, and no command has begun since
}

// Open returns the lanes of repo, whose state lies in dir. It writes nothing.
func Open(
	repo *git.Repo, files *durable.Files, dir paths.Dir, j *journal.Journal, log muster.Log, o Options,
) (*Lanes, error) {
	o.Dir, o.Base = cmp.Or(o.Dir, dir.Worktrees()), cmp.Or(o.Base, "HEAD")
	if !filepath.IsAbs(o.Dir) {
		o.Dir = filepath.Join(string(dir), o.Dir)
	}
	// git prints paths without symbolic links, and they are compared with the lanes' directory.
	home, err := realPath(o.Dir)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "lanes cannot be made in %s: %w", o.Dir, err)
	}
	o.Dir = home
	return &Lanes{
		CheckDirs: &CheckDirs{root: repo.Root(), leases: leases{files: files, dir: dir.Locks()}},
		options:   o,
		repo:      repo,
		index: &index{files: files, dir: dir, repo: repo, home: home, journal: j,
			corrupt: corruption.New(log, o.Inbox, j)},
		events:  recorder{log, j, o.Task},
		holds:   &holds{changed: sync.Cond{L: &sync.Mutex{}}, held: map[string]bool{}, commands: map[string][]string{}},
		scratch: dir.Scratch(),
	}, nil
}

// realPath resolves the symbolic links of a path, of which the last parts may not exist yet.
func realPath(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err == nil || !errors.Is(err, os.ErrNotExist) {
		return resolved, err
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	resolved, err = realPath(parent)
	return filepath.Join(resolved, filepath.Base(path)), err
}

// Get returns a lane. It restores a row that another program has overwritten. Errors: NotFound when there is no lane of
// that name, Invalid when its row names something else than its directory and its branch.
func (l *Lanes) Get(ctx context.Context, name muster.Name) (muster.Lane, error) {
	lane, err := l.index.get(ctx, name)
	if !l.index.overwritten(lane, err, name) {
		return lane, err
	}
	if err := l.index.restoreRow(ctx, name); err != nil {
		return lane, err
	}
	return l.index.get(ctx, name)
}

// List returns all lanes, sorted by name. It leaves out rows of other programs that cannot be read as a lane, and
// rebuilds an index that cannot be read.
func (l *Lanes) List(ctx context.Context) ([]muster.Lane, error) {
	doc, err := l.index.read(ctx)
	if err != nil {
		return nil, err
	}
	return l.index.lanes(doc), nil
}

// CheckedOutElsewhere returns where a branch (refs/heads/...) is checked out, "" when it is nowhere. The members' own
// worktrees do not count: nothing there is the user's.
func (l *Lanes) CheckedOutElsewhere(ctx context.Context, branch string) (path string, err error) {
	if git.IsNowhere(l.repo, branch) { // each landing asks twice, and git reads much more
		return "", nil
	}
	all, err := l.repo.Worktrees(ctx)
	for _, w := range all {
		if w.Branch == branch && !w.Prunable && !l.IsMembers(ctx, w.Path) {
			return w.Path, err
		}
	}
	return "", err
}

// IsMembers reports whether the directory of a linked worktree is a lane, a scratch checkout, or among the temporary
// files of members.
func (l *Lanes) IsMembers(ctx context.Context, dir string) bool {
	temporary, err := l.CheckDirs.parent()
	isBelow := func(beginning string) bool {
		return strings.HasPrefix(dir, temporary+string(filepath.Separator)+beginning)
	}
	if isSamePath(filepath.Dir(dir), l.scratch) ||
		err == nil && (isBelow(checkDirPrefix) || isBelow(temporaryRootName()+string(filepath.Separator))) {
		return true
	}
	lanes, _ := l.List(ctx) // where they cannot be read, none is known
	return slices.ContainsFunc(lanes, func(lane muster.Lane) bool {
		return string(lane.Name) == filepath.Base(dir) && isSamePath(lane.Path, dir)
	})
}

// Keep marks a lane as kept because somebody asked for it: Remove refuses it unless forced, and it stays when its task
// is done.
func (l *Lanes) Keep(ctx context.Context, name muster.Name) error { return keep(ctx, l, name, true) }

// Release marks a lane as kept for the next owner of its task: Remove refuses it unless forced, and it goes when its
// task is done.
func (l *Lanes) Release(ctx context.Context, name muster.Name) error {
	return keep(ctx, l, name, false)
}

// Bind makes a lane that was made without a task the lane of one.
func (l *Lanes) Bind(ctx context.Context, name muster.Name, task muster.TaskID) error {
	_, err := l.index.update(ctx, name, func(lane *muster.Lane) error { lane.TaskID = task; return nil })
	return err
}

// keep sets the status of a lane to kept, and notes whether somebody asked for it.
func keep(ctx context.Context, l *Lanes, name muster.Name, isAsked bool) error {
	lane, err := l.index.update(ctx, name, func(lane *muster.Lane) error {
		lane.Status = muster.LaneKept
		if isAsked {
			setField(lane, fieldKeep, true)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return l.events.record(ctx, lane, event{kind: journal.LaneKept, name: "worktree.keep"})
}

func (l *Lanes) checkout(lane muster.Lane) checkout {
	return checkout{repo: l.repo, lane: lane, temp: l.CheckDirs}
}

func errNoLane(name muster.Name) error {
	return muster.Errorf(muster.NotFound, "there is no lane %q", string(name)).
		WithHint("see all:  muster worktree list")
}

func ignoreNotFound(err error) error {
	if errors.Is(err, muster.ErrNotFound) {
		return nil
	}
	return err
}

// branchRef returns the full name of the lane's branch. Short names are for people: to git they may mean a tag.
func branchRef(lane muster.Lane) string { return "refs/heads/" + lane.Branch }

// Enter returns the directory of a lane after checking that it is the one that is meant: its top level, its repository
// and its branch are the expected ones. Whatever is unclear is an error.
func (l *Lanes) Enter(ctx context.Context, name muster.Name) (dir string, err error) {
	c, err := l.enter(ctx, name)
	return c.lane.Path, err
}

// Reset gives a lane the files of a commit of the repository, and moves its branch there.
func (l *Lanes) Reset(ctx context.Context, name muster.Name, commit string) error {
	c, release, err := l.enterAlone(ctx, name)
	if err != nil {
		return err
	}
	defer release()
	if _, err = c.run(ctx, "reset", "-q", "--hard", "--no-recurse-submodules", commit); err != nil {
		return err
	}
	_, err = c.place(ctx)
	return err
}

// Workdir is Enter for the tools of the lane's owner: the directory must be the lane's, but the owner may have another
// branch or none checked out in it, as in the middle of a rebase. Enter, Commit and Merge refuse that until it is over.
func (l *Lanes) Workdir(ctx context.Context, name muster.Name) (dir string, err error) {
	c, _, err := l.workdir(ctx, name)
	return c.lane.Path, err
}

// enterAlone is enter for muster's own work in the lane: no command runs there until release is called.
func (l *Lanes) enterAlone(ctx context.Context, name muster.Name) (c checkout, release func(), err error) {
	if c, err = l.enter(ctx, name); err != nil {
		return c, nil, err
	}
	if release, err = l.hold(ctx, c.lane.Path); err != nil {
		return c, nil, err
	}
	p, err := c.place(ctx)
	if err == nil {
		err = p.Refresh() // a process that was killed may have moved the branch, and not told the place
	}
	if err != nil {
		release()
	}
	return c, release, err
}

// enter returns the checkout of a lane that is on its own branch. The hints bring one back that is not.
func (l *Lanes) enter(ctx context.Context, name muster.Name) (checkout, error) {
	c, head, err := l.workdir(ctx, name)
	path, branch := text.ShellQuote(c.lane.Path), c.lane.Branch
	switch {
	case err != nil || head == branchRef(c.lane):
		return c, err
	case head == "HEAD":
		return checkout{}, muster.Errorf(muster.Invalid, "the lane %s is on no branch, and should be on %s", name,
			branch).WithHint("finish or abort the rebase, then: git -C %s checkout %s", path, branch)
	}
	other := strings.TrimPrefix(head, "refs/heads/")
	return checkout{}, muster.Errorf(muster.Invalid, "the lane %s is on branch %s, and should be on %s", name, other,
		branch).WithHint("git -C %[1]s checkout %[2]s && git -C %[1]s merge %[3]s", path, branch, other)
}

// workdir returns the checkout of a lane that can be worked in, and what its HEAD points to.
func (l *Lanes) workdir(ctx context.Context, name muster.Name) (c checkout, head string, err error) {
	lane, err := l.Get(ctx, name)
	if err != nil {
		return c, "", err
	}
	// A lane that is being removed is active or kept by its status: its row says so in a field of its own.
	status := lane.Status
	if _, isRemoving := removalOf(lane); isRemoving {
		status = "being removed"
	}
	if status != muster.LaneActive && status != muster.LaneKept {
		return c, "", muster.Errorf(muster.Held, "the lane %s is %s: nobody can work in it", name, status)
	}
	c = l.checkout(lane)
	head, err = c.verify(ctx)
	return c, head, err
}
