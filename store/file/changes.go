package file

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
)

// cache is what this process last saw of a table's files. It knows which documents changed, not what they say.
//
// While the table is watched, Changes looks only at files that the watcher or this process named since the last time;
// a sweep makes it look at all of them. What another process writes is then seen as soon as the watcher has named it,
// and a hint always follows. Without a watch, Changes checks the size and times of every file.
type cache struct {
	t *table

	mu    sync.Mutex // one look at a time
	docs  map[string]*docState
	mark  muster.Mark
	order []docChange // each change of docs, by mark; one that a later change overtook stays in it for a while

	namedMu sync.Mutex // guards the following; the watcher never waits for a look
	keys    map[string]bool
	all     bool
}

// docState is one document as it was last seen. A deleted document keeps its entry, because Changes must report the
// deletion to everybody whose mark is older.
type docState struct {
	key  string
	rev  muster.Rev // None: deleted
	file stamp
	mark muster.Mark // of its last change
	bad  error       // it is corrupt
}

// stamp is what shows that a file may have changed. The ctime is part of it because no program can set it back, and the
// inode because a rename may bring a file with the same times.
type stamp struct {
	size         int64
	inode        uint64
	mtime, ctime int64 // nanoseconds
}

// minStampAge is how old a change must be for the stamp to count. Clocks of file systems tick slowly, so a younger
// file may change again without a new stamp.
const minStampAge = 100 * time.Millisecond

// stampOf returns the stamp of a file, however young it is.
func stampOf(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	s.inode, s.ctime = inode(fi)
	return s
}

// settled returns s, or zero if it is too young to be trusted.
func (s stamp) settled(now time.Time) stamp {
	if now.Sub(time.Unix(0, max(s.mtime, s.ctime))) < minStampAge {
		return stamp{}
	}
	return s
}

// noteFile remembers that a file may have changed; "" means any file. It reports whether the file can be a document.
// It never waits for a look.
func (c *cache) noteFile(file string) bool {
	key, ok := c.t.key(file)
	if !ok && file != "" {
		return false
	}
	c.namedMu.Lock()
	defer c.namedMu.Unlock()
	if file == "" {
		c.all = true
	} else {
		if c.keys == nil {
			c.keys = map[string]bool{}
		}
		c.keys[key] = true
	}
	return true
}

// Changes yields each document that changed after a mark, in the order of the marks.
func (t *table) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		if t.errInvalid != nil {
			yield(muster.Change{}, t.errInvalid)
			return
		}
		listing := since == 0
		for again := true; again; {
			// The lock of the cache is not held while documents are yielded: a consumer may take any time, and may
			// write to the same table.
			fresh, old, list, err := t.cache.look(ctx, since)
			defer old.close()
			if err != nil {
				yield(muster.Change{}, err)
				return
			}
			again = false
			for _, it := range list {
				if err := ctx.Err(); err != nil {
					yield(muster.Change{}, err)
					return
				}
				if it.rev == muster.None && listing {
					continue
				}
				key := it.d.key
				data, ok := fresh[key]
				if !ok && old != nil && it.bad == nil {
					data, ok = old.contentOf(key, it.rev)
				}
				if !ok && it.rev != muster.None && it.bad == nil {
					if data, ok = t.cache.read(it.d, it.rev); !ok {
						again = true // it has just changed, and is yielded after all others
						continue
					}
				}
				c := muster.Change{Doc: muster.Doc{Key: key, Rev: it.rev, Data: data}, Mark: it.mark}
				if !yield(c, it.bad) {
					return
				}
			}
			if len(list) > 0 {
				since = list[len(list)-1].mark
			}
		}
	}
}

// docChange is a change of a document.
type docChange struct {
	d    *docState
	mark muster.Mark
}

// lookResult is one document as a look found it. Only the key in d never changes.
type lookResult struct {
	d    *docState
	rev  muster.Rev
	mark muster.Mark
	bad  error
}

