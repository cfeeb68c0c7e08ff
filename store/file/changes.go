package file

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
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
	order list.List // of *docState, by mark: what changed last is at the back

	namedMu sync.Mutex      // guards the following; the watcher never waits for a look
	named   map[string]bool // documents that may have changed; "" is all of them
}

// docState is one document as it was last seen. A deleted document keeps its entry, because Changes must report the
// deletion to everybody whose mark is older.
type docState struct {
	key   string
	rev   muster.Rev // None: deleted
	file  stamp
	mark  muster.Mark // of its last change
	bad   error       // it is corrupt
	place *list.Element
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

// stampAt returns the stamp of a file, however young it is, or zero if there is none.
func stampAt(on durable.FS, path string) stamp {
	fi, err := on.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stampOf(fi)
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
	c.named[key] = true
	return true
}

// forget makes the next look read all documents again.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.docs {
		d.file = stamp{}
	}
	c.noteFile("")
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
			found, err := t.cache.look(ctx, since)
			if err != nil {
				yield(muster.Change{}, err)
				return
			}
			again = false
			for _, d := range found.docs {
				if err := ctx.Err(); err != nil {
					yield(muster.Change{}, err)
					return
				}
				since = d.mark
				if d.rev == muster.None && listing {
					continue
				}
				data, ok := t.cache.content(ctx, found, d)
				if !ok {
					again = true // it has just changed, and is yielded after all others
					continue
				}
				c := muster.Change{Doc: muster.Doc{Key: d.key, Rev: d.rev, Data: data}, Mark: d.mark}
				if !yield(c, d.bad) {
					return
				}
			}
		}
	}
}

// lookResult is what a look found.
type lookResult struct {
	docs  []docState        // what changed after the mark, in the order of the marks
	fresh map[string][]byte // the contents that had to be read
}

// look finds out what changed, and returns what did after since.
func (c *cache) look(ctx context.Context, since muster.Mark) (found lookResult, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	// Whether the watcher covers the table is asked before the named files are taken. If the watch begins in between,
	// it names every file itself, so no change falls between the two.
	watched := c.t.s.watch.covers(c.t.dir)
	c.namedMu.Lock()
	named := c.named
	c.named = map[string]bool{}
	c.namedMu.Unlock()
	all := named[""]
	delete(named, "")
	first := c.docs == nil
	if first {
		c.docs = map[string]*docState{}
	}
	if all || first || !watched {
		err = c.scan(named)
	}
	if err == nil {
		found.fresh, err = c.readNamed(ctx, named)
	}
	if err != nil {
		c.noteFile("") // nothing that was named may be forgotten
		return found, err
	}
	// This takes time only for what changed, however many documents there are. A consumer needs the newest content of a
	// document, not each step, so each has one place in the order.
	if since == 0 {
		found.docs = make([]docState, 0, c.order.Len())
	}
	for e := c.order.Back(); e != nil && e.Value.(*docState).mark > since; e = e.Prev() {
		found.docs = append(found.docs, *e.Value.(*docState))
	}
	slices.Reverse(found.docs)
	return found, nil
}

// bumpMark gives a document the next mark.
func (c *cache) bumpMark(d *docState) {
	c.mark++
	d.mark = c.mark
	if d.place == nil {
		d.place = c.order.PushBack(d)
	} else {
		c.order.MoveToBack(d.place)
	}
}

// scan adds to named every document whose file has another stamp than the one seen. It removes temporary files of dead
// processes, which nothing else would find.
func (c *cache) scan(named map[string]bool) error {
	names, err := c.t.s.fs.Names(c.t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return errUnreadable(c.t.dir, err)
	}
	// A document needs no stat if it must be read anyway: it is new, was deleted, or was too young to be trusted.
	there := make(map[string]bool, len(names))
	var seen []*docState
	for _, name := range names {
		key, ok := c.t.key(name)
		if !ok {
			c.t.s.removeOldTemporary(filepath.Join(c.t.dir, name))
			continue
		}
		there[key] = true
		if d := c.docs[key]; d == nil || d.rev == muster.None || d.file == (stamp{}) {
			named[key] = true
		} else {
			seen = append(seen, d)
		}
	}
	// Each goroutine writes to its own places of changed, so no lock is needed.
	changed := make([]bool, len(seen))
	inParallel(len(seen), func(i int) {
		changed[i] = stampAt(c.t.s.fs, c.t.path(seen[i].key)) != seen[i].file
	})
	for i, d := range seen {
		if changed[i] {
			named[d.key] = true
		}
	}
	// What is not in the directory any more was deleted. Reading it finds that out and gives the deletion its mark.
	for key, d := range c.docs {
		if !there[key] && d.rev != muster.None {
			named[key] = true
		}
	}
	return nil
}

// readNamed reads the named documents, many of them in parallel, and returns the contents of those that can be read.
func (c *cache) readNamed(ctx context.Context, named map[string]bool) (map[string][]byte, error) {
	keys := slices.SortedFunc(maps.Keys(named), byKey)
	all := make([]docContent, len(keys))
	inParallel(len(keys), func(i int) {
		if all[i] = c.t.read(ctx, keys[i]); all[i].bad != nil {
			all[i].data = nil // nobody is given it, and many large ones would take much memory
		}
	})
	fresh := map[string][]byte{}
	for i, now := range all {
		if now.err != nil {
			return nil, now.err
		}
		if c.store(keys[i], now); now.bad == nil && now.data != nil {
			fresh[keys[i]] = now.data
		}
	}
	return fresh, nil
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

// content returns the content of a document, nil if it was deleted or is corrupt. It returns false if the document
// is no longer at its revision; the next look then reports the change.
func (c *cache) content(ctx context.Context, found lookResult, d docState) ([]byte, bool) {
	if d.rev == muster.None || d.bad != nil {
		return nil, true
	}
	if data, ok := found.fresh[d.key]; ok {
		return data, true
	}
	if now := c.t.read(ctx, d.key); now.rev == d.rev {
		return now.data, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A mark now, whatever the next look finds: it may be the content that we have seen before, and not yielded.
	c.bumpMark(c.docs[d.key])
	c.noteFile(c.t.file(d.key))
	return nil, false
}

// maxTemporaryAge is how old a temporary file must be to belong to a dead process.
const maxTemporaryAge = time.Hour

// removeOldTemporary removes a file if it is a temporary one that a killed process left.
func (s *Store) removeOldTemporary(path string) {
	if !durable.IsTemporary(filepath.Base(path)) {
		return
	}
	if fi, err := s.fs.Stat(path); err == nil && time.Since(fi.ModTime()) > maxTemporaryAge {
		_ = s.fs.Remove(path)
	}
}

// byKey orders documents by key; numbers are ordered by their value.
func byKey(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// parallelFrom is from how many files on they are read in parallel.
const parallelFrom = 64

// parallelReaders is how many goroutines read files. It exceeds the number of processors, because a disk serves many
// requests at once.
const parallelReaders = 8

// inParallel calls f for 0 to n-1, from several goroutines if n is large.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	if n < parallelFrom {
		work()
		return
	}
	var all sync.WaitGroup
	for range parallelReaders {
		all.Go(work)
	}
	all.Wait()
}
