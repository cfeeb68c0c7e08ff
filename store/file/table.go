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
	"sync"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

const (
	// maxHalfWritten is how long a document that is not JSON is read again before it counts as corrupt, because other
	// programs write in place.
	maxHalfWritten = 50 * time.Millisecond
	// briefWait is the time between two such reads.
	briefWait = 5 * time.Millisecond
)

// table is the documents of one directory. file and key convert between keys and file names.
type table struct {
	s    *Store
	name string
	dir  string
	// errInvalid says why the name is no table's.
	errInvalid error
	file       func(key string) string
	key        func(file string) (string, bool)
	cache      cache
	// validRevs maps the keys of large documents to the revision that was last seen to be JSON.
	validRevs sync.Map
}

// largeDocument is the size from which validRevs is used: checking JSON costs several times as much as reading.
const largeDocument = 64 << 10

// reserved are the directories in .team that are not tables.
var reserved = []string{"inbox", "locks", "outputs", "scratch", "archive", "cache"}

// isNumber reports whether a key is the number of a task as we write it.
func isNumber(key string) bool {
	return key != "" && len(key) <= 18 && key[0] != '0' && strings.Trim(key, "0123456789") == ""
}

// newTable returns a table with the directory and the file names that the formats give it. Any name is accepted; that
// of no table makes every later call fail.
func newTable(s *Store, name string) *table {
	t := &table{s: s, name: name, dir: filepath.Join(s.dir.Team(), name)}
	t.file = func(key string) string { return key + ".json" }
	t.key = func(file string) (string, bool) {
		key, ok := strings.CutSuffix(file, ".json")
		return key, ok && t.check(key) == nil
	}
	switch name {
	case muster.TableTasks:
		t.dir = s.dir.Tasks()
		t.file = func(key string) string {
			if key == "meta" {
				return "meta.json"
			}
			return "task_" + key + ".json"
		}
		t.key = func(file string) (string, bool) {
			if file == "meta.json" {
				return "meta", true
			}
			name, ok := strings.CutPrefix(file, "task_")
			key, whole := strings.CutSuffix(name, ".json")
			return key, ok && whole && isNumber(key)
		}
	case muster.TableTeam:
		t.dir = s.dir.Team()
	default:
		t.errInvalid = checkName("the name of a table", name)
		if slices.Contains(reserved, name) {
			t.errInvalid = muster.Errorf(muster.Invalid, "%q cannot be the name of a table: .team/%s has another use",
				name, name)
		}
	}
	t.cache.t = t
	return t
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
func (t *table) path(key string) string { return filepath.Join(t.dir, t.file(key)) }

// Get returns the document. With the error Corrupt it also returns the content, so that a person can be shown it.
func (t *table) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.checkArguments(ctx, key); err != nil {
		return muster.Doc{}, err
	}
	for waited := time.Duration(0); ; waited += briefWait {
		now := t.load(key)
		switch {
		case now.err != nil:
			return muster.Doc{}, now.err
		case now.rev == muster.None:
			return muster.Doc{}, muster.Errorf(muster.NotFound, "there is no %q in %s", key, t.name)
		case now.bad == nil || waited >= maxHalfWritten:
			return muster.Doc{Key: key, Rev: now.rev, Data: now.data}, now.bad
		}
		if err := sleepContext(ctx, briefWait); err != nil {
			return muster.Doc{}, err
		}
	}
}

