package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/corruption"
)

// metaKey is the document beside the tasks that concerns all of them. It is the only document of the board
// that several steps of different tasks write, so it is kept to what cannot be decided in a task's own
// document.
const metaKey = "meta"

// meta is the content of the document metaKey. Fields that it does not know survive a rewrite.
type meta struct {
	// NextID is above every task that was deleted. A new task gets NextID, or the highest id on the board
	// plus one if that is larger, so no id is given twice.
	NextID muster.TaskID `json:"next_id"`
	// Edges counts the additions of edges. It makes every content of the document different from all
	// before, so that a revision, which is a hash of the content, never comes back.
	Edges int `json:"edges"`
	// Adding are edges that are announced: they count, but their task may not have them yet. Whoever adds
	// edges to a task that exists announces them here first, at the revision at which it checked the graph
	// for cycles. Of two processes whose edges would close a cycle together, the second finds another
	// revision and checks again.
	Adding []adding `json:"adding"`

	all map[string]json.RawMessage // the whole document as it was read
	rev muster.Rev                 // at which it was read
}

// adding is one announced addition of edges: the task ID is to wait for the tasks On. N numbers it.
type adding struct {
	N  int             `json:"n"`
	ID muster.TaskID   `json:"id"`
	On []muster.TaskID `json:"on"`
}

// maxID is the largest id after which a new task is numbered. A larger one is another program's: counted from there,
// one file could leave no number for any other task.
const maxID = 1_000_000_000_000

// NextID returns the id after id, or next if that is larger.
func NextID(next, id muster.TaskID) muster.TaskID {
	if id >= maxID {
		return next
	}
	return max(next, id+1)
}

// metaFile reads and writes the meta document.
type metaFile struct {
	*records
	table    muster.Table
	replaced muster.Table // keeps what was corrupt and has been replaced
	teller   *corruption.Teller
}

// read returns the meta document as it is now. It rebuilds one that cannot be read.
func (f *metaFile) read(ctx context.Context) (meta, error) {
	for {
		m, doc, err := f.parse(ctx)
		if !errors.Is(err, muster.ErrCorrupt) {
			return m, err
		}
		if err := f.rebuild(ctx, doc.Rev); err != nil {
			return m, err
		}
	}
}

// parse reads the meta document once. A board without one has the zero meta. Of a corrupt document it
// returns what can be read.
func (f *metaFile) parse(ctx context.Context) (m meta, doc muster.Doc, err error) {
	doc, err = f.table.Get(ctx, metaKey)
	if errors.Is(err, muster.ErrNotFound) {
		return m, doc, nil
	}
	if err != nil {
		return m, doc, err
	}
	if err = json.Unmarshal(doc.Data, &m.all); err == nil {
		err = json.Unmarshal(doc.Data, &m)
	}
	if err == nil && m.NextID > maxID {
		m.NextID, err = 0, errors.New("no task is left after so large a number")
	}
	if m.rev = doc.Rev; err != nil {
		err = muster.Errorf(muster.Corrupt, "the board's meta document (meta.json) cannot be read: %w", err)
	}
	return m, doc, err
}

// put writes m over the revision that it was read at. The error is Stale when another process was faster.
func (f *metaFile) put(ctx context.Context, m meta) error {
	fields := map[string]any{}
	for k, v := range m.all {
		fields[k] = v
	}
	fields["next_id"], fields["edges"], fields["adding"] = m.NextID, m.Edges, m.Adding
	if len(m.Adding) == 0 {
		delete(fields, "adding")
	}
	data, err := muster.Encode(fields)
	if err == nil { // always so: what it has was decoded from JSON, or is numbers
		_, err = f.table.Put(ctx, metaKey, data, m.rev)
	}
	return err
}

// raiseNextID makes NextID larger than id, so that no new task gets id. It comes before the task is
// deleted: a crash between the two then leaves a task, but never an id that is free again.
func (f *metaFile) raiseNextID(ctx context.Context, id muster.TaskID) error {
	return f.change(ctx, func(m *meta) error {
		next := NextID(m.NextID, id)
		if next == m.NextID {
			return errNoChange
		}
		m.NextID = next
		return nil
	})
}

// change lets alter change the meta document and writes it. It starts again whenever another process was
// faster or alter returns Stale. When alter returns errNoChange nothing is written.
func (f *metaFile) change(ctx context.Context, alter func(*meta) error) error {
	for {
		m, err := f.read(ctx)
		if err != nil {
			return err
		}
		if err = alter(&m); errors.Is(err, errNoChange) {
			return nil
		} else if err == nil {
			err = f.put(ctx, m)
		}
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
	}
}

// rebuild replaces a meta document that cannot be read. The old content is kept in another table, and the
// next id is found from the tasks and the events, so that no id is given away twice. Edges that were half
// added are lost; they were not acknowledged. The error is nil when the caller may read meta again.
func (f *metaFile) rebuild(ctx context.Context, bad muster.Rev) error {
	was, doc, why := f.parse(ctx)
	if !errors.Is(why, muster.ErrCorrupt) || doc.Rev != bad {
		return nil
	}
	next, err := f.unusedID(ctx)
	if err != nil {
		return err
	}
	kept, err := corruption.Keep(ctx, f.replaced, muster.TableTasks, doc, why)
	if err != nil {
		return err
	}
	// The count of edges goes on above every one that there was: no content of the document may come twice.
	m := meta{NextID: max(next, was.NextID), Edges: int(time.Now().UnixMilli()), rev: doc.Rev, all: was.all}
	// It is reported first: once it has been replaced nobody can see that it was corrupt.
	done := fmt.Sprintf("it is kept as %s/%s and written anew: the next task is %d", corruption.Table, kept, m.NextID)
	record := corruption.Record{Table: muster.TableTasks, Key: metaKey, Rev: doc.Rev, Text: why.Error(), Done: done}
	if err := f.teller.Tell(ctx, record); err != nil {
		return err
	}
	if err := f.put(ctx, m); !errors.Is(err, muster.ErrStale) {
		return err
	}
	return nil
}

// unusedID returns the id above every one that a task or an event has. The events know of tasks that were
// deleted, as long as their part of the journal is kept.
func (f *metaFile) unusedID(ctx context.Context) (muster.TaskID, error) {
	next := muster.TaskID(0)
	if err := f.tasks.ViewFresh(ctx, func() { next = f.graph.highest + 1 }); err != nil {
		return 0, err
	}
	for e, err := range f.journal.Read(ctx, 0) {
		if err == nil {
			next = NextID(next, e.Task)
		} else if !errors.Is(err, muster.ErrCorrupt) {
			return 0, err
		}
	}
	return next, nil
}
