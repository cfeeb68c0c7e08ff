// Package collision tells the owners of tasks, while they still work, that what they have in their lanes cannot be
// merged with another lane or with the target without a conflict.
//
// A Watcher looks when a lane has changed and when the target has moved, in the background and one look at a time. A
// look takes the content of each lane, committed or not, merges what has changed since the last look with the target
// and with the other lanes in one git process, and finds the lines in conflict (lines.go). No worktree is touched, no
// model is asked, and what git writes lies in a temporary directory.
//
// The package keeps these invariants:
//
//   - What it finds is a hint. Nothing is merged and nothing depends on it: a look that fails is dropped, and a killed
//     process loses hints only.
//   - The owners and the lead hear of the same two tasks once, and again only when another file collides, or when they
//     have heard that the collision is over. Whoever has heard of it hears that it is over, while both still work.
//   - Nothing runs while nothing changes, and looks take a tenth of the time at most.
//
// # A look
//
// The parts of a look, each of which may find that nothing is left to do:
//
//   - The board says which tasks are claimed and have lanes. What is known of others is forgotten.
//   - The content of a lane is a commit in the temporary objects, made with a copy of the lane's git index. It is taken
//     anew when the lane's owner says that files may have changed, and at each look when the lane's occupant lives in
//     another process, which says so there.
//   - A lane that holds nothing beyond its base is left out. The pairs that are left, each lane with the target and
//     with each later one, are merged where one of the two commits is another one than at the last look.
//   - Of the files in conflict the lines are found, and of a conflict with the target the tasks that have landed there.
//   - What has a file that was not told of these two is told: by an event, and to the members by Take. All that
//     collides now is written to a file of the cache, for muster status: to look anew would cost it more than all the
//     rest.
//
// A lane that cannot be looked at has no content, and collides with nothing: its git is broken, a merge in it is not
// resolved, it is not on its branch, or it has more changed files than anybody would write. Nobody is told of that
// here, because the tools of its owner say what is wrong with it.
//
// How work lands, and what becomes of a real conflict, is for package landing.
package collision

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/git"
	"muster/internal/worktree"
	"muster/journal"
)

// Options are what a Watcher works with.
type Options struct {
	Repo    *git.Repo
	Lanes   *worktree.Lanes
	Board   *board.Board
	Journal *journal.Journal
	Target  string        // the ref on which work lands
	Root    string        // of the repository
	Host    muster.HostID // this process, whose members say when their lanes have changed
	Log     *slog.Logger
}

// Notice is what a member is to hear of a collision. The member owns Task; the lead, which hears of those of others
// too, may not.
type Notice struct {
	muster.Collision
	Subject     string // of Task
	WithSubject string // of With; "" for the target
	// IsOver says that what the member has heard of these two is no longer so.
	IsOver bool
}

// reversed returns the notice as the other side reads it.
func (n Notice) reversed() Notice {
	return Notice{n.Reversed(), n.WithSubject, n.Subject, n.IsOver}
}

// Watcher looks for collisions. Serve must run. Its other methods are safe for concurrent use, never wait for a look,
// and work on a nil Watcher too, which finds nothing.
type Watcher struct {
	o    Options
	wake chan struct{} // a lane has changed; one hint is enough for many

	mu      sync.Mutex
	changed map[muster.Name]bool            // lanes, since the last look
	unsaid  map[muster.Name]map[pair]Notice // by the member who is to hear of it
	heard   map[muster.Name]map[pair]bool   // of which collisions a member has heard that are not over

	look looker // of Serve's goroutine alone
}

// New returns a Watcher.
func New(o Options) *Watcher {
	return &Watcher{o: o, wake: make(chan struct{}, 1), changed: map[muster.Name]bool{},
		unsaid: map[muster.Name]map[pair]Notice{}, heard: map[muster.Name]map[pair]bool{}, look: newLooker(o)}
}

// Changed says that files of a lane may have changed.
func (w *Watcher) Changed(lane muster.Name) {
	if w == nil || lane == "" {
		return
	}
	w.mu.Lock()
	w.changed[lane] = true
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Take returns what the member is to hear now, and forgets it. task is the member's own, 0 for none: what concerned an
// earlier one is dropped.
func (w *Watcher) Take(member muster.Name, task muster.TaskID) (all []Notice) {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, n := range w.unsaid[member] {
		if n.Task != task && member != muster.Lead {
			continue
		}
		all = append(all, n)
		if w.heard[member] == nil {
			w.heard[member] = map[pair]bool{}
		}
		w.heard[member][pairOf(n.Collision)] = !n.IsOver
	}
	delete(w.unsaid, member)
	slices.SortFunc(all, func(a, b Notice) int { return pairOf(a.Collision).compare(pairOf(b.Collision)) })
	return all
}

// Returned says that the landing of a task came back: its owner has just read all that it collides with on the target.
func (w *Watcher) Returned(task muster.TaskID) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, notices := range w.unsaid {
		delete(notices, pair{task, 0})
	}
}

