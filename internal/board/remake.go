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

// remakeMeta replaces a meta document that cannot be read: what it was is kept, and the next id is found from the tasks
// and the events, so that no id is given away twice. Edges that were half added are lost; they were not acknowledged.
// Nil when the caller may read again.
func (b *Board) remakeMeta(ctx context.Context, bad muster.Rev) error {
	if err := pause(ctx, halfWritten); err != nil { // a program without our lock may be in the middle of writing
		return err
	}
	was, doc, why := b.parseMeta(ctx)
	if !errors.Is(why, muster.ErrCorrupt) || doc.Rev != bad {
		return nil
	}
	next, err := b.unused(ctx)
	if err != nil {
		return err
	}
	kept, err := corruption.Keep(ctx, b.kept, muster.TableTasks, doc, why)
	if err != nil {
		return err
	}
	// The count of edges goes on above every one that there was: no content of the document may come twice.
	m := meta{NextID: max(next, was.NextID), Edges: int(time.Now().UnixMilli()), rev: doc.Rev, all: was.all}
	if m.all == nil {
		m.all = map[string]json.RawMessage{}
	}
	delete(m.all, "adding")
	// Told first: when it has been replaced nobody sees any more that it was damaged.
	if err := b.teller.Tell(ctx, corruption.Record{Table: muster.TableTasks, Key: metaKey, Rev: doc.Rev, Text: why.Error(),
		Done: fmt.Sprintf("it is kept as %s/%s and written anew: the next task is %d", corruption.Table, kept, m.NextID)}); err != nil {
		return err
	}
	if err := b.putMeta(ctx, m); !errors.Is(err, muster.ErrStale) {
		return err
	}
	return nil
}

// unused is the id above every one that a task or an event has.
func (b *Board) unused(ctx context.Context) (muster.TaskID, error) {
	if err := b.refresh(ctx); err != nil {
		return 0, err
	}
	b.mu.Lock()
	next := b.ix.highest + 1
	b.mu.Unlock()
	for e, err := range b.journal.Read(ctx, 0) {
		if err == nil {
			next = max(next, e.Task+1)
		} else if !errors.Is(err, muster.ErrCorrupt) {
			return 0, err
		}
	}
	return next, nil
}