// Put writes the document if it is still at revision at. It compares the revision under the lock, and again after the
// new content is on the disk, because other programs do not take the lock.
func (t *table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := t.checkArguments(ctx, key); err != nil {
		return muster.None, err
	}
	if !json.Valid(data) || !utf8.Valid(data) {
		return muster.None, muster.Errorf(muster.Invalid, "the document %q for %s is not JSON", key, t.name)
	}
	unlock, err := t.lock(ctx, key)
	if err != nil {
		return muster.None, err
	}
	defer unlock()
	if err := t.compare(key, at); err != nil {
		return muster.None, err
	}
	// The slow part, writing and syncing, comes before the second comparison. What remains between that and the rename
	// is the shortest possible time in which a program without our lock can be overwritten.
	staged, err := t.s.files.Stage(t.path(key), data)
	if err != nil {
		return muster.None, err
	}
	if !failpoint.Disabled(failpoint.SecondCompare) { // again: not every program takes our lock
		if err := t.compare(key, at); err != nil {
			staged.Discard()
			return muster.None, err
		}
	}
	if at == muster.None {
		err = staged.Create()
	} else {
		err = staged.Replace()
	}
	if errors.Is(err, muster.ErrStale) {
		err = t.errStale(key)
	}
	// Also after an error the document may have changed: the rename may be done and its sync have failed. So the
	// watchers look in any case.
	rev := revOf(data)
	t.rememberValid(key, rev, len(data))
	t.notifyChange(key)
	if err != nil {
		return muster.None, err
	}
	return rev, nil
}

// rememberValid remembers that a content is JSON.
func (t *table) rememberValid(key string, rev muster.Rev, size int) {
	if size >= largeDocument {
		t.validRevs.Store(key, rev)
	}
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
	defer t.notifyChange(key)
	return t.s.files.Remove(t.path(key))
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
	if err := t.s.probe(); err != nil {
		return nil, err
	}
	locks := t.s.dir.TableLocks(t.name)
	return t.s.files.Lock(ctx, locks[h.Sum32()%uint32(len(locks))])
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
	case now.closed: // what it has is not known, and is not thrown away
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
	bad  error // it is corrupt
	// closed says that the file belongs to another user or is no regular file. Its content is unknown, so it must not
	// be replaced.
	closed bool
	err    error // nothing of this table can be read
}

// load reads a document and checks that it is JSON.
func (t *table) load(key string) docContent {
	now := t.fetch(key)
	if whole, ok := t.validRevs.Load(key); now.data == nil || ok && whole == now.rev {
		return now
	}
	if now.bad = t.checkJSON(key, now.data); now.bad == nil {
		t.rememberValid(key, now.rev, len(now.data))
	}
	return now
}

// fetch reads a document without checking it.
func (t *table) fetch(key string) docContent {
	path := t.path(key)
	data, fi, err := t.s.files.ReadFile(path)
	switch {
	case err == nil:
		text := muster.TrimBOM(data)
		return docContent{file: stampOf(fi).settled(time.Now()), data: text, rev: revOf(data)}
	case errors.Is(err, fs.ErrNotExist):
		return docContent{}
	}
	err = durable.Unreadable(t.s.fs, path, err)
	if !errors.Is(err, muster.ErrCorrupt) {
		return docContent{err: err}
	}
	return docContent{rev: revOf([]byte("closed: " + err.Error())), bad: err, closed: true}
}

// checkJSON returns what is wrong with the bytes of a document, with the line.
func (t *table) checkJSON(key string, data []byte) error {
	if !utf8.Valid(data) {
		at := 0
		for r, n := utf8.DecodeRune(data); r != utf8.RuneError || n > 1; r, n = utf8.DecodeRune(data[at:]) {
			at += n
		}
		return muster.Errorf(muster.Corrupt, "%s is not UTF-8 text in line %d", t.path(key), lineOf(data, at))
	}
	if json.Valid(data) {
		return nil
	}
	err := json.Unmarshal(data, new(any))
	line := lineOf(data, len(data))
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line = lineOf(data, int(syntax.Offset))
	}
	return muster.Errorf(muster.Corrupt, "%s is not JSON in line %d (%w)", t.path(key), line, err)
}

// lineOf returns the number of the line at an offset.
func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// revOf returns the revision of a content. It depends on the content alone, so all processes agree on it without a
// counter on the disk, and an edit by hand changes it.
func revOf(data []byte) muster.Rev {
	sum := sha256.Sum256(data)
	return muster.Rev(hex.EncodeToString(sum[:16]))
}
