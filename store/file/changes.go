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
// While the table is watched, Changes looks at those files only that the watcher or a write of our own named since the
// last time; a sweep makes it look at all again. What another process writes is then seen as soon as the watcher has
// named it: a hint always follows. Without a watch, Changes looks at every file's size and times.
type cache struct {
	t *table

	mu    sync.Mutex // one look at a time
	docs  map[string]*seen
	mark  muster.Mark
	order []marked // each change of docs, by mark; one that a later change overtook stays in it for a while

	named sync.Mutex // guards the following; the watcher never waits for a look
	keys  map[string]bool
	all   bool
}

// seen is one document as it was last seen.
type seen struct {
	key  string
	rev  muster.Rev // None: deleted
	file stamp
	mark muster.Mark // of its last change
	bad  error       // it is corrupt
}

// stamp tells whether a file may have changed.
type stamp struct {
	size         int64
	inode        uint64
	mtime, ctime int64 // nanoseconds
}

// racy is how long after its last change a file may change again without a new stamp: clocks of file systems tick.
const racy = 100 * time.Millisecond

// stampOf is the stamp of a file, zero when it is too young to be trusted.
func stampOf(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	s.inode, s.ctime = inode(fi)
	return s.settled(time.Now())
}

// settled is s, zero when it is too young to be trusted.
func (s stamp) settled(now time.Time) stamp {
	if now.Sub(time.Unix(0, max(s.mtime, s.ctime))) < racy {
		return stamp{}
	}
	return s
}

