package worktree

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"muster"
	"muster/internal/corruption"
)

// rebuild replaces an index that cannot be read: its bytes are kept under .team/damaged, the rows before the damage
// stay, and the other lanes are found again. It returns nil when the caller may read again, also when another process
// was faster.
func (x *index) rebuild(ctx context.Context, was *damage) error {
	found, err := x.registry.missing(ctx, newDocument()) // before the lock: no git runs under it
	if err != nil {
		return err
	}
	unlock, err := x.files.Lock(ctx, x.lockPath())
	if err != nil {
		return err
	}
	defer unlock()
	// Another process may have rebuilt the index before the lock was ours. Only the bytes that the caller saw go.
	doc, err := x.load(ctx)
	if err != nil || doc.damage == nil || !bytes.Equal(doc.damage.data, was.data) {
		return err
	}
	// Salvaged rows win over found ones: they have the base, the keeping and the occupant, which git does not know.
	if err := doc.putMissing(found); err != nil {
		return err
	}
	sum := sha256.Sum256(was.data)
	rev := hex.EncodeToString(sum[:16])
	kept := filepath.Join(x.dir.Team(), corruption.Table, "index.json."+rev[:8])
	if err := x.files.Create(kept, was.data); err != nil && !errors.Is(err, muster.ErrStale) {
		return err // Stale: the same bytes are kept there already
	}
	// The damage is told before the index is replaced: afterwards nobody could see it any more.
	if err := x.corrupt.Tell(ctx, corruption.Record{
		Table: corruption.Lanes, Key: "index", Rev: muster.Rev(rev), Text: was.err.Error(),
		Done: fmt.Sprintf("it is kept as %s/%s, and its %d lanes were found again from git",
			corruption.Table, filepath.Base(kept), len(doc.rows)),
	}); err != nil {
		return err
	}
	return x.write(doc)
}

// salvage returns the part of an index before its damage.
func salvage(data []byte) *document {
	doc := newDocument()
	d := json.NewDecoder(bytes.NewReader(data))
	eachKey(d, func(key string) bool {
		if key == "worktrees" {
			return eachKey(d, func(name string) bool { return takeValue(d, doc.rows, name) })
		}
		return takeValue(d, doc.top, key)
	})
	return doc
}

// eachKey calls f at each key of the object that comes next. It returns false when the object is damaged, or when f
// does.
func eachKey(d *json.Decoder, f func(key string) bool) bool {
	// The decoder works token by token, so that everything before the damage can be taken.
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return false
	}
	for d.More() {
		key, err := d.Token()
		name, ok := key.(string)
		if err != nil || !ok || !f(name) {
			return false
		}
	}
	_, err := d.Token()
	return err == nil
}

// takeValue puts the value that comes next into the map, if it is complete.
func takeValue(d *json.Decoder, into map[string]json.RawMessage, key string) bool {
	var raw json.RawMessage
	if d.Decode(&raw) != nil {
		return false
	}
	into[key] = raw
	return true
}
