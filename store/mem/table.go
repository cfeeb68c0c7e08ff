package mem

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strconv"

	"muster"
)

// table is one table; its state's lock guards it.
type table struct {
	st    *state
	name  string
	docs  map[string]entry // deleted ones too, so that Changes can tell
	order []marked         // each change of docs, by mark; one that a later change overtook stays in it for a while
	seq   muster.Mark
	hints hints
}

// entry is a document with the place of its last change. A nil data: deleted.
type entry struct {
	data []byte
	at   muster.Mark
}

// marked is a change of a document.
type marked struct {
	key string
	at  muster.Mark
}

// rev returns the revision: the mark of the last change, or None for a deleted document.
func (e entry) rev() muster.Rev {
	if e.data == nil {
		return muster.None
	}
	return muster.Rev(strconv.FormatUint(uint64(e.at), 10))
}

// Get returns the document.
func (t *table) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.check(ctx, key); err != nil {
		return muster.Doc{}, err
	}
	t.st.mu.Lock()
	defer t.st.mu.Unlock()
	e := t.docs[key]
	if e.data == nil {
		return muster.Doc{}, muster.Errorf(muster.NotFound, "there is no %q in %s", key, t.name)
	}
	return muster.Doc{Key: key, Rev: e.rev(), Data: bytes.Clone(e.data)}, nil
}

// Put writes the document if it is still at rev at.
func (t *table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := t.check(ctx, key); err != nil {
		return muster.None, err
	}
	if !json.Valid(data) {
		return muster.None, muster.Errorf(muster.Invalid, "the document %q for %s is not JSON", key, t.name)
	}
	return t.change(key, append([]byte{}, data...), at)
}

// Delete removes the document if it is still at rev at.
func (t *table) Delete(ctx context.Context, key string, at muster.Rev) error {
	if err := t.check(ctx, key); err != nil {
		return err
	}
	_, err := t.change(key, nil, at)
	return err
}

// change stores data, or deletes the document if data is nil, if it is still at revision at. The comparison and the
// change happen under one lock, which is what makes it atomic.
func (t *table) change(key string, data []byte, at muster.Rev) (muster.Rev, error) {
	t.st.mu.Lock()
	defer t.st.mu.Unlock()
	e := t.docs[key]
	if e.rev() != at {
		return muster.None, muster.Errorf(muster.Stale, "%q in %s has changed meanwhile", key, t.name)
	}
	if e.data == nil && data == nil {
		return muster.None, nil
	}
	t.seq++
	e = entry{data: data, at: t.seq}
	t.docs[key] = e
	t.order = append(t.order, marked{key, t.seq})
	if len(t.order) > 2*len(t.docs)+64 {
		t.order = slices.DeleteFunc(t.order, t.overtaken)
	}
	t.hints.tell()
	return e.rev(), nil
}

// Changes yields each document that changed after since, as they are when the sequence is started.
func (t *table) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		for _, c := range t.changed(since) {
			if err := ctx.Err(); err != nil {
				yield(muster.Change{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// changed returns what changed after a mark, in the order of the marks.
func (t *table) changed(since muster.Mark) []muster.Change {
	t.st.mu.Lock()
	defer t.st.mu.Unlock()
	var out []muster.Change
	from, found := slices.BinarySearchFunc(t.order, since,
		func(x marked, m muster.Mark) int { return cmp.Compare(x.at, m) })
	if found {
		from++
	}
	for _, x := range t.order[from:] {
		if e := t.docs[x.key]; !t.overtaken(x) && (e.data != nil || since > 0) {
			doc := muster.Doc{Key: x.key, Rev: e.rev(), Data: bytes.Clone(e.data)}
			out = append(out, muster.Change{Doc: doc, Mark: e.at})
		}
	}
	return out
}

// overtaken reports whether the document has changed again since.
func (t *table) overtaken(x marked) bool { return t.docs[x.key].at != x.at }

// Watch receives after changes until ctx ends.
func (t *table) Watch(ctx context.Context) <-chan struct{} {
	t.st.mu.Lock()
	if t.hints == nil {
		t.hints = hints{}
	}
	h := t.hints
	t.st.mu.Unlock()
	return h.watch(ctx, &t.st.mu)
}

// check fails if the context has ended or the key cannot be a document's.
func (t *table) check(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return checkName("the key of a document", key)
}
