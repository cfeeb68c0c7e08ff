package team

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/setup"
	"muster/internal/text"
	"muster/internal/workspace"
	"muster/internal/worktree"
)

// What is found, when it goes, and what is lost with it:
//
//   - A branch goes if HEAD has all of its commits, it is checked out nowhere, and no team needs it. Only its name is
//     lost.
//   - A lane goes if its task is completed or gone and it holds nothing that did not land. Nothing is lost.
//   - A ref of archived work goes by its age. If HEAD has the work, nothing is lost; else it goes on demand only, and
//     git removes the commits some weeks later.
//   - The state of a team that was put aside goes by its age: its board, its mail, what its members said.
//   - What checks keep goes by its age, or because its repository is gone. The next check is slower.
//   - What set-ups have made goes in the same way. The next check, or the next lane, has it made again.
//
// A team that lives, or that has open tasks, needs its branch and its lanes: landings go on from the one, and members
// in the others.

// The kinds of what Clean finds.
const (
	CleanBranch  = "branch"  // a team's branch of which HEAD has everything
	CleanLane    = "lane"    // a lane that is clean and belongs to no open task
	CleanArchive = "archive" // a ref of archived work
	CleanTeam    = "team"    // the state of a team that was put aside
	CleanCache   = "cache"   // what checks keep
	CleanSetup   = "setup"   // what a set-up has made, kept for the next checkout
)

// Cleanable is something that nobody needs any more.
type Cleanable struct {
	Kind string  `json:"kind"`
	Name string  `json:"name"`
	Size int64   `json:"size,omitempty"` // bytes; 0 where only git knows
	At   float64 `json:"at"`             // when it was used or changed last
	// Unmerged says that it holds work that is nowhere else.
	Unmerged bool   `json:"unmerged,omitempty"`
	Kept     string `json:"kept,omitempty"` // why it stays; "": it goes
	Removed  bool   `json:"removed,omitempty"`

	remove func(context.Context) error
}

// Cleaning says what Clean may take. The zero Cleaning lists everything, whatever its age, and removes nothing.
type Cleaning struct {
	Older    time.Duration // archives and caches that were not touched for so long
	Unmerged bool          // archived work that is in no branch of the user's
	Remove   bool          // false: only list
}

func (o operations) clean(ctx context.Context, c Cleaning) (all []Cleanable, err error) {
	w := o.workspace
	if err := w.PrepareChange(ctx); err != nil {
		return nil, err
	}
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil, err
	}
	x := &cleaner{w: w, repo: repo, Cleaning: c, now: time.Now()}
	if x.busy, err = x.whyBusy(ctx); err != nil {
		return nil, err
	}
	if c.Remove && x.busy == "" && w.HasState() {
		// No run begins while its branch or its lanes go.
		lease, err := w.Store().Leases().Acquire(ctx, workspace.LeadLease)
		if errors.Is(err, muster.ErrHeld) {
			x.busy = "a team is just being started"
		} else if err != nil {
			return nil, err
		} else {
			defer func() { logDropped(ctx, o.log, "releasing the lease", lease.Release()) }()
		}
	}
	for _, find := range []func(context.Context) error{x.branches, x.lanes, x.archives, x.teams} {
		if err := find(ctx); err != nil {
			return nil, err
		}
	}
	x.caches(o.config.checksDir())
	x.setups(o.config.CacheDir)
	// One after the other: what cannot be removed stays with the reason, and does not keep the rest.
	for i := range x.all {
		item := &x.all[i]
		if !c.Remove || item.Kept != "" {
			continue
		}
		if err := item.remove(ctx); err != nil {
			item.Kept = muster.PlainText(err) // the others go all the same
		} else {
			item.Removed = true
		}
	}
	// What it removes belongs to lanes that are gone, so it is not listed.
	if lanes, err := w.Lanes(ctx); c.Remove && err == nil {
		_, err = worktree.RemoveTemporaries(ctx, lanes)
		logDropped(ctx, o.log, "removing the temporary files of lanes", err)
	}
	return x.all, nil
}

// cleaner is one call of Clean. It first finds everything, with the reasons for which some of it stays, and then
// removes one after the other. What it removes is looked at once more by whoever removes it:
//
//   - A ref is deleted only while it is at the commit at which it was found.
//   - A lane is removed only if it has nothing that did not land.
//   - The directories of checks go only while no check runs in them.
//
// So what changes between the two is kept, and a process that is killed has removed some things and left the others. A
// second call goes on with these.
type cleaner struct {
	Cleaning
	w    *workspace.Workspace
	repo *git.Repo
	now  time.Time
	busy string // why the branches and lanes of the team stay; "": they do not
	all  []Cleanable
}