// look finds out what changed, and returns what did after since, in the order of the marks. It also returns the
// contents that it had to read, and the snapshot that holds others, which the caller closes.
func (c *cache) look(ctx context.Context, since muster.Mark) (fresh map[string][]byte, old *snapshot,
	list []lookResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Whether the watcher covers the table is asked before the named files are taken. If the watch begins in between,
	// it names every file itself, so no change falls between the two.
	watched := c.t.s.watch.covers(c.t.dir)
	c.namedMu.Lock()
	keys, all, first := c.keys, c.all || !watched || c.docs == nil, c.docs == nil
	c.keys, c.all = nil, false
	c.namedMu.Unlock()
	defer func() {
		if err != nil { // nothing that was named may be forgotten
			c.noteFile("")
		}
	}()
	switch {
	case first:
		c.docs = map[string]*docState{}
		keys, old, err = c.firstScan()
	case all:
		keys, err = c.scan(keys)
	}
	if err != nil {
		return nil, old, nil, err
	}
	fresh = map[string][]byte{}
	if err := c.readNamed(ctx, keys, fresh); err != nil {
		return nil, old, nil, err
	}
	if first {
		c.save(old, fresh)
	}
	if since == c.mark {
		return nil, old, nil, nil
	}
	return fresh, old, c.changesAfter(since), nil
}

// changesAfter returns what changed after since. It takes time only for those changes, however many documents there
// are.
func (c *cache) changesAfter(since muster.Mark) []lookResult {
	at, found := slices.BinarySearchFunc(c.order, since,
		func(x docChange, m muster.Mark) int { return cmp.Compare(x.mark, m) })
	if found {
		at++
	}
	list := make([]lookResult, 0, len(c.order)-at)
	for _, x := range c.order[at:] {
		// A later change of the same document has a later entry, which is enough: a consumer needs the newest
		// content, not each step.
		if d := x.d; d.mark == x.mark {
			list = append(list, lookResult{d, d.rev, d.mark, d.bad})
		}
	}
	return list
}

// bumpMark gives a document the next mark.
func (c *cache) bumpMark(d *docState) {
	c.mark++
	d.mark = c.mark
	c.order = append(c.order, docChange{d, c.mark})
	// The overtaken entries are dropped when they are the majority, so the list stays proportional to the number
	// of documents and each change costs constant time on average.
	if len(c.order) > 2*len(c.docs)+parallelFrom {
		c.order = slices.DeleteFunc(c.order, func(x docChange) bool { return x.d.mark != x.mark })
	}
}

// scan adds to named every document whose file has another stamp than the one seen.
func (c *cache) scan(named map[string]bool) (map[string]bool, error) {
	list, err := c.list()
	if err != nil {
		return named, err
	}
	if named == nil {
		named = map[string]bool{}
	}
	// A document needs no stat if it must be read anyway: it is new, was deleted, or was too young to be trusted.
	there := make(map[string]bool, len(list))
	keys := make([]string, 0, len(list))
	for _, key := range list {
		there[key] = true
		if d := c.docs[key]; d == nil || d.rev == muster.None || d.file == (stamp{}) {
			named[key] = true
		} else if !named[key] {
			keys = append(keys, key)
		}
	}
	for i, now := range stamps(c.t.s.fs, c.t.dir, len(keys), func(i int) string { return c.t.file(keys[i]) }) {
		if now != c.docs[keys[i]].file {
			named[keys[i]] = true
		}
	}
	// What is not in the directory any more was deleted. Reading it finds that out and gives the deletion its mark.
	for key, d := range c.docs {
		if !there[key] && d.rev != muster.None {
			named[key] = true
		}
	}
	return named, nil
}

