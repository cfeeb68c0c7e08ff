// Package board is the tasks: their graph, who has claimed which, and what follows when one is done.
//
// Read the files in this order: board.go, status.go (what may become of one task, as pure functions), claim.go and
// finish.go (the steps that owners take), create.go, patch.go, delete.go, edges.go (the graph), settle.go (what follows
// from a step, and repair), remake.go (a meta document that was damaged), index.go and ready.go (the board as a warm process knows it).
//
// Every step is one document: read it with its revision, decide, put it at that revision, try again while it is stale.
// What must follow elsewhere is named in the same put (muster.Effect) and settled after it, any number of times, by
// whoever comes by. Events are written after the step; a failure to write one never undoes it.
package board

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/corruption"
	"muster/journal"
)

// grace is how long what must be written after a step may go on without the caller's context.
const grace = 5 * time.Second

// halfWritten is how long a document that cannot be read is waited for: other programs write without our lock.
const halfWritten = corruption.HalfWritten

// Board is the tasks of a team. Several values, in several processes, may work on one state.
type Board struct {
	tasks   muster.Table
	kept    muster.Table // what of the board was damaged and replaced
	log     muster.Log
	journal *journal.Journal
	teller  *corruption.Teller

	mu     sync.Mutex // guards ix
	ix     *index
	settle chan struct{} // one Settle at a time in this process

	follow   sync.Mutex // guards what is below
	handlers map[muster.Effect]func(context.Context, muster.Task) error
	running  map[settling]bool
	revoke   func(context.Context, muster.Task) error // nil: nobody here can
}

// settling is an effect of a task that this process is settling.
type settling struct {
	id muster.TaskID
	e  muster.Effect
}

// New is the board in s. Its events go to j.
func New(s muster.Store, j *journal.Journal) *Board {
	return &Board{
		tasks: s.Table(muster.TableTasks), kept: s.Table(corruption.Table), log: s.Log(), journal: j, teller: corruption.New(s.Log(), s.Inbox(), j),
		ix: newIndex(), settle: make(chan struct{}, 1),
		handlers: map[muster.Effect]func(context.Context, muster.Task) error{}, running: map[settling]bool{},
	}
}

// Get returns the task as it is stored. The error is NotFound, Corrupt or Unavailable.
func (b *Board) Get(ctx context.Context, id muster.TaskID) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	return t, err
}

// List returns all tasks by id, with BlockedBy and Blocks as the graph has them now. A task that cannot be read is
// left out, reported once by an event, and listed by Corrupt.
func (b *Board) List(ctx context.Context) ([]muster.Task, error) {
	if err := b.refresh(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]muster.Task, 0, len(b.ix.ids))
	for _, id := range b.ix.ids {
		out = append(out, b.ix.view(id))
	}
	return out, nil
}

// Ready returns the tasks that a member of the role may claim now: the higher priority first, then the lower id.
func (b *Board) Ready(ctx context.Context, role string) ([]muster.Task, error) {
	if err := b.refresh(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	out := make([]muster.Task, 0, b.ix.ready.size(role))
	for id := range b.ix.ready.forRole(role) {
		out = append(out, b.ix.view(id))
	}
	return out, nil
}

// Claimed are the tasks that somebody has in hand, by id.
func (b *Board) Claimed(ctx context.Context) ([]muster.Task, error) {
	if err := b.refresh(ctx); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []muster.Task
	for _, id := range slices.Sorted(maps.Keys(b.ix.claimed)) {
		out = append(out, b.ix.view(id))
	}
	return out, nil
}

// Watch receives after the board may have changed, until ctx ends.
func (b *Board) Watch(ctx context.Context) <-chan struct{} { return b.tasks.Watch(ctx) }

func key(id muster.TaskID) string { return strconv.Itoa(int(id)) }

// idOf is the task that a key names; false for what is no task, such as meta.
func idOf(key string) (muster.TaskID, bool) {
	n, err := strconv.Atoi(key)
	return muster.TaskID(n), err == nil && n > 0 && strconv.Itoa(n) == key
}

func now() float64 { return muster.Stamp(time.Now()) }

// read returns a task and the revision it was read at.
func (b *Board) read(ctx context.Context, id muster.TaskID) (muster.Task, muster.Rev, error) {
	for again := true; ; again = false {
		doc, err := b.tasks.Get(ctx, key(id))
		if errors.Is(err, muster.ErrNotFound) {
			return muster.Task{}, muster.None, absent(id)
		}
		var t muster.Task
		if err == nil {
			if t, err = decode(id, doc.Data); err == nil && t.Status == deleted {
				return muster.Task{}, doc.Rev, absent(id)
			}
		}
		if again && errors.Is(err, muster.ErrCorrupt) {
			if e := pause(ctx, halfWritten); e != nil {
				return muster.Task{}, muster.None, e
			}
			continue
		}
		return t, doc.Rev, err
	}
}

func absent(id muster.TaskID) error { return muster.Errorf(muster.NotFound, "there is no task %d", id) }

// decode reads a task's document. Its key is its id, whatever it says.
func decode(id muster.TaskID, data []byte) (muster.Task, error) {
	if !utf8.Valid(data) {
		return muster.Task{}, muster.Errorf(muster.Corrupt, "task %d cannot be read: line %d is not UTF-8", id, badLine(string(data)))
	}
	t, ok := plain(data)
	if ok {
		t.ID = id
		return t, nil
	}
	t = muster.Task{}
	if err := t.UnmarshalJSON(data); err != nil { // not json.Unmarshal, which would go through data twice before it
		return muster.Task{}, muster.Errorf(muster.Corrupt, "task %d cannot be read: %w", id, err)
	}
	t.ID = id
	return t, nil
}

// badLine is the number of the first line that is not UTF-8.
func badLine(text string) int {
	line := 1
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				break
			}
		}
		if r == '\n' {
			line++
		}
	}
	return line
}

// errSame ends a change that has nothing to write.
var errSame = errors.New("nothing to change")

// change lets f alter the task and puts it, again from the start whenever somebody else was faster. An error of f ends
// it; errSame means that all is as it should be.
func (b *Board) change(ctx context.Context, id muster.TaskID, f func(t *muster.Task) error) (muster.Task, error) {
	for {
		t, rev, err := b.read(ctx, id)
		if err != nil {
			return muster.Task{}, err
		}
		if err := f(&t); err == errSame {
			return t, nil
		} else if err != nil {
			return muster.Task{}, err
		}
		data, err := muster.Encode(t)
		if err != nil {
			return muster.Task{}, muster.Errorf(muster.Invalid, "task %d cannot be written: %w", id, err)
		}
		if _, err = b.tasks.Put(ctx, key(id), data, rev); err == nil {
			return t, nil
		}
		if !errors.Is(err, muster.ErrStale) {
			return muster.Task{}, err
		}
		if err := ctx.Err(); err != nil {
			return muster.Task{}, err
		}
	}
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
