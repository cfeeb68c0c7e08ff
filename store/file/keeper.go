package file

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"muster"
)

// keeper undoes what other programs change in documents while this process hosts members.
//
// paths.Dir.Kept has muster's version of each document that a host has read or muster has written since the team
// started, in the file TABLE+KEY; it is empty where muster has deleted the document. Before a process of muster changes
// a document, it writes the new content to TABLE+KEY+new, and afterwards it renames that to TABLE+KEY. So a content
// that is in neither file is another program's. A writer there holds the document's lock.
//
// The first process that hosts members makes the directory, or empties it. Nothing there is synced: after a power loss
// no team is at work. If the directory is removed, this process goes by the versions that it has seen there.
type keeper struct {
	s      *Store
	report func(table, file string, found muster.Doc) // what OnOverwrite set; may be nil
	hosts  atomic.Int32                               // leases of hosts that this process holds; 0: it keeps nothing
	seen   sync.Map                                   // muster's versions of documents, as []byte by their names
}

// begin is called before the lease of a host is taken, and unlock after that.
func (k *keeper) begin(ctx context.Context) (unlock func(), err error) {
	unlock, err = k.s.lock(ctx, "kept")
	if err != nil {
		return nil, err
	}
	if err := k.emptyIfFirst(ctx); err != nil {
		unlock()
		return nil, muster.Errorf(muster.Unavailable, "no team can start in %s: %w", k.s.dir, err)
	}
	k.count(1)
	return unlock, nil
}

// emptyIfFirst empties the directory if no process holds the lease of a host: what is there is of an earlier team.
func (k *keeper) emptyIfFirst(ctx context.Context) error {
	names, err := k.s.fs.Names(k.s.dir.Locks())
	if err != nil {
		return err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, muster.HostLeases) {
			continue
		}
		if held, err := k.s.files.Locked(filepath.Join(k.s.dir.Locks(), name)); held || err != nil {
			return err
		}
	}
	dir, tables := k.s.dir.Kept(), k.s.dir.TablesLocks()
	if err := k.s.fs.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
		return err // nil: it is new, and empty
	}
	// No process is between its announcement and its document meanwhile.
	locks, err := k.s.fs.Names(tables)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	slices.Sort(locks)
	for i := range locks {
		locks[i] = filepath.Join(tables, locks[i])
	}
	unlock, err := k.s.files.LockAll(ctx, locks)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := k.s.fs.Names(dir)
	for _, name := range old {
		err = errors.Join(err, k.s.fs.Remove(filepath.Join(dir, name)))
	}
	return err
}

// count adds n to the number of leases. With the first one, all documents are read again.
func (k *keeper) count(n int32) {
	if k.hosts.Add(n) != 1 || n != 1 {
		return
	}
	k.seen.Clear()
	k.s.mu.Lock()
	tables := slices.Collect(maps.Values(k.s.tables))
	k.s.mu.Unlock()
	for _, t := range tables { // without the lock: a look that is under way may need it
		t.cache.forget()
	}
}

// path returns the file that has muster's version of a document.
func (k *keeper) path(doc string) string { return filepath.Join(k.s.dir.Kept(), doc) }

// announce says what a document is about to have; nil: it is about to be deleted. The caller holds the document's lock,
// and calls wrote afterwards.
func (k *keeper) announce(doc string, data []byte) error {
	err := k.s.files.Overwrite(k.path(doc+"+new"), data)
	if errors.Is(err, fs.ErrNotExist) { // there has been no team
		return nil
	}
	return err
}

// wrote says that a document has what was announced. If the rename fails, the next host that reads it does the same.
func (k *keeper) wrote(doc string, data []byte) {
	_ = k.s.fs.Rename(k.path(doc+"+new"), k.path(doc))
	k.seen.Store(doc, bytes.Clone(data))
}

// finding says what a document has, as the keeper sees it.
type finding int

const (
	asKept    finding = iota // muster's version, or nothing that is kept
	announced                // what a process of muster has announced
	isNew                    // of another program, where muster has no version or has deleted the document
	isForeign                // another program's
)

// compare says what a document has, and returns muster's version of it.
func (k *keeper) compare(doc string, now docContent) (is finding, ours []byte, err error) {
	if k.hosts.Load() == 0 || now.err != nil || now.isClosed() {
		return asKept, nil, nil
	}
	ours, _, err = k.s.files.ReadFile(k.path(doc))
	if seen, ok := k.seen.Load(doc); ok && errors.Is(err, fs.ErrNotExist) {
		ours = seen.([]byte)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return asKept, nil, errUnreadable(k.path(doc), err)
	}
	k.seen.Store(doc, ours)
	if bytes.Equal(ours, now.data) {
		return asKept, ours, nil
	}
	said, _, err := k.s.files.ReadFile(k.path(doc + "+new"))
	switch {
	case err == nil && bytes.Equal(said, now.data):
		return announced, ours, nil
	case len(ours) > 0:
		return isForeign, ours, nil
	case now.bad != nil: // half of it perhaps
		return asKept, nil, nil
	}
	return isNew, nil, nil
}

// settle makes a document and muster's version of it the same, and returns what is there then.
func (t *table) settle(ctx context.Context, key string) docContent {
	k, doc := &t.s.keeper, t.document(key)
	unlock, err := t.lock(ctx, key)
	if err != nil {
		return docContent{err: err}
	}
	now := t.readFile(key) // again: a process of muster may have been at it, which held the lock
	is, ours, err := k.compare(doc, now)
	switch {
	case err != nil:
	case is == isForeign:
		err = t.s.files.Replace(t.path(key), ours)
	case is == isNew:
		if err = k.announce(doc, now.data); err == nil {
			k.wrote(doc, now.data)
		}
	case is == announced:
		k.wrote(doc, now.data)
	}
	unlock()
	if err != nil {
		return docContent{err: err}
	}
	if is != isForeign {
		return now
	}
	t.notifyChange(key)
	if k.report != nil {
		file, _ := filepath.Rel(string(t.s.dir), t.path(key)) // it lies below
		k.report(t.name, filepath.ToSlash(file), muster.Doc{Key: key, Rev: now.rev, Data: now.data})
	}
	return docContent{data: ours, rev: revOf(ours)}
}

// document returns the name of a document for the keeper.
func (t *table) document(key string) string { return t.name + "+" + key }