// firstScan takes over what is still as an earlier process saw it. It returns the keys of all other documents, and the
// snapshot, if there is one. The directory is listed at the same time: a document that exists throughout is in the
// list.
func (c *cache) firstScan() (others map[string]bool, old *snapshot, err error) {
	var keys []string
	var listing sync.WaitGroup
	if old = c.openSnapshot(); old == nil {
		keys, err = c.list()
	} else {
		// Both take long in a large directory, and neither needs the other.
		listing.Go(func() { keys, err = c.list() })
		c.restore(old)
		listing.Wait()
		if err == nil && len(old.docs) > 4*len(keys)+c.t.s.snapshotFrom {
			// Most of its documents are gone, and would be looked for again each time.
			_ = c.t.s.fs.Remove(c.snapshotPath())
		}
	}
	others = map[string]bool{}
	for _, key := range keys {
		if c.docs[key] == nil {
			others[key] = true
		}
	}
	return others, old, err
}

// list returns the keys of the documents. It removes temporary files of dead processes, which nothing else would find.
func (c *cache) list() ([]string, error) {
	names, err := fileNames(c.t.s.fs, c.t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errUnreadable(c.t.dir, err)
	}
	keys := names[:0]
	for _, name := range names {
		if durable.IsTemporary(name) {
			c.t.s.removeOldTemporary(filepath.Join(c.t.dir, name))
		} else if key, ok := c.t.key(name); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// readNamed reads the named documents. Those that are not JSON are read again for a while, all together.
func (c *cache) readNamed(ctx context.Context, keys map[string]bool, fresh map[string][]byte) error {
	order := make([]string, 0, len(keys))
	for key := range keys {
		order = append(order, key)
	}
	slices.SortFunc(order, byKey)
	// A program that writes in place leaves a file half written for a moment. Such files are read again until they are
	// JSON or maxHalfWritten has passed. A content that was reported as corrupt before is not waited for again.
	for waited := time.Duration(0); len(order) > 0; waited += briefWait {
		var later []string
		for i, now := range c.load(order) {
			key := order[i]
			if now.err != nil {
				return now.err
			}
			if d := c.docs[key]; now.bad != nil && waited < maxHalfWritten && (d == nil || d.rev != now.rev) {
				later = append(later, key)
				continue
			}
			if c.store(key, now); now.bad == nil && now.data != nil {
				fresh[key] = now.data
			}
		}
		if order = later; len(order) > 0 {
			if err := sleepContext(ctx, briefWait); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads documents, many of them in parallel. A first look at a large table is mostly this.
func (c *cache) load(keys []string) []docContent {
	all := make([]docContent, len(keys))
	inParallel(len(keys), func(i int) { all[i] = c.t.load(keys[i]) })
	return all
}

// store remembers a document. A new content gets a new mark. The same content with another stamp, as after a checkout,
// is no change.
func (c *cache) store(key string, now docContent) {
	d := c.docs[key]
	if d == nil {
		if now.rev == muster.None {
			return
		}
		d = &docState{key: key}
		c.docs[key] = d
	}
	d.file, d.bad = now.file, now.bad
	if d.rev != now.rev {
		d.rev = now.rev
		c.bumpMark(d)
	}
}

// read returns the content if it is still at that revision. Otherwise the next look reports the change.
func (c *cache) read(d *docState, rev muster.Rev) ([]byte, bool) {
	if now := c.t.load(d.key); now.rev == rev {
		return now.data, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A mark now, whatever the next look finds: it may be the content that we have seen before, and not yielded.
	c.bumpMark(d)
	c.noteFile(c.t.file(d.key))
	return nil, false
}

// maxTemporaryAge is how old a temporary file must be to belong to a dead process.
const maxTemporaryAge = time.Hour

// removeOldTemporary removes a temporary file that a killed process left.
func (s *Store) removeOldTemporary(path string) {
	if fi, err := s.fs.Stat(path); err == nil && time.Since(fi.ModTime()) > maxTemporaryAge {
		_ = s.fs.Remove(path)
	}
}
