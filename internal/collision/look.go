package collision

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"muster"
	"muster/internal/git"
	"muster/internal/worktree"
)

// pair are two tasks that may collide, the lower id first. With 0 it is the target, which comes last.
type pair struct{ task, with muster.TaskID }

// pairOf returns the two tasks of a collision.
func pairOf(c muster.Collision) pair {
	if c.With != 0 && c.With < c.Task {
		return pair{c.With, c.Task}
	}
	return pair{c.Task, c.With}
}

// compare orders pairs, so that what is told, written and asked of git has the same order in each look.
func (p pair) compare(q pair) int {
	return cmp.Or(cmp.Compare(p.task, q.task), cmp.Compare(p.with, q.with))
}

const (
	// maxLanes is how many lanes are looked at.
	maxLanes = 64
	// maxContents is how many contents are taken before the temporary objects are thrown away.
	maxContents = 500
)

// content is what a lane held when it was looked at.
type content struct {
	commit string
	isBase bool // nothing was changed in it
}

// looker is the part of a Watcher that asks git. It is for one goroutine.
type looker struct {
	o Options

	// What a look writes are objects that nobody needs after it: in the repository they would stay until somebody
	// collects its garbage, and a killed process would leave them there.
	repo   *git.Repo // with a directory of its own for what is written; nil: there is none yet
	temp   string    // has the directories objects and index
	index  string
	remove func()
	taken  int // contents since the directory was made

	tip      string
	contents map[muster.TaskID]content
	merged   map[pair]sides            // the commits of the last merge of the two
	found    map[pair]muster.Collision // what collides now
	told     map[pair]muster.Collision // what was told of them
	overs    map[pair]int              // how often it was told that they do not collide any more
	written  []muster.Collision        // what write has written last
}

// newLooker returns a looker that has looked at nothing.
func newLooker(o Options) looker {
	return looker{o: o, contents: map[muster.TaskID]content{}, merged: map[pair]sides{},
		found: map[pair]muster.Collision{}, told: map[pair]muster.Collision{}, overs: map[pair]int{}}
}

// hasTargetMoved reports whether the target is elsewhere than at the last look while there are lanes that it could
// collide with. It starts no process.
func (l *looker) hasTargetMoved(ctx context.Context) bool {
	if l.tip == "" {
		return false
	}
	tip, err := l.o.Repo.Ref(ctx, l.o.Target)
	return err == nil && tip != l.tip
}

// close removes what looks have written.
func (l *looker) close() {
	if l.repo != nil {
		l.remove()
		l.repo = nil
	}
}

// open makes the directory for what looks write, and a new one when the old one has much. The contents are then taken
// again, because their objects are gone.
func (l *looker) open() error {
	if l.repo != nil && l.taken < maxContents {
		return nil
	}
	l.close()
	l.taken = 0
	clear(l.contents)
	temp, remove, err := l.o.Lanes.CheckDirs.Create()
	if err != nil {
		return err
	}
	objects, index := filepath.Join(temp, "objects"), filepath.Join(temp, "index")
	err = errors.Join(os.MkdirAll(filepath.Join(objects, "pack"), 0o700), os.Mkdir(index, 0o700))
	if err == nil {
		l.repo, err = git.WithObjects(l.o.Repo, objects)
	}
	if err != nil {
		remove()
		return err
	}
	l.temp, l.index, l.remove = temp, index, remove
	return nil
}

// look brings found up to date, and returns what was not told before. changed are the lanes whose content may be
// another one.
func (l *looker) look(ctx context.Context, changed map[muster.Name]bool) ([]Notice, error) {
	if err := l.open(); err != nil {
		return nil, err
	}
	live, err := l.live(ctx)
	if err != nil {
		return nil, err
	}
	if l.tip, err = l.o.Repo.Ref(ctx, l.o.Target); err != nil {
		return nil, err
	}
	if err := l.takeContents(ctx, live, changed); err != nil {
		return nil, err
	}
	// What is no pair any more is forgotten before anything is merged: a look that ends early, with its context, then
	// names no task that has ended.
	pairs := l.pairs()
	l.forget(live, pairs)
	if err := l.mergeAll(ctx, pairs, live); err != nil {
		return nil, err
	}
	return l.news(live), nil
}

// forget drops what is known of pairs that are none any more, and what was told of tasks that have ended.
func (l *looker) forget(live map[muster.TaskID]muster.Task, pairs map[pair]sides) {
	maps.DeleteFunc(l.found, func(p pair, _ muster.Collision) bool { return pairs[p] == sides{} })
	maps.DeleteFunc(l.merged, func(p pair, _ sides) bool { return pairs[p] == sides{} })
	maps.DeleteFunc(l.told, func(p pair, _ muster.Collision) bool {
		return live[p.task].ID == 0 || p.with != 0 && live[p.with].ID == 0
	})
}

// live returns the claimed tasks that have lanes.
func (l *looker) live(ctx context.Context) (map[muster.TaskID]muster.Task, error) {
	claimed, err := l.o.Board.Claimed(ctx)
	live := map[muster.TaskID]muster.Task{}
	for _, t := range claimed {
		if t.Worktree != "" && len(live) < maxLanes {
			live[t.ID] = t
		}
	}
	return live, err
}