// whyBusy says why the branches and lanes of the team are needed: one of its processes lives, or tasks are open, with
// which a resumed team goes on. "" says that they are not.
func (x *cleaner) whyBusy(ctx context.Context) (why string, err error) {
	hosts, err := x.w.Roster(ctx).Hosts(ctx)
	if err != nil || len(hosts) > 0 {
		return "the team is at work", err
	}
	run, err := x.w.Runs().Look(ctx)
	if err != nil {
		return "", err
	}
	tasks, err := x.w.Board().List(ctx)
	if _, isStopped := run.Left(tasks); isStopped {
		return "the team has open tasks: muster resume", err
	}
	return "", err
}

// add adds what was found, with the reasons for which it stays: the first that holds.
func (x *cleaner) add(item Cleanable, isTeams, hasAge bool) {
	switch {
	case item.Kept != "":
	case isTeams && x.busy != "":
		item.Kept = x.busy
	case hasAge && x.now.Sub(muster.Time(item.At)) < x.Older:
		item.Kept = "it is newer than --older allows"
	case item.Unmerged && !x.Unmerged:
		item.Kept = "its work is nowhere else"
	}
	x.all = append(x.all, item)
}

// branches finds the teams' branches of which HEAD has everything. A new run makes its branch anew, so nothing is lost
// with the name, but muster undo knows the landed tasks of a branch only while it is there.
func (x *cleaner) branches(ctx context.Context) error {
	refs, err := x.repo.Refs(ctx, "refs/heads/muster/")
	if err != nil {
		return err
	}
	head, err := x.repo.Head(ctx)
	if err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		at := refs[ref]
		isIn, err := x.repo.IsAncestor(ctx, at, head)
		if err != nil {
			return err
		}
		path, err := x.repo.CheckedOut(ctx, ref)
		if err != nil {
			return err
		}
		item := Cleanable{Kind: CleanBranch, Name: strings.TrimPrefix(ref, "refs/heads/"), At: x.date(ctx, at)}
		switch {
		case path != "":
			item.Kept = "it is checked out"
		case !isIn:
			item.Kept = "HEAD lacks some of it"
		}
		// Only from where it was seen: what has landed meanwhile stays.
		item.remove = func(ctx context.Context) error {
			return x.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: at}})
		}
		x.add(item, true, false)
	}
	return nil
}

// lanes finds the lanes that belong to no open task. Remove refuses one with work that has not landed.
func (x *cleaner) lanes(ctx context.Context) error {
	if !x.w.HasLanes() {
		return nil
	}
	lanes, err := x.w.Lanes(ctx)
	if err != nil {
		return err
	}
	all, err := lanes.List(ctx)
	for _, lane := range all {
		// A task whose record cannot be read may be open: its lane is not even listed.
		if lane.TaskID != 0 {
			t, err := x.w.Board().Get(ctx, lane.TaskID)
			if err == nil && t.Status != muster.Completed || err != nil && !errors.Is(err, muster.ErrNotFound) {
				continue
			}
		}
		item := Cleanable{Kind: CleanLane, Name: string(lane.Name), At: lane.CreatedAt, Size: sizeOf(lane.Path)}
		if changed, err := lanes.Changed(ctx, lane.Name); err != nil || changed {
			item.Kept = "it has work that has not landed"
		}
		if lane.Status == muster.LaneKept || worktree.IsAskedToKeep(lane) {
			item.Kept = "it is to be kept"
		}
		item.remove = func(ctx context.Context) error { return lanes.Remove(ctx, lane.Name, false) }
		x.add(item, true, lane.TaskID == 0)
	}
	return err
}

// archives finds the refs of archived work: of lanes that were removed, of targets that were left behind, and of owners
// that came too late. They are what keeps git from removing the commits, so what only they have is gone after them.
func (x *cleaner) archives(ctx context.Context) error {
	refs, err := x.repo.Refs(ctx, "refs/muster/archive/")
	if err != nil {
		return err
	}
	head, err := x.repo.Head(ctx)
	if err != nil {
		return err
	}
	for _, ref := range slices.Sorted(maps.Keys(refs)) {
		at := refs[ref]
		// A lane lands as another commit than its own, so only a merge in memory tells that HEAD has all of its work.
		isIn, err := x.repo.IsAncestor(ctx, at, head)
		if err == nil && !isIn {
			isIn, err = x.hasContent(ctx, head, at)
		}
		if err != nil {
			return err
		}
		x.add(Cleanable{Kind: CleanArchive, Name: ref, At: x.date(ctx, at), Unmerged: !isIn,
			remove: func(ctx context.Context) error {
				return x.repo.UpdateRefs(ctx, []git.RefUpdate{{Ref: ref, Old: at}})
			}}, false, true)
	}
	return nil
}

