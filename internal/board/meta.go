package board

import (
	"context"
	"encoding/json"
	"errors"

	"muster"
)

// metaKey is the document beside the tasks that concerns all of them.
const metaKey = "meta"

// meta is the content of the document metaKey. Fields that it does not know survive a rewrite.
type meta struct {
	// NextID is above every task that was deleted. A new task gets NextID, or the highest id on the board plus one if
	// that is larger, so no id is given twice.
	NextID muster.TaskID
	// Edges counts the additions of edges. It makes every content of the document different from all before, so that a
	// revision, which is a hash of the content, never comes back.
	Edges int
	// Adding are edges that are announced: they count, but their task may not have them yet. Whoever adds edges to a
	// task that exists announces them here first, at the revision at which it checked the graph for cycles. Of two
	// processes whose edges would close a cycle together, the second finds another revision and checks again.
	Adding []adding

	all map[string]json.RawMessage
	rev muster.Rev
}

// adding is one announced addition of edges: the task ID is to wait for the tasks On. N numbers it.
type adding struct {
	N  int             `json:"n"`
	ID muster.TaskID   `json:"id"`
	On []muster.TaskID `json:"on"`
}

// readMeta returns the meta document as it is now. It rebuilds one that cannot be read.
func (b *Board) readMeta(ctx context.Context) (meta, error) {
	for {
		m, doc, err := b.parseMeta(ctx)
		if !errors.Is(err, muster.ErrCorrupt) {
			return m, err
		}
		if err := b.rebuildMeta(ctx, doc.Rev); err != nil {
			return m, err
		}
	}
}

// parseMeta reads the meta document once. A board without one has the zero meta.
func (b *Board) parseMeta(ctx context.Context) (meta, muster.Doc, error) {
	var m meta
	doc, err := b.table.Get(ctx, metaKey)
	if errors.Is(err, muster.ErrNotFound) {
		return meta{all: map[string]json.RawMessage{}}, doc, nil
	}
	if err != nil {
		return m, doc, err
	}
	m.rev = doc.Rev
	err = json.Unmarshal(doc.Data, &m.all)
	for k, v := range map[string]any{"next_id": &m.NextID, "edges": &m.Edges, "adding": &m.Adding} {
		if raw, ok := m.all[k]; ok && err == nil {
			err = json.Unmarshal(raw, v)
		}
	}
	if err != nil {
		return m, doc, muster.Errorf(muster.Corrupt, "the board's meta document (meta.json) cannot be read: %w", err)
	}
	if m.all == nil {
		m.all = map[string]json.RawMessage{}
	}
	return m, doc, nil
}

// putMeta writes m over the revision that it was read at. The error is Stale when another process was faster.
func (b *Board) putMeta(ctx context.Context, m meta) error {
	delete(m.all, "adding")
	fields := map[string]any{"next_id": m.NextID, "edges": m.Edges}
	if len(m.Adding) > 0 {
		fields["adding"] = m.Adding
	}
	for k, v := range fields {
		raw, err := muster.MarshalLine(v)
		if err != nil {
			return muster.Errorf(muster.Invalid, "the board's meta document cannot be written: %w", err)
		}
		m.all[k] = raw
	}
	data, err := muster.Encode(m.all)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the board's meta document cannot be written: %w", err)
	}
	_, err = b.table.Put(ctx, metaKey, data, m.rev)
	return err
}

// raiseNextID makes NextID larger than id, so that no new task gets id. It comes before the task is deleted: a crash
// between the two then leaves a task, but never an id that is free again.
func (b *Board) raiseNextID(ctx context.Context, id muster.TaskID) error {
	return b.changeMeta(ctx, func(m *meta) error {
		if m.NextID > id {
			return errNoChange
		}
		m.NextID = id + 1
		return nil
	})
}

// changeMeta lets f alter the meta document and writes it. It starts again whenever another process was faster or f
// returns Stale. When f returns errNoChange nothing is written.
func (b *Board) changeMeta(ctx context.Context, f func(*meta) error) error {
	for {
		m, err := b.readMeta(ctx)
		if err != nil {
			return err
		}
		if err = f(&m); errors.Is(err, errNoChange) {
			return nil
		} else if err == nil {
			err = b.putMeta(ctx, m)
		}
		if !errors.Is(err, muster.ErrStale) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}