// note is told the name of a file that may have changed, "" for any. It reports whether that can be a document.
func (c *cache) note(file string) bool {
	key, ok := c.t.key(file)
	if !ok && file != "" {
		return false
	}
	c.named.Lock()
	defer c.named.Unlock()
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

// Changes yields each document that changed after since.
func (t *table) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		if t.wrong != nil {
			yield(muster.Change{}, t.wrong)
			return
		}
		listing := since == 0
		for again := true; again; {
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
						again = true // it changed just now: it comes once more, after all others
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

// marked is a change of a document.
type marked struct {
	d    *seen
	mark muster.Mark
}

// item is one document of a look, as it was then: of d only the key is the same for ever.
type item struct {
	d    *seen
	rev  muster.Rev
	mark muster.Mark
	bad  error
}

// look finds out what changed, and returns what did after since in the order of the marks, with the contents that it
// had to read, and the snapshot that has others; the caller closes it.
func (c *cache) look(ctx context.Context, since muster.Mark) (fresh map[string][]byte, old *snapshot, list []item, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	watched := c.t.s.watch.covers(c.t.dir)
	c.named.Lock()
	keys, all, first := c.keys, c.all || !watched || c.docs == nil, c.docs == nil
	c.keys, c.all = nil, false
	c.named.Unlock()
	defer func() {
		if err != nil { // nothing that was named may be forgotten
			c.note("")
		}
	}()
	switch {
	case first:
		c.docs = map[string]*seen{}
		keys, old, err = c.first()
	case all:
		keys, err = c.scan(keys)
	}
	if err != nil {
		return nil, old, nil, err
	}
	fresh = map[string][]byte{}
	if err := c.examine(ctx, keys, fresh); err != nil {
		return nil, old, nil, err
	}
	if first {
		c.save(old, fresh)
	}
	if since == c.mark {
		return nil, old, nil, nil
	}
	return fresh, old, c.after(since), nil
}

// after is what changed after since, by mark. It costs as much as there is of that, however many documents there are.
func (c *cache) after(since muster.Mark) []item {
	at, found := slices.BinarySearchFunc(c.order, since, func(x marked, m muster.Mark) int { return cmp.Compare(x.mark, m) })
	if found {
		at++
	}
	list := make([]item, 0, len(c.order)-at)
	for _, x := range c.order[at:] {
		if d := x.d; d.mark == x.mark {
			list = append(list, item{d, d.rev, d.mark, d.bad})
		}
	}
	return list
}

// touch gives a document the next mark.
func (c *cache) touch(d *seen) {
	c.mark++
	d.mark = c.mark
	c.order = append(c.order, marked{d, c.mark})
	if len(c.order) > 2*len(c.docs)+many {
		c.order = slices.DeleteFunc(c.order, func(x marked) bool { return x.d.mark != x.mark })
	}
}

// scan adds to named every document whose file's stamp is not the one seen.
func (c *cache) scan(named map[string]bool) (map[string]bool, error) {
	list, err := c.list()
	if err != nil {
		return named, err
	}
	if named == nil {
		named = map[string]bool{}
	}
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
	for key, d := range c.docs {
		if !there[key] && d.rev != muster.None {
			named[key] = true
		}
	}
	return named, nil
}

// first is the first scan: it takes over what is as an earlier process saw it, and returns the keys of all others, and the
// snapshot, if there is one. The directory is listed meanwhile: a document that is there all the time is in the list, and one
// that is taken over was there when its file was looked at.
func (c *cache) first() (others map[string]bool, old *snapshot, err error) {
	var keys []string
	var listing sync.WaitGroup
	if old = c.openSnapshot(); old == nil {
		keys, err = c.list()
	} else {
		listing.Go(func() { keys, err = c.list() })
		c.restore(old)
		listing.Wait()
		if err == nil && len(old.docs) > 4*len(keys)+c.t.s.snapshotFrom {
			c.t.s.fs.Remove(c.snapshotPath()) // most of what it has is gone, and would be looked for again each time
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

// list lists the keys of the documents that there are. It removes what dead processes left beside them.
func (c *cache) list() ([]string, error) {
	names, err := fileNames(c.t.s.fs, c.t.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(c.t.dir, err)
	}
	keys := names[:0]
	for _, name := range names {
		if durable.Temporary(name) {
			c.t.s.sweepOut(filepath.Join(c.t.dir, name))
		} else if key, ok := c.t.key(name); ok {
			keys = append(keys, key)
		}
	}
	return keys, nil
}

// examine reads the named documents. Those that are not JSON are looked at again for a while, all at once.
func (c *cache) examine(ctx context.Context, keys map[string]bool, fresh map[string][]byte) error {
	order := make([]string, 0, len(keys))
	for key := range keys {
		order = append(order, key)
	}
	slices.SortFunc(order, byKey)
	for waited := time.Duration(0); len(order) > 0; waited += glance {
		var later []string
		for i, now := range c.load(order) {
			key := order[i]
			if now.err != nil {
				return now.err
			}
			if d := c.docs[key]; now.bad != nil && waited < halfWritten && (d == nil || d.rev != now.rev) {
				later = append(later, key)
				continue
			}
			if c.store(key, now); now.bad == nil && now.data != nil {
				fresh[key] = now.data
			}
		}
		if order = later; len(order) > 0 {
			if err := pause(ctx, glance); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads documents, many of them side by side: a cold look at a large table is mostly this.
func (c *cache) load(keys []string) []found {
	all := make([]found, len(keys))
	sideBySide(len(keys), func(i int) { all[i] = c.t.load(keys[i]) })
	return all
}

// store remembers what a document is now; a new content gets a new mark.
func (c *cache) store(key string, now found) {
	d := c.docs[key]
	if d == nil {
		if now.rev == muster.None {
			return
		}
		d = &seen{key: key}
		c.docs[key] = d
	}
	d.file, d.bad = now.file, now.bad
	if d.rev != now.rev {
		d.rev = now.rev
		c.touch(d)
	}
}

// read returns the document's content if it is still the one seen. If not, the next look finds it changed.
func (c *cache) read(d *seen, rev muster.Rev) ([]byte, bool) {
	if now := c.t.load(d.key); now.rev == rev {
		return now.data, true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// A mark now, whatever the next look finds: it may be the content that we have seen before, and not yielded.
	c.touch(d)
	c.note(c.t.file(d.key))
	return nil, false
}

// left is how old a temporary must be to be a dead process's.
const left = time.Hour

// sweepOut removes a temporary that a killed process left behind.
func (s *Store) sweepOut(path string) {
	if fi, err := s.fs.Stat(path); err == nil && time.Since(fi.ModTime()) > left {
		s.fs.Remove(path)
	}
}
