package file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/durable"
	"muster/internal/text"
)

// table is the documents of one directory.
type table struct {
	s    *Store
	name string
	dir  string
	// limit is how large a document may be.
	limit int64
	// errInvalid says why the name is no table's.
	errInvalid error
	cache      cache
}

// reserved are the directories in .team that are not tables.
var reserved = []string{"inbox", "locks", "outputs", "scratch", "archive", "cache"}

// isNumber reports whether a key is the number of a task as we write it.
func isNumber(key string) bool {
	return key != "" && len(key) <= 18 && key[0] != '0' && strings.Trim(key, "0123456789") == ""
}

// maxDocument is how large a document may be, in bytes, but for those that have an entry for each of many things: all
// documents of a table are in memory at once.
const maxDocument = 2 << 20

// newTable returns a table with the directory that the formats give it. Any name is accepted; that of no table makes
// every later call fail.
func newTable(s *Store, name string) *table {
	t := &table{s: s, name: name, dir: filepath.Join(s.dir.Team(), name), limit: maxDocument}
	t.cache.t, t.cache.named = t, map[string]bool{}
	switch name {
	case muster.TableTasks:
		t.dir = s.dir.Tasks()
	case muster.TableTeam:
		t.dir, t.limit = s.dir.Team(), durable.MaxFile
	case "damaged": // what was replaced, with all of its bytes written as text
		t.limit = durable.MaxFile
	default:
		t.errInvalid = checkName("the name of a table", name)
		if slices.Contains(reserved, name) {
			t.errInvalid = muster.Errorf(muster.Invalid, "%q cannot be the name of a table: .team/%s has another use",
				name, name)
		}
	}
	return t
}

// taskPrefix begins the file names of tasks.
const taskPrefix = "task_"

// file returns the name of a document's file. Only the board has a prefix, because its documents lie beside other
// files.
func (t *table) file(key string) string {
	if t.name == muster.TableTasks && key != "meta" {
		key = taskPrefix + key
	}
	return key + ".json"
}

// key returns the key of the document that a file has. It returns false if the file is no document's.
func (t *table) key(file string) (string, bool) {
	key := strings.TrimSuffix(file, ".json")
	if t.name == muster.TableTasks {
		key = strings.TrimPrefix(key, taskPrefix)
	}
	return key, t.file(key) == file && t.check(key) == nil
}

// check reports why key cannot be a key of this table.
func (t *table) check(key string) error {
	switch {
	case t.errInvalid != nil:
		return t.errInvalid
	case t.name == muster.TableTasks && key != "meta" && !isNumber(key):
		return muster.Errorf(muster.Invalid, "%q is no task's number", key)
	case t.name == muster.TableTeam && key != "run" && key != "config":
		return muster.Errorf(muster.Invalid, "%q is no document of the team: there are run and config", key)
	}
	return checkName("the key of a document", key)
}

// path returns the file of a document.
func (t *table) path(key string) string { return t.dir + string(filepath.Separator) + t.file(key) }

// Get returns the document. With the error Corrupt it also returns the content, so that a person can be shown it.
func (t *table) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.checkArguments(ctx, key); err != nil {
		return muster.Doc{}, err
	}
	now := t.read(ctx, key)
	switch {
	case now.err != nil:
		return muster.Doc{}, now.err
	case now.rev == muster.None:
		return muster.Doc{}, muster.Errorf(muster.NotFound, "there is no %q in %s", key, t.name)
	}
	// The next Changes reads it too, although the watcher may not have named it yet: who has been told of a change, and
	// has seen it here, must find it in the listing.
	t.cache.noteFile(t.file(key))
	return muster.Doc{Key: key, Rev: now.rev, Data: now.data}, now.bad
}

// Put writes the document if it is still at revision at.
func (t *table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := t.checkArguments(ctx, key); err != nil {
		return muster.None, err
	}
	if !json.Valid(data) || !utf8.Valid(data) {
		return muster.None, muster.Errorf(muster.Invalid, "the document %q for %s is not JSON", key, t.name)
	}
	if int64(len(data)) > t.limit { // it could not be read again
		return muster.None, muster.Errorf(muster.Invalid, "the document %q for %s has %d bytes: it may have %d", key,
			t.name, len(data), t.limit)
	}
	unlock, err := t.lock(ctx, key)
	if err != nil {
		return muster.None, err
	}
	defer unlock()
	if err := t.compare(key, at); err != nil {
		return muster.None, err
	}
	return t.write(key, data, at)
}

// write gives a document that is at revision at a new content. The caller holds the document's lock. The slow part,
// writing and syncing, comes before the comparison. What remains between that and the rename is the shortest possible
// time in which a change of a program without our lock can be overwritten unseen.
func (t *table) write(key string, data []byte, at muster.Rev) (muster.Rev, error) {
	staged, err := t.s.files.Stage(t.path(key), data)
	if err != nil {
		return muster.None, err
	}
	rev := revOf(data)
	if err = t.compare(key, at); err == nil {
		err = t.s.keeper.announce(t.document(key), data)
	}
	if err != nil {
		staged.Discard()
		return muster.None, err
	}
	if at == muster.None {
		err = staged.Create()
	} else {
		err = staged.Replace()
	}
	if errors.Is(err, muster.ErrStale) {
		err = t.errStale(key)
	}
	if err == nil {
		t.s.keeper.wrote(t.document(key), data)
	}
	// Also after an error the document may have changed: the rename may be done and its sync have failed. So the
	// watchers look in any case.
	t.notifyChange(key)
	if err != nil {
		return muster.None, err
	}
	return rev, nil
}