// hasContent reports whether merging a commit into HEAD would change nothing. What conflicts is not there as it was,
// and histories without a common start cannot be compared: then it is taken for work that is nowhere else.
func (x *cleaner) hasContent(ctx context.Context, head, commit string) (bool, error) {
	tree, conflicts, err := x.repo.MergeTree(ctx, head, commit)
	if err != nil || len(conflicts) > 0 {
		return false, context.Cause(ctx)
	}
	headTree, err := x.repo.Tree(ctx, head)
	// A commit that changes nothing has no content that could be anywhere else. Somebody may have wanted its message.
	return tree == headTree && !x.isEmpty(ctx, commit), err
}

func (x *cleaner) isEmpty(ctx context.Context, commit string) bool {
	tree, err1 := x.repo.Tree(ctx, commit)
	parent, err2 := x.repo.Tree(ctx, commit+"^1")
	return errors.Join(err1, err2) == nil && tree == parent
}

// teams finds the state of teams that were put aside: their boards, mail and conversations. The refs of their lanes are
// among the archives, and stay or go by themselves.
func (x *cleaner) teams(context.Context) error {
	all, _, err := x.w.Archives() // what cannot be read stays
	if err != nil {
		return err
	}
	for _, a := range all {
		path := filepath.Join(x.w.Paths().Archive(), a.Name)
		item := Cleanable{Kind: CleanTeam, Name: a.Name, At: a.At, Size: sizeOf(path)}
		if a.Moving {
			item.Kept = "it was cut off: muster archive --yes goes on"
			if a.Restoring {
				item.Kept = "bringing it back was cut off: muster archive restore " + a.Name + " goes on"
			}
		}
		// Through the root of the repository: no link on the way leads out of it.
		item.remove = func(context.Context) error {
			root, err := x.w.Files()
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(x.w.Root(), path)
			if err != nil {
				return err
			}
			return root.RemoveAll(rel)
		}
		x.add(item, false, true)
	}
	return nil
}

// caches finds what checks keep, of all repositories of the user. One in which a check runs refuses to go.
func (x *cleaner) caches(dir string) {
	if dir == "" {
		return
	}
	for _, e := range check.Caches(dir) {
		// That of a repository that is gone is needed by nobody, however young it is.
		_, err := os.Stat(e.Repository)
		isGone := e.Repository != "" && errors.Is(err, fs.ErrNotExist)
		x.add(Cleanable{Kind: CleanCache, Name: cmp.Or(e.Repository, e.Path), Size: e.Size, At: muster.UnixTime(e.Used),
			remove: func(context.Context) error { return e.Remove() }}, false, !isGone)
	}
}

// setups finds what set-ups have made, of all repositories of the user. Whoever needs one that has gone makes it again.
func (x *cleaner) setups(cache string) {
	if cache == "" {
		return
	}
	for _, e := range setup.Entries(cache) {
		_, err := os.Stat(e.Repo)
		isGone := e.Repo != "" && errors.Is(err, fs.ErrNotExist)
		name := cmp.Or(strings.TrimPrefix(e.Repo+": "+text.OneLine(e.Command), ": "), e.Dir())
		x.add(Cleanable{Kind: CleanSetup, Name: name, Size: e.Bytes, At: muster.UnixTime(e.Used),
			remove: func(context.Context) error { return e.Remove() }}, false, !isGone)
	}
}

func (x *cleaner) date(ctx context.Context, commit string) float64 {
	out, _ := x.repo.Run(ctx, x.repo.CommonDir(), "rev-list", "--max-count=1", "--no-commit-header", "--format=%ct",
		commit)
	seconds, _ := strconv.ParseFloat(strings.TrimSpace(out), 64)
	return seconds
}

// sizeOf returns how many bytes the files below a directory have. It follows no link, and a file that has several names
// counts for each of them: the space that is won may be smaller.
func sizeOf(dir string) (size int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				size += info.Size()
			}
		}
		return nil // what cannot be read has no size
	})
	return size
}
