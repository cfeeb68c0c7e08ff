package board

import (
	"context"
	"errors"
	"fmt"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/internal/corruption"
)

// rebuild replaces a meta document that cannot be read. The old content is kept in another table, and the
// next id is found from the tasks and the events, so that no id is given away twice. Edges that were half
// added are lost; they were not acknowledged. The error is nil when the caller may read meta again.
func (f *metaFile) rebuild(ctx context.Context, bad muster.Rev) error {
	// A program that takes no lock may be in the middle of writing it.
	if err := clock.Sleep(ctx, corruption.HalfWritten); err != nil {
		return err
	}
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
			next = max(next, e.Task+1)
		} else if !errors.Is(err, muster.ErrCorrupt) {
			return 0, err
		}
	}
	return next, nil
}
