package file

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/failpoint"
)

// A snapshot is what some process read of a large table: .team/cache/TABLE.snapshot. The first look of a process then
// reads one file instead of up to 100,000. It is a cache and safe to delete at any time. A content in it counts only
// while the size, inode, mtime and ctime of the document's file are still those that the file had when it was read. A
// file that was so young that it could change without another stamp is not in it.
//
// A snapshot is not synced. Each part of it has a checksum, so what a power loss leaves of it is either intact or not
// used. Everything in it can be read from the documents' own files.
//
// The format: the contents one after another; the list, in the same order; the list's length and checksum; the mark.
const snapshotMark = "muster snapshot 1\n"

// The sizes and times of snapshots.
const (
	trailerSize = 8 + 4 + len(snapshotMark)
	// snapshotWindow is how many bytes of the contents are read at a time.
	snapshotWindow = 1 << 20
	// minSnapshotAge is how long a snapshot is kept before it is written again, however much of it is out of date.
	minSnapshotAge = 2 * time.Second
	// snapshotWriteTime is how long a snapshot that is being written keeps other processes from writing one.
	snapshotWriteTime = 10 * time.Second
)

// snapshotEntry is the content of a document in a snapshot.
type snapshotEntry struct {
	rev [16]byte
	sum uint32
	at  int64 // where it is; the stamp has its size
}

// snapshot is an open snapshot. Only one goroutine may use it.
type snapshot struct {
	file durable.File
	// in the order of the contents, which is byKey; those that are still so become the cache's, and may change
	docs []docState
	list []snapshotEntry // of each of them
	made time.Time
	used int   // of the documents in it, those that are as they were
	size int64 // of the contents

	windowData  []byte // what was read last,
	windowStart int64  // and where it lies
	next        int    // in the list: which document is probably asked for next
}

// snapshotPath returns the path of the table's snapshot.
func (c *cache) snapshotPath() string {
	return filepath.Join(c.t.s.dir.Team(), "cache", c.t.name+".snapshot")
}

// openSnapshot opens the table's snapshot, or returns nil if there is none that can be used.
func (c *cache) openSnapshot() *snapshot {
	f, err := c.t.s.fs.OpenFile(c.snapshotPath(), os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	s := &snapshot{file: f}
	if !s.read() {
		_ = f.Close()
		return nil
	}
	return s
}

// read reads the list, and reports whether it is whole.
func (s *snapshot) read() bool {
	fi, err := s.file.Stat()
	if err != nil || fi.Size() < int64(trailerSize) {
		return false
	}
	s.made = fi.ModTime()
	// The mark is the last thing that is written, so a file that was cut off has none.
	end := make([]byte, trailerSize)
	if !s.readFull(end, fi.Size()-int64(trailerSize)) || string(end[12:]) != snapshotMark {
		return false
	}
	length := binary.LittleEndian.Uint64(end)
	contents := fi.Size() - int64(trailerSize) - int64(length)
	if length > uint64(fi.Size()) || contents < 0 {
		return false
	}
	list := make([]byte, length)
	if !s.readFull(list, contents) || crc32.Checksum(list, castagnoli()) != binary.LittleEndian.Uint32(end[8:]) {
		return false
	}
	// The checksum makes damage improbable, not impossible, so no number in the list is used before it is checked: a
	// wrong length must not make the program allocate or slice out of range.
	at := int64(0)
	number := func() (n int64) {
		u, size := binary.Uvarint(list)
		if size <= 0 {
			list = nil
			return 0
		}
		list = list[size:]
		return int64(u)
	}
	count := number()
	if count < 0 || uint64(count) > length {
		return false
	}
	s.docs, s.list = make([]docState, count), make([]snapshotEntry, count)
	for i := range s.list {
		d, k := &s.docs[i], &s.list[i]
		size := number()
		if size < 0 || size > int64(len(list)) {
			return false
		}
		d.key, list = string(list[:size]), list[size:]
		if i > 0 && byKey(s.docs[i-1].key, d.key) >= 0 {
			return false
		}
		d.file = stamp{size: number(), inode: uint64(number()), mtime: number(), ctime: number()}
		if len(list) < len(k.rev)+4 || d.file.size < 0 {
			return false
		}
		list = list[copy(k.rev[:], list):]
		k.sum, list = binary.LittleEndian.Uint32(list), list[4:]
		k.at = at
		at += d.file.size
	}
	s.size = contents
	return len(list) == 0 && at == contents
}

// readFull fills b from an offset, and reports whether that worked.
func (s *snapshot) readFull(b []byte, at int64) bool {
	n, err := s.file.ReadAt(b, at)
	return n == len(b) && (err == nil || errors.Is(err, io.EOF))
}

// content returns the content of a document. It returns false if its checksum is wrong.
func (s *snapshot) content(i int) ([]byte, bool) {
	k, end := s.list[i], s.size
	if i+1 < len(s.list) {
		end = s.list[i+1].at
	}
	if k.at < s.windowStart || end > s.windowStart+int64(len(s.windowData)) {
		// A new one: what was yielded of the last one is its receiver's.
		s.windowData, s.windowStart = make([]byte, max(min(snapshotWindow, s.size-k.at), end-k.at)), k.at
		if !s.readFull(s.windowData, s.windowStart) {
			s.windowData = nil
			return nil, false
		}
	}
	b := s.windowData[k.at-s.windowStart : end-s.windowStart : end-s.windowStart]
	return b, crc32.Checksum(b, castagnoli()) == k.sum
}

// contentOf returns the content of a document at a revision. It returns false if the snapshot does not have it.
func (s *snapshot) contentOf(key string, rev muster.Rev) ([]byte, bool) {
	if s == nil {
		return nil, false
	}
	i := s.next // documents are mostly asked for in their order
	if i >= len(s.docs) || s.docs[i].key != key {
		var there bool
		if i, there = sort.Find(len(s.docs), func(i int) int { return byKey(key, s.docs[i].key) }); !there {
			return nil, false
		}
	}
	if s.list[i].revision() != rev {
		return nil, false
	}
	s.next = i + 1
	return s.content(i)
}

// revision returns the revision of the content as documents have it.
func (k *snapshotEntry) revision() muster.Rev { return muster.Rev(hex.EncodeToString(k.rev[:])) }

// close closes the snapshot; nil has nothing to close.
func (s *snapshot) close() {
	if s != nil {
		_ = s.file.Close()
	}
}

// restore takes over the documents whose files are unchanged since the snapshot.
func (c *cache) restore(s *snapshot) {
	now := stamps(c.t.s.fs, c.t.dir, len(s.docs), func(i int) string { return c.t.file(s.docs[i].key) })
	c.docs, c.order = make(map[string]*docState, len(now)), make([]docChange, 0, len(now))
	for i := range now {
		d := &s.docs[i]
		if now[i] == (stamp{}) || now[i].ctime == 0 || now[i] != d.file {
			continue
		}
		d.rev = s.list[i].revision()
		c.docs[d.key] = d
		c.bumpMark(d)
		s.used++
	}
}

// save writes a snapshot after a first look that had to read many files. Errors are ignored, because it is a cache. The
// snapshot gets its name by a rename, so a reader sees a whole one, also while several processes write.
func (c *cache) save(old *snapshot, fresh map[string][]byte) {
	if len(fresh) < c.t.s.snapshotFrom || 4*len(fresh) < len(c.docs) || old != nil &&
		time.Since(old.made) < minSnapshotAge && 4*old.used > len(c.docs) {
		return
	}
	docs := make([]string, 0, len(c.docs))
	for key, d := range c.docs {
		if d.rev != muster.None && d.bad == nil && d.file.ctime != 0 {
			docs = append(docs, key)
		}
	}
	on, path := c.t.s.fs, c.snapshotPath()
	if 2*len(docs) < len(c.docs) || c.t.s.files.Ended() != nil {
		return // most are too young
	}
	if _, err := on.Stat(c.t.s.dir.Team()); err != nil {
		return // another program's board: looking at it must create nothing
	}
	dir := filepath.Dir(path)
	if err := on.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return
	}
	if c.beingWritten(dir) {
		return
	}
	slices.SortFunc(docs, byKey)
	temp := filepath.Join(dir, "."+filepath.Base(path)+"."+strings.ToLower(rand.Text()[:12])+".tmp")
	failpoint.Hit("snapshot.begin")
	f, err := on.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	err = errors.Join(c.writeSnapshot(f, docs, old, fresh), f.Close())
	failpoint.Hit("snapshot.written")
	if err == nil {
		err = on.Rename(temp, path)
	}
	if err != nil {
		_ = on.Remove(temp)
	}
	failpoint.Hit("snapshot.named")
}

