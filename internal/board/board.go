// Package board keeps the tasks of a team: their graph, who has claimed which, and what follows when one is
// done.
//
// Its type is Board. Read the files in this order: board.go and records.go (the documents and the events),
// status.go (what may become of one task, as pure functions), claim.go (the steps that owners take),
// create.go, patch.go, delete.go, edges.go and meta.go (new dependencies, and the document that announces
// them), effects.go (what follows from a step), settle.go (what was left undone), and graph.go (what is
// derived from the tasks in memory).
//
// Every step changes one document by compare-and-set. What must follow in other documents is named in the
// same write (muster.Effect) and done after it, any number of times, by any process that finds it. Events
// are written after the step; a failure to write one never undoes it.
//
// The stored document decides what a step may do. The graph in memory is derived from it, may be behind
// what other processes have just written, and only says where to look.
//
// How a lane is made and how work lands belongs to the packages worktree and landing, and who is woken for
// a task to the package teammate. They use the board and are known to it only as the handlers of OnEffect
// and OnRevoke.
package board

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"muster"
	"muster/internal/corruption"
	"muster/internal/state"
	"muster/journal"
)

// Board is the tasks of a team. Several values, in several processes, may work on one state. A Board is
// safe for concurrent use. It holds no lock over a step: of several callers that want the same task, the
// first write decides.
type Board struct {
	*records
	meta    *metaFile
	edges   *edges
	effects *effects

	// settling is held by the one Settle that runs in this process. It guards hasSettled: one has looked at all tasks.
	settling   chan struct{}
	hasSettled bool
	// revoke is what OnRevoke set; nil when nobody here can revoke a landing.
	revoke atomic.Pointer[func(context.Context, muster.Task) error]
}

// New returns the board in s. Its events go to j.
func New(s muster.Store, j *journal.Journal) *Board {
	table, teller := s.Table(muster.TableTasks), corruption.New(s.Log(), s.Inbox(), j)
	r := &records{graph: newGraph(), log: s.Log(), journal: j}
	r.tasks = state.New(state.Options[muster.Task]{
		Table: table, Name: muster.TableTasks, Decode: decodeTask, Encode: encodeTask,
		IsKey:    func(key string) bool { _, is := idOf(key); return is },
		NotFound: func(key string) error { id, _ := idOf(key); return errAbsent(id) },
		OnChange: r.graph.onChange, Reporter: teller,
	})
	meta := &metaFile{records: r, table: table, replaced: s.Table(corruption.Table), teller: teller}
	b := &Board{
		records: r, meta: meta, edges: &edges{r, meta}, settling: make(chan struct{}, 1),
		effects: &effects{records: r},
	}
	b.OnEffect(muster.EffectUnblock, b.effects.unblock)
	return b
}

// Get returns the task as it is stored, without Blocks. The error is NotFound, Corrupt or Unavailable.
func (b *Board) Get(ctx context.Context, id muster.TaskID) (muster.Task, error) {
	t, _, err := b.read(ctx, id)
	return t, err
}

// WithBlocks returns t with Blocks as the graph has them now. It needs the whole board, which Get does not.
func (b *Board) WithBlocks(ctx context.Context, t muster.Task) (_ muster.Task, err error) {
	t.Blocks, err = b.dependants(ctx, t.ID)
	return t, err
}

// List returns all tasks by id, with BlockedBy and Blocks as the graph has them now. A task that cannot be
// read is left out, reported once by an event, and listed by Corrupt.
func (b *Board) List(ctx context.Context) ([]muster.Task, error) {
	return b.list(ctx, b.graph.ids)
}

// Claimed returns the tasks that somebody works on or that are landing, by id.
func (b *Board) Claimed(ctx context.Context) ([]muster.Task, error) {
	return b.list(ctx, func() []muster.TaskID { return slices.Sorted(maps.Keys(b.graph.claimed)) })
}

// Corrupt returns the tasks that could not be read when the board was last looked at, by id.
func (b *Board) Corrupt() []muster.UnreadableTask {
	var out []muster.UnreadableTask
	for _, u := range b.tasks.Unreadable() {
		id, _ := idOf(u.Key)
		out = append(out, muster.UnreadableTask{ID: id, Why: u.Err.Error()})
	}
	slices.SortFunc(out, func(a, b muster.UnreadableTask) int { return int(a.ID - b.ID) })
	return out
}

// Watch receives after the board may have changed, until ctx ends.
func (b *Board) Watch(ctx context.Context) <-chan struct{} { return b.tasks.Watch(ctx) }
