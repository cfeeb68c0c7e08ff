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
	// lockFiles is how many lock files a table has: they are never deleted, so there is not one for each document.
	lockFiles = 16
	// halfWritten is how long a document that is not JSON is looked at again before it is called corrupt: other
	// programs write in place.
	halfWritten = 50 * time.Millisecond
	glance      = 5 * time.Millisecond
)

// table is the documents of one directory.
type table struct {
	s     *Store
	name  string
	dir   string
	wrong error // this cannot be a table
	file  func(key string) string
	key   func(file string) (string, bool)
	cache cache
	whole sync.Map // key to Rev: of large documents, the content that was last seen to be JSON
}

// large is from where on it pays to know of a content that it is JSON: to look costs several times what reading does.
const large = 64 << 10

// reserved are the directories in .team that are no tables.
var reserved = []string{"inbox", "locks", "outputs", "scratch", "archive", "cache"}

// isNumber reports whether a key is a task's: a positive number as we write it.
func isNumber(key string) bool {
	return key != "" && len(key) <= 18 && key[0] != '0' && strings.Trim(key, "0123456789") == ""
}

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
		t.wrong = checkName("the name of a table", name)
		if slices.Contains(reserved, name) {
			t.wrong = muster.Errorf(muster.Invalid, "%q cannot be the name of a table: .team/%s has another use", name, name)
		}
	}
	t.cache.t = t
	return t
}

// check reports why key cannot be a key of this table.
func (t *table) check(key string) error {
	switch {
	case t.wrong != nil:
		return t.wrong
	case t.name == muster.TableTasks && key != "meta" && !isNumber(key):
		return muster.Errorf(muster.Invalid, "%q is no task's number", key)
	case t.name == muster.TableTeam && key != "run" && key != "config":
		return muster.Errorf(muster.Invalid, "%q is no document of the team: there are run and config", key)
	}
	return checkName("the key of a document", key)
}

func (t *table) path(key string) string { return filepath.Join(t.dir, t.file(key)) }

// Get returns the document. With the error Corrupt comes what the file has, so that a person can be shown it.
func (t *table) Get(ctx context.Context, key string) (muster.Doc, error) {
	if err := t.checked(ctx, key); err != nil {
		return muster.Doc{}, err
	}
	for waited := time.Duration(0); ; waited += glance {
		now := t.load(key)
		switch {
		case now.err != nil:
			return muster.Doc{}, now.err
		case now.rev == muster.None:
			return muster.Doc{}, muster.Errorf(muster.NotFound, "there is no %q in %s", key, t.name)
		case now.bad == nil || waited >= halfWritten:
			return muster.Doc{Key: key, Rev: now.rev, Data: now.data}, now.bad
		}
		if err := pause(ctx, glance); err != nil {
			return muster.Doc{}, err
		}
	}
}

// Put writes the document if it is still at rev at.
func (t *table) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	if err := t.checked(ctx, key); err != nil {
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
		err = t.stale(key)
	}
	rev := revOf(data)
	t.known(key, rev, len(data))
	t.changed(key)
	if err != nil {
		return muster.None, err
	}
	return rev, nil
}

// known notes that a content is JSON.
func (t *table) known(key string, rev muster.Rev, size int) {
	if size >= large {
		t.whole.Store(key, rev)
	}
}

// Delete removes the document if it is still at rev at.
func (t *table) Delete(ctx context.Context, key string, at muster.Rev) error {
	if err := t.checked(ctx, key); err != nil {
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
	defer t.changed(key)
	return t.s.files.Remove(t.path(key))
}

// Watch receives after changes until ctx ends.
func (t *table) Watch(ctx context.Context) <-chan struct{} {
	return t.s.watch.subscribe(ctx, t.dir, "", t.cache.note)
}

// changed tells of a change of our own.
func (t *table) changed(key string) {
	t.cache.note(t.file(key))
	t.s.watch.tell(t.dir, "")
}

func (t *table) lock(ctx context.Context, key string) (func(), error) {
	h := fnv.New32a()
	h.Write([]byte(key))
	return t.lockSlot(ctx, byte(h.Sum32()%lockFiles))
}

func (t *table) lockSlot(ctx context.Context, slot byte) (func(), error) {
	return t.s.lock(ctx, "table", t.name+"-"+hex.EncodeToString([]byte{slot}))
}

// Freeze keeps everybody who takes our locks from writing a document of the table, until unlock; this process too. Who was
// writing one has finished when it returns.
func (s *Store) Freeze(ctx context.Context, name string) (unlock func(), err error) {
	t := newTable(s, name)
	if t.wrong != nil {
		return nil, t.wrong
	}
	var held []func()
	unlock = func() {
		for _, u := range held {
			u()
		}
	}
	for slot := range byte(lockFiles) { // of these everybody else holds one at most
		u, err := t.lockSlot(ctx, slot)
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, u)
	}
	return unlock, nil
}

// compare fails with Stale when the document is not at rev at, and with Corrupt when what is there cannot be replaced.
func (t *table) compare(key string, at muster.Rev) error {
	now := t.fetch(key)
	switch {
	case now.err != nil:
		return now.err
	case now.rev != at:
		return t.stale(key)
	case now.closed: // what it has is not known, and is not thrown away
		return now.bad
	}
	return nil
}

func (t *table) checked(ctx context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return t.check(key)
}

func (t *table) stale(key string) error {
	return muster.Errorf(muster.Stale, "%q in %s has changed meanwhile", key, t.name)
}

// found is a document as it lies there now.
type found struct {
	file   stamp  // that the file had before it was read
	data   []byte // nil: there is no document, or it is closed to us
	rev    muster.Rev
	bad    error // it is corrupt
	closed bool  // it is, because the file is another user's, or is none
	err    error // nothing of this table can be read
}

// load reads a document and looks whether it is whole.
func (t *table) load(key string) found {
	now := t.fetch(key)
	if whole, ok := t.whole.Load(key); now.data == nil || ok && whole == now.rev {
		return now
	}
	if now.bad = t.broken(key, now.data); now.bad == nil {
		t.known(key, now.rev, len(now.data))
	}
	return now
}

// fetch reads a document as it lies there. Only of one that is closed to us it says that it is corrupt.
func (t *table) fetch(key string) found {
	path := t.path(key)
	data, fi, err := t.s.files.ReadFile(path)
	switch {
	case err == nil:
		text := muster.Unmarked(data)
		return found{file: stampOf(fi), data: text, rev: revOf(data)}
	case errors.Is(err, fs.ErrNotExist):
		return found{}
	}
	err = durable.Unreadable(t.s.fs, path, err)
	if !errors.Is(err, muster.ErrCorrupt) {
		return found{err: err}
	}
	return found{rev: revOf([]byte("closed: " + err.Error())), bad: err, closed: true}
}

// broken says what is wrong with a document's bytes, with the line; nil when it is JSON.
func (t *table) broken(key string, data []byte) error {
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

func lineOf(data []byte, offset int) int {
	return 1 + bytes.Count(data[:min(offset, len(data))], []byte("\n"))
}

// revOf is the identity of a content.
func revOf(data []byte) muster.Rev {
	sum := sha256.Sum256(data)
	return muster.Rev(hex.EncodeToString(sum[:16]))
}