// Delete removes the document if it is still at revision at.
func (t *table) Delete(ctx context.Context, key string, at muster.Rev) error {
	if err := t.checkArguments(ctx, key); err != nil {
		return err
	}
	unlock, err := t.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	if err := t.compare(key, at); err != nil || at == muster.None {
		return err
	}
	if err := t.s.keeper.announce(t.document(key), nil); err != nil {
		return err
	}
	defer t.notifyChange(key)
	if err := t.s.files.Remove(t.path(key)); err != nil {
		return err
	}
	t.s.keeper.wrote(t.document(key), nil)
	return nil
}

// Watch receives after changes until ctx ends.
func (t *table) Watch(ctx context.Context) <-chan struct{} {
	return t.s.watch.subscribe(ctx, t.dir, "", t.cache.noteFile)
}

// notifyChange reports a change of this process to its own watchers.
func (t *table) notifyChange(key string) {
	t.cache.noteFile(t.file(key))
	t.s.watch.notify(t.dir, "")
}

// lock takes one of the table's locks, chosen by the key. Writers of different documents mostly do not wait for each
// other, and the number of lock files does not grow with that of the documents.
func (t *table) lock(ctx context.Context, key string) (func(), error) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key)) // a hash never fails
	locks := t.s.dir.TableLocks(t.name)
	return t.s.lockFile(ctx, locks[h.Sum32()%uint32(len(locks))])
}

// compare fails with Stale if the document is not at revision at, and with Corrupt if what is there must not be
// replaced.
func (t *table) compare(key string, at muster.Rev) error {
	now := t.fetch(key)
	switch {
	case now.err != nil:
		return now.err
	case now.rev != at:
		return t.errStale(key)
	case now.bad != nil: // it cannot be opened, so what it has is not known, and is not thrown away
		return now.bad
	}
	return nil
}

// checkArguments fails if the context has ended or the key cannot be one of this table.
func (t *table) checkArguments(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.check(key)
}

// errStale is the error for a document that is no longer at the expected revision.
func (t *table) errStale(key string) error {
	return muster.Errorf(muster.Stale, "%q in %s has changed meanwhile", key, t.name)
}

// docContent is a document as it was read.
type docContent struct {
	file stamp  // that the file had before it was read
	data []byte // nil: there is no document, or it is closed to us
	rev  muster.Rev
	bad  error // it is corrupt, or belongs to another user or is no regular file
	err  error // nothing of this table can be read
}

// isClosed reports whether there is something that is not known and must not be replaced.
func (d docContent) isClosed() bool { return d.data == nil && d.bad != nil }

// read reads a document and checks that it is JSON. While this process hosts members, a change of another program is
// undone first.
func (t *table) read(ctx context.Context, key string) docContent {
	now := t.readFile(key)
	is, _, err := t.s.keeper.compare(t.document(key), now)
	switch {
	case err != nil:
		return docContent{err: err}
	case is != asKept:
		return t.settle(ctx, key)
	}
	return now
}

// readFile is read of what the file has, whoever wrote it.
func (t *table) readFile(key string) docContent {
	now := t.fetch(key)
	if now.data != nil {
		now.bad = t.checkJSON(key, now.data)
	}
	return now
}

// fetch reads a document without checking it.
func (t *table) fetch(key string) docContent {
	path := t.path(key)
	began := time.Now() // the stamp must have been old before the read, or the file may have changed after it
	data, fi, err := t.s.files.ReadAtMost(path, t.limit)
	switch {
	case err == nil:
		return docContent{file: stampOf(fi).settled(began), data: muster.TrimBOM(data), rev: revOf(data)}
	case errors.Is(err, fs.ErrNotExist):
		return docContent{}
	}
	err = durable.Unreadable(t.s.fs, path, err)
	if !errors.Is(err, muster.ErrCorrupt) {
		return docContent{err: err}
	}
	return docContent{rev: revOf([]byte("closed: " + err.Error())), bad: err}
}

// checkJSON returns what is wrong with the bytes of a document, with the line.
func (t *table) checkJSON(key string, data []byte) error {
	if bad := text.BadLine(data); bad > 0 {
		return muster.Errorf(muster.Corrupt, "%s is not UTF-8 text in line %d", t.path(key), bad)
	}
	if json.Valid(data) {
		return nil
	}
	err := json.Unmarshal(data, new(any))
	end := len(data)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		end = min(end, int(syntax.Offset))
	}
	line := 1 + bytes.Count(data[:end], []byte("\n"))
	return muster.Errorf(muster.Corrupt, "%s is not JSON in line %d (%w)", t.path(key), line, err)
}

// revOf returns the revision of a content. It depends on the content alone, so all processes agree on it without a
// counter on the disk, and an edit by hand changes it.
func revOf(data []byte) muster.Rev {
	sum := sha256.Sum256(data)
	return muster.Rev(hex.EncodeToString(sum[:16]))
}
