package board

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/state"
	"muster/internal/text"
	"muster/journal"
)

// errNoChange ends a change of a task, or of meta, that has nothing to write.
var errNoChange = state.ErrNoChange

// records are the tasks as they are stored, the graph that is derived from them, and the logs of what
// happens to them. All other types of the package work on them.
type records struct {
	tasks   *state.Collection[muster.Task]
	graph   *graph // guarded by the lock of tasks: see Collection.View
	log     muster.Log
	journal *journal.Journal
}

// key returns the key of a task's document.
func key(id muster.TaskID) string { return strconv.Itoa(int(id)) }

// idOf returns the task that a key names. It returns false for other keys, such as that of the meta
// document, and for a number that key would write in another way.
func idOf(key string) (muster.TaskID, bool) {
	n, err := strconv.Atoi(key)
	return muster.TaskID(n), err == nil && n > 0 && strconv.Itoa(n) == key
}

// now returns the time in Unix seconds, as the state files have it.
func now() float64 { return muster.UnixTime(time.Now()) }

// read returns a task as it is stored and its revision. A task that another program marked as deleted does
// not exist.
func (r *records) read(ctx context.Context, id muster.TaskID) (muster.Task, muster.Rev, error) {
	t, rev, err := r.tasks.Get(ctx, key(id))
	if err == nil && t.Status == deleted {
		return muster.Task{}, rev, errAbsent(id)
	}
	return t, rev, err
}

// errAbsent returns the error for a task that does not exist.
func errAbsent(id muster.TaskID) error {
	return muster.Errorf(muster.NotFound, "there is no task %d", id)
}

// change lets f alter the task and writes it over the revision that was read. It starts again whenever
// another process was faster, so f may run several times and must not keep anything from an earlier run. An
// error of f ends the change without a write. errNoChange means that the task already is as it should be,
// and is no error of change.
func (r *records) change(ctx context.Context, id muster.TaskID, f func(t *muster.Task) error) (muster.Task, error) {
	return r.tasks.Update(ctx, key(id), func(t *muster.Task) error {
		if t.Status == deleted {
			return errAbsent(id)
		}
		return f(t)
	})
}

// step is change for a step that has consequences: it also returns the task as it was before, and whether f
// has changed it. changed is false after errNoChange, when an earlier process has taken the same step.
func (r *records) step(
	ctx context.Context, id muster.TaskID, f func(t *muster.Task) error,
) (t, was muster.Task, changed bool, err error) {
	t, err = r.change(ctx, id, func(t *muster.Task) error {
		was = *t
		err := f(t)
		changed = err == nil
		return err
	})
	return t, was, changed && err == nil, err
}

// list returns the tasks with the ids that which returns. It calls which after a refresh, under the lock of
// the graph, so that the ids and the tasks are of one moment.
func (r *records) list(ctx context.Context, which func() []muster.TaskID) (out []muster.Task, err error) {
	err = r.tasks.ViewFresh(ctx, func() {
		ids := which()
		out = make([]muster.Task, 0, len(ids))
		for _, id := range ids {
			out = append(out, r.graph.view(id))
		}
	})
	return out, err
}

// dependants returns the tasks that wait for the task, by the graph after a refresh.
func (r *records) dependants(ctx context.Context, id muster.TaskID) (ids []muster.TaskID, err error) {
	err = r.tasks.ViewFresh(ctx, func() { ids = slices.Clone(r.graph.dependants[id]) })
	return ids, err
}

// emit writes events to the journal after a step that is already durable. It goes on when the caller's
// context has ended, and only an engine that cannot be reached is an error: nothing undoes the step.
func (r *records) emit(ctx context.Context, events ...muster.Event) (down error) {
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	for _, e := range events {
		if err := r.journal.Emit(ctx, e); errors.Is(err, muster.ErrUnavailable) {
			down = err
		}
	}
	return down
}

// claimLine is a record of the stream of claims, which other programs read.
type claimLine struct {
	Event  string        `json:"event"`
	Task   muster.TaskID `json:"task_id"`
	Owner  muster.Name   `json:"owner"`
	Role   string        `json:"role"`
	Source string        `json:"source"`
	TS     float64       `json:"ts"`
}

// emitClaim is emit for the events of a step that began or ended a claim of t. It also writes the line about the
// claim, whose task and time it fills in.
func (r *records) emitClaim(ctx context.Context, t muster.Task, line claimLine, events ...muster.Event) error {
	down := r.emit(ctx, events...)
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	line.Task, line.TS = t.ID, t.UpdatedAt
	data, err := muster.MarshalLine(line)
	if err == nil { // always so: a flat struct of words and numbers can be encoded
		_, err = r.log.Append(ctx, muster.StreamClaims, muster.Anywhere, data)
	}
	return cmp.Or(down, onlyUnavailable(err))
}

// event returns an event about t, at the time of its last change. who is the member that the event is
// about.
func event(kind string, t muster.Task, who muster.Name, fields map[string]any) muster.Event {
	return muster.Event{Kind: kind, At: t.UpdatedAt, Member: who, Task: t.ID, Fields: fields}
}

// attentionEvent returns the event of a task that was given up.
func attentionEvent(t muster.Task, who muster.Name) muster.Event {
	return event(journal.TaskAttention, t, who, map[string]any{"reason": t.Result})
}

// ignoreVanished returns err unless it says that the task was deleted or became corrupt meanwhile: the next
// refresh shows that.
func ignoreVanished(err error) error {
	if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
		return nil
	}
	return err
}

// onlyUnavailable returns err if it says that the engine cannot be reached: nothing less is reported of
// what follows a step that is already durable.
func onlyUnavailable(err error) error {
	if errors.Is(err, muster.ErrUnavailable) {
		return err
	}
	return nil
}

// decodeTask reads a task's document. The key is the task's id, whatever the document says. Blocks is left
// out: it is derived, and an earlier version may have stored it. So is what another program calls landed: a
// landing says who completed the task.
func decodeTask(key string, data []byte) (muster.Task, error) {
	id, _ := idOf(key)
	if line := text.BadLine(data); line > 0 {
		return muster.Task{}, muster.Errorf(muster.Corrupt, "task %d cannot be read: line %d is not UTF-8", id, line)
	}
	var t muster.Task
	if err := t.UnmarshalJSON(data); err != nil { // json.Unmarshal would first check the whole of data once more
		return muster.Task{}, muster.Errorf(muster.Corrupt, "task %d cannot be read: %w", id, err)
	}
	if t.ID, t.Blocks = id, nil; t.CompletedBy == "" {
		t.Landed = nil
	}
	return t, nil
}

// encodeTask writes a task's document.
func encodeTask(_ string, t muster.Task) ([]byte, error) {
	data, err := muster.Encode(muster.StoredTask(t))
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "task %d cannot be written: %w", t.ID, err)
	}
	return data, nil
}
