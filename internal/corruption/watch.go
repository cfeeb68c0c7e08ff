package corruption

import (
	"context"
	"maps"
	"slices"
	"sync"

	"muster"
)

// Watch remembers which documents of one table cannot be read, for a reader that follows the table's changes. The
// reader guards it by its own lock, but for Say.
type Watch struct {
	Name  string // of the table
	Table muster.Table

	doubtful map[string]bool   // to be read once more before they count as damaged
	mu       sync.Mutex        // guards bad
	bad      map[string]Record // by key
}

// Saw is told of each change: whether the document can be read.
func (w *Watch) Saw(key string, readable bool) {
	if readable {
		delete(w.doubtful, key)
		w.mu.Lock()
		delete(w.bad, key)
		w.mu.Unlock()
		return
	}
	if w.doubtful == nil {
		w.doubtful = map[string]bool{}
	}
	w.doubtful[key] = true
}

// Again reads what could not be read once more. take gets what can be read now, or is gone (Rev None), and reports
// whether it is.
func (w *Watch) Again(ctx context.Context, take func(muster.Doc) error) error {
	return Again(ctx, w.Table, slices.Sorted(maps.Keys(w.doubtful)), func(doc muster.Doc, err error) {
		delete(w.doubtful, doc.Key)
		if err == nil {
			err = take(doc)
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		if err == nil {
			delete(w.bad, doc.Key)
			return
		}
		if w.bad == nil {
			w.bad = map[string]Record{}
		}
		w.bad[doc.Key] = Record{Table: w.Name, Key: doc.Key, Rev: doc.Rev, Text: err.Error()}
	})
}

// Bad are the keys of the documents that cannot be read, after a second look.
func (w *Watch) Bad() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Sorted(maps.Keys(w.bad))
}

// Say tells what cannot be read. It costs nothing while there is nothing.
func (w *Watch) Say(ctx context.Context, t *Teller) error {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.bad))
	w.mu.Unlock()
	return t.Tell(ctx, all...)
}