const (
	// settling is how long a change waits for others: members that were given their tasks together write together.
	settling = 150 * time.Millisecond
	// pauseFactor is how many times as long as a look took none is begun.
	pauseFactor = 9
	maxPause    = 30 * time.Second
	// maxLook is how long a look may take. A repository in which it takes longer has none.
	maxLook = 20 * time.Second
)

// Serve looks until ctx ends.
func (w *Watcher) Serve(ctx context.Context) {
	defer w.Close()
	changed := w.o.Board.Watch(ctx)
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		case <-changed:
			if !w.look.hasTargetMoved(ctx) {
				continue
			}
		}
		if clock.Sleep(ctx, settling) != nil {
			return
		}
		began := time.Now()
		if err := w.Look(ctx); err != nil && ctx.Err() == nil {
			w.o.Log.Debug("looking for collisions", "err", err)
		}
		if clock.Sleep(ctx, min(pauseFactor*time.Since(began), maxPause)) != nil {
			return
		}
	}
}

// Close removes what looks have written. Serve calls it when it ends; only who calls Look itself has to.
func (w *Watcher) Close() { w.look.close() }

// Look looks once at all that has changed. Serve calls it; nobody else may at the same time.
func (w *Watcher) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, maxLook)
	defer cancel()
	// Taken before the look begins: what changes meanwhile is for the next one.
	w.mu.Lock()
	changed := w.changed
	w.changed = map[muster.Name]bool{}
	w.mu.Unlock()
	news, err := w.look.look(ctx, changed)
	w.mu.Lock()
	if err != nil { // the next one looks again
		maps.Copy(w.changed, changed)
		w.mu.Unlock()
		return err
	}
	w.dropStale()
	for _, n := range news {
		if n.With != 0 || !n.IsOver { // its owner has merged the target, or has taken its change back
			w.say(n.Owner, n)
		}
		if n.With != 0 {
			w.say(n.WithOwner, n.reversed())
		}
		if n.Owner != muster.Lead && n.WithOwner != muster.Lead {
			w.say(muster.Lead, n)
		}
	}
	w.mu.Unlock()
	return w.record(ctx, news)
}

// dropStale forgets what was not said yet and is over: it is said to nobody. What could not be looked at just now, as
// while its owner commits, is not over: what was told once is not told again. The caller holds the lock.
func (w *Watcher) dropStale() {
	for _, notices := range w.unsaid {
		for p, n := range notices {
			_, isFound := w.look.found[p]
			_, isTold := w.look.told[p]
			if isFound != n.IsOver || !n.IsOver && isTold && !w.look.isKnown(p) {
				continue
			}
			delete(notices, p)
		}
	}
}

// say notes that a member is to hear of a collision, or that one of which it has heard is over. The caller holds the
// lock.
func (w *Watcher) say(member muster.Name, n Notice) {
	if n.IsOver && !w.heard[member][pairOf(n.Collision)] {
		return
	}
	if w.unsaid[member] == nil {
		w.unsaid[member] = map[pair]Notice{}
	}
	w.unsaid[member][pairOf(n.Collision)] = n
}

// record writes the events of what is new, and what is known now. What another process of the team has found before has
// its event.
func (w *Watcher) record(ctx context.Context, news []Notice) error {
	// Two processes that look at the same moment may both write an event. That costs a line of the log.
	known := map[pair]muster.Collision{}
	for _, c := range Read(w.o.Root) {
		known[pairOf(c)] = c
	}
	err := w.look.write()
	for _, n := range news {
		old, isKnown := known[pairOf(n.Collision)]
		if n.IsOver && !isKnown || !n.IsOver && isKnown && !n.Grows(old) {
			continue
		}
		fields := map[string]any{"with": n.With, "with_owner": n.WithOwner, "files": n.Files}
		if n.IsOver {
			fields["over"] = true
		}
		if len(n.Landed) > 0 {
			fields["landed"] = n.Landed
		}
		emitErr := w.o.Journal.Emit(ctx, muster.Event{Kind: journal.LaneCollides, Member: n.Owner, Task: n.Task,
			Fields: fields})
		if err == nil {
			err = emitErr
		}
	}
	return err
}