// takeContents takes the content of each lane that has changed, that was not looked at yet, or whose occupant lives in
// another process. A lane that cannot be looked at has none.
func (l *looker) takeContents(
	ctx context.Context, live map[muster.TaskID]muster.Task, changed map[muster.Name]bool,
) error {
	maps.DeleteFunc(l.contents, func(id muster.TaskID, _ content) bool { _, is := live[id]; return !is })
	lanes, err := l.o.Lanes.List(ctx)
	if err != nil {
		return err
	}
	// The members of this process say when their lanes change. Those of others, and people in a lane whose owner is
	// gone, say it elsewhere or not at all.
	isOurs := map[muster.Name]bool{}
	for _, lane := range lanes {
		isOurs[lane.Name] = worktree.OccupantOf(lane).Host == l.o.Host
	}
	for _, id := range slices.Sorted(maps.Keys(live)) {
		t := live[id]
		if _, isKnown := l.contents[id]; isKnown && !changed[t.Worktree] && isOurs[t.Worktree] {
			continue
		}
		l.taken++
		c, isBase, err := worktree.TemporaryCommit(ctx, l.o.Lanes, l.repo, l.temp, t.Worktree, l.index)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if delete(l.contents, id); err == nil {
			l.contents[id] = content{c, isBase}
		} else {
			l.o.Log.Debug("looking at a lane", "lane", t.Worktree, "err", err)
		}
	}
	return nil
}

// pairs returns what is to be merged: each lane with the target, and with each other one. A lane in which nothing was
// changed collides with nothing.
func (l *looker) pairs() map[pair]sides {
	all := map[pair]sides{}
	for id, c := range l.contents {
		if c.isBase {
			continue
		}
		if l.tip != "" {
			all[pair{id, 0}] = sides{Ours: c.commit, Theirs: l.tip}
		}
		for other, o := range l.contents {
			if id < other && !o.isBase {
				all[pair{id, other}] = sides{Ours: c.commit, Theirs: o.commit}
			}
		}
	}
	return all
}

// mergeAll merges the pairs of which a side has changed, and brings found up to date.
func (l *looker) mergeAll(
	ctx context.Context, pairs map[pair]sides, live map[muster.TaskID]muster.Task,
) error {
	// The commits of a pair say all: a lane whose content is as it was has the same commit, and is not merged again.
	var keys []pair
	var todo []sides
	for _, p := range slices.SortedFunc(maps.Keys(pairs), pair.compare) {
		if l.merged[p] != pairs[p] {
			keys, todo = append(keys, p), append(todo, pairs[p])
		}
	}
	merges, err := mergeTrees(ctx, l.repo, todo)
	if err != nil {
		return err
	}
	lines, err := l.readLines(ctx, todo, merges)
	if err != nil {
		return err
	}
	for i, p := range keys {
		l.merged[p] = todo[i]
		delete(l.found, p)
		if len(merges[i].Conflicts) == 0 {
			continue
		}
		c := muster.Collision{Task: p.task, Owner: live[p.task].Owner, With: p.with, WithOwner: live[p.with].Owner,
			Files: lines[i]}
		if p.with == 0 {
			if c.Landed, err = l.landedIn(ctx, todo[i], c.Files); err != nil {
				return err
			}
		}
		l.found[p] = c
	}
	return nil
}

// news returns what is found and was not told, and what was told and is over, and notes both.
//
// What its owners cannot help any more is not told: a task that is landing gets the conflict itself, at once.
func (l *looker) news(live map[muster.TaskID]muster.Task) (all []Notice) {
	isLanding := func(id muster.TaskID) bool { return id == 0 || live[id].Status == muster.Landing }
	for _, p := range slices.SortedFunc(maps.Keys(l.found), pair.compare) {
		c, old := l.found[p], l.told[p]
		if !c.Grows(old) || isLanding(p.task) && isLanding(p.with) {
			continue
		}
		told := c
		told.Files = slices.Concat(old.Files, c.Files)
		l.told[p] = told
		all = append(all, Notice{c, live[p.task].Subject, live[p.with].Subject, false})
	}
	for _, p := range slices.SortedFunc(maps.Keys(l.told), pair.compare) {
		if _, isFound := l.found[p]; isFound || !l.isKnown(p) {
			continue
		}
		// What is told after that is another matter, also in the same files. Two who write the same lines and take it
		// back all the time are told a few times.
		c := l.told[p]
		c.Files = []muster.CollidingFile{}
		c.Owner, c.WithOwner = live[p.task].Owner, live[p.with].Owner
		l.overs[p]++
		isTold := l.overs[p] <= maxOvers
		if isTold {
			all = append(all, Notice{c, live[p.task].Subject, live[p.with].Subject, true})
		}
		if isTold || p.with == 0 {
			delete(l.told, p)
		}
	}
	return all
}

// isKnown reports whether the lanes of a pair could be looked at. One in the middle of a merge, for example, has no
// content that could be compared.
func (l *looker) isKnown(p pair) bool {
	_, isKnown := l.contents[p.task]
	_, isOtherKnown := l.contents[p.with]
	return isKnown && (isOtherKnown || p.with == 0)
}

// maxOvers is how often the end of a collision of the same two tasks is told.
const maxOvers = 3
