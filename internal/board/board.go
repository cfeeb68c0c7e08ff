// Package board keeps the tasks of a team: their graph, who has claimed which, and what follows when one is done.
//
// Its type is Board. Read the files in this order: board.go, status.go (what may become of one task, as pure
// functions), claim.go and finish.go (the steps that owners take), create.go, patch.go, delete.go, edges.go (new
// dependencies), effects.go (what follows from a step), settle.go and foreign.go (repair), rebuild.go (a corrupt meta
// document), and graph.go, cycles.go and ready.go (what is derived from the tasks in memory).
//
// Every step changes one document by compare-and-set. What must follow in other documents is named in the same write
// (muster.Effect) and done after it, any number of times, by any process that finds it. Events are written after the
// step; a failure to write one never undoes it.
//
// The stored document decides what a step may do. The graph in memory is derived from it, may be behind what other
// processes have just written, and only says where to look.
package board

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"muster"
	"muster/internal/corruption"
	"muster/internal/state"
	"muster/journal"
)

// grace is how long what must be written after a step may go on without the caller's context.
const grace = 5 * time.Second

// errNoChange ends a change of a task, or of meta, that has nothing to write.
var errNoChange = state.ErrNoChange

// Board is the tasks of a team. Several values, in several processes, may work on one state.
type Board struct {
	tasks    *state.Collection[muster.Task]
	table    muster.Table // the same table, for the meta document
	replaced muster.Table // keeps what was corrupt and has been replaced
	log      muster.Log
	journal  *journal.Journal
	teller   *corruption.Teller

	graph    *graph        // guarded by the lock of tasks: see Collection.View
	settling chan struct{} // held by the one Settle that runs in this process

	mu       sync.Mutex // guards the following
	handlers map[muster.Effect]func(context.Context, muster.Task) error
	running  map[effectRun]bool
	revoke   func(context.Context, muster.Task) error // nil: nobody here can
}

// effectRun is an effect of a task that this process is running.
type effectRun struct {
	id     muster.TaskID
	effect muster.Effect
}

// New returns the board in s. Its events go to j.
func New(s muster.Store, j *journal.Journal) *Board {
	b := &Board{
		table: s.Table(muster.TableTasks), replaced: s.Table(corruption.Table), log: s.Log(), journal: j,
		teller: corruption.New(s.Log(), s.Inbox(), j), graph: newGraph(), settling: make(chan struct{}, 1),
		handlers: map[muster.Effect]func(context.Context, muster.Task) error{}, running: map[effectRun]bool{},
	}
	b.tasks = state.New(state.Options[muster.Task]{
		Table: b.table, Name: muster.TableTasks, Decode: decodeTask, Encode: encodeTask,
		IsKey:    func(key string) bool { _, is := idOf(key); return is },
		NotFound: func(key string) error { id, _ := idOf(key); return errAbsent(id) },
		OnChange: b.graph.onChange, Reporter: b.teller,
	})
	return b
}

// Get returns the task as it is stored, without Blocks. The error is NotFound, Corrupt or Unavailable.
func (b *Board) Get(ctx context.Context, id muster.TaskID) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	return t, err
}

// WithBlocks returns t with Blocks as the graph has them now. It needs the whole board, which Get does not.
func (b *Board) WithBlocks(ctx context.Context, t muster.Task) (muster.Task, error) {
	err := b.tasks.ViewFresh(ctx, func() { t.Blocks = b.graph.blocks(t.ID) })
	return t, err
}

// List returns all tasks by id, with BlockedBy and Blocks as the graph has them now. A task that cannot be read is
// left out, reported once by an event, and listed by Corrupt.
func (b *Board) List(ctx context.Context) ([]muster.Task, error) {
	return b.list(ctx, b.graph.ids)
}

// Ready returns the tasks that a member of the role may claim now: the higher priority first, then the lower id.
func (b *Board) Ready(ctx context.Context, role string) ([]muster.Task, error) {
	return b.list(ctx, func() []muster.TaskID { return b.graph.readyFor(role) })
}

// Claimed returns the tasks that somebody works on or that are landing, by id.
func (b *Board) Claimed(ctx context.Context) ([]muster.Task, error) {
	return b.list(ctx, func() []muster.TaskID { return slices.Sorted(maps.Keys(b.graph.claimed)) })
}

// list returns the tasks with the ids that which returns. It calls which after a refresh, under the lock of the graph.
func (b *Board) list(ctx context.Context, which func() []muster.TaskID) (out []muster.Task, err error) {
	err = b.tasks.ViewFresh(ctx, func() {
		ids := which()
		out = make([]muster.Task, 0, len(ids))
		for _, id := range ids {
			out = append(out, b.graph.view(id))
		}
	})
	return out, err
}

// Unreadable is a task whose document cannot be read.
type Unreadable struct {
	ID  muster.TaskID
	Why string
}

// Corrupt returns the tasks that could not be read when the board was last looked at, by id.
func (b *Board) Corrupt() []Unreadable {
	var out []Unreadable
	for _, u := range b.tasks.Unreadable() {
		id, _ := idOf(u.Key)
		out = append(out, Unreadable{id, u.Err.Error()})
	}
	slices.SortFunc(out, func(a, b Unreadable) int { return int(a.ID - b.ID) })
	return out
}

// Watch receives after the board may have changed, until ctx ends.
func (b *Board) Watch(ctx context.Context) <-chan struct{} { return b.tasks.Watch(ctx) }

// key returns the key of a task's document.
func key(id muster.TaskID) string { return strconv.Itoa(int(id)) }

// idOf returns the task that a key names. It returns false for other keys, such as that of the meta document, and for a
// number that key would write in another way.
func idOf(key string) (muster.TaskID, bool) {
	n, err := strconv.Atoi(key)
	return muster.TaskID(n), err == nil && n > 0 && strconv.Itoa(n) == key
}

// now returns the time as the state files have it.
func now() float64 { return muster.UnixTime(time.Now()) }

// read returns a task as it is stored and its revision. A task that another program marked as deleted does not exist.
func (b *Board) read(ctx context.Context, id muster.TaskID) (muster.Task, muster.Rev, error) {
	t, rev, err := b.tasks.Get(ctx, key(id))
	if err == nil && t.Status == deleted {
		return muster.Task{}, rev, errAbsent(id)
	}
	return t, rev, err
}

// errAbsent returns the error for a task that does not exist.
func errAbsent(id muster.TaskID) error {
	return muster.Errorf(muster.NotFound, "there is no task %d", id)
}

// change lets f alter the task and writes it over the revision that was read. It starts again whenever another process
// was faster, so f may run several times and must not keep anything from an earlier run. An error of f ends the change
// without a write. errNoChange means that the task already is as it should be, and is no error of change.
func (b *Board) change(ctx context.Context, id muster.TaskID, f func(t *muster.Task) error) (muster.Task, error) {
	return b.tasks.Update(ctx, key(id), func(t *muster.Task) error {
		if t.Status == deleted {
			return errAbsent(id)
		}
		return f(t)
	})
}

// refresh brings the graph up to date.
func (b *Board) refresh(ctx context.Context) error { return b.tasks.Refresh(ctx) }