// beingWritten reports whether another process is writing the snapshot. It removes what dead processes left. Without
// it, all processes of a team that start at once would each write the same large file.
func (c *cache) beingWritten(dir string) bool {
	names, _ := fileNames(c.t.s.fs, dir)
	for _, name := range names {
		if !durable.IsTemporary(name) {
			continue
		}
		if fi, err := c.t.s.fs.Stat(filepath.Join(dir, name)); err == nil &&
			time.Since(fi.ModTime()).Abs() < snapshotWriteTime {
			return true
		}
		_ = c.t.s.fs.Remove(filepath.Join(dir, name))
	}
	return false
}

// writeSnapshot writes the contents, the list, and the trailer.
func (c *cache) writeSnapshot(to io.Writer, keys []string, old *snapshot, fresh map[string][]byte) error {
	w := bufio.NewWriterSize(to, 1<<18)
	list := make([]byte, 0, 64*len(keys))
	var n uint64
	for _, key := range keys {
		d := c.docs[key]
		data, ok := fresh[key]
		if !ok {
			data, ok = old.contentOf(key, d.rev)
		}
		// A content of another size than its file had was stripped of a byte order mark, and would not match the stamp.
		rev, err := hex.DecodeString(string(d.rev))
		if !ok || err != nil || int64(len(data)) != d.file.size {
			continue
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		n++
		list = binary.AppendUvarint(list, uint64(len(key)))
		list = append(list, key...)
		for _, v := range []uint64{uint64(d.file.size), d.file.inode, uint64(d.file.mtime), uint64(d.file.ctime)} {
			list = binary.AppendUvarint(list, v)
		}
		list = append(list, rev...)
		list = binary.LittleEndian.AppendUint32(list, crc32.Checksum(data, castagnoli()))
	}
	list = append(binary.AppendUvarint(nil, n), list...)
	end := binary.LittleEndian.AppendUint64(nil, uint64(len(list)))
	end = binary.LittleEndian.AppendUint32(end, crc32.Checksum(list, castagnoli()))
	_, err := io.Copy(w, io.MultiReader(bytes.NewReader(list), bytes.NewReader(end), strings.NewReader(snapshotMark)))
	return cmp.Or(err, w.Flush())
}

// byKey orders documents by key; numbers are ordered by their value.
func byKey(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
