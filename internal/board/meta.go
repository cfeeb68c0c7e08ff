package board

import (
	"context"
	"encoding/json"
	"errors"

	"muster"
)

// metaKey is the document beside the tasks that concerns all of them.
const metaKey = "meta"

// meta is that document. Fields that it does not know survive.
type meta struct {
	// NextID is above every task that was deleted: a new id is the larger of it and the highest plus one.
	NextID muster.TaskID
	// Edges counts the additions of edges, so that no two contents of the document are the same. Whoever adds edges to
	// tasks that exist first puts them here, at the revision at which it saw the graph: two that would close a cycle
	// together cannot both pass.
	Edges int
	// Adding are the edges that count as there, and may not be in their task yet.
	Adding []adding

	all map[string]json.RawMessage
	rev muster.Rev
}

// adding is new edges of one task.
type adding struct {
	N  int             `json:"n"`
	ID muster.TaskID   `json:"id"`
	On []muster.TaskID `json:"on"`
}

// readMeta is meta as it is now. One that cannot be read is rebuilt.
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

// putMeta writes m at the revision it was read at; Stale when somebody else was faster.
func (b *Board) putMeta(ctx context.Context, m meta) error {
	delete(m.all, "adding")
	fields := map[string]any{"next_id": m.NextID, "edges": m.Edges}
	if len(m.Adding) > 0 {
		fields["adding"] = m.Adding
	}
	for k, v := range fields {
		raw, err := muster.Line(v)
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

// raiseNextID sees to it that no new task gets id.
func (b *Board) raiseNextID(ctx context.Context, id muster.TaskID) error {
	return b.changeMeta(ctx, func(m *meta) error {
		if m.NextID > id {
			return errNoChange
		}
		m.NextID = id + 1
		return nil
	})
}

// changeMeta lets f alter meta and puts it, again from the start whenever somebody else was faster, or f says Stale.
func (b *Board) changeMeta(ctx context.Context, f func(*meta) error) error {
	for {
		m, err := b.readMeta(ctx)
		if err != nil {
			return err
		}
		if err = f(&m); err == errNoChange {
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
