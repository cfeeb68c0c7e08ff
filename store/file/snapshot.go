package file

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
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
// A snapshot is not synced. The list and each content have checksums, so what a power loss leaves of the snapshot is
// either intact or not used. Everything in it can be read from the documents' own files.
//
// The format: the contents one after another; the list of their documents, in the same order; the trailer, which is the
// list's length, the list's revision and the mark. Each document in the list is the length of its key, its stamp, the
// checksum of its content, its revision and its key.
const snapshotMark = "muster snapshot 2\n"

const (
	// maxSnapshotList is how long a list may be, in bytes: enough for a million documents.
	maxSnapshotList = 256 << 20
	// revisionSize is the length of a revision.
	revisionSize = 32
	// minSnapshotAge is how long a snapshot is kept before it is written again, unless most of it is out of date.
	minSnapshotAge = 2 * time.Second
	// snapshotWriteTime is how long a snapshot that is being written keeps other processes from writing one.
	snapshotWriteTime = 10 * time.Second
)

// snapshot is an open snapshot. Only one goroutine may use it. A nil one has no content.
type snapshot struct {
	file durable.File
	made time.Time
	// contents reads on at the offset at. Contents are mostly asked for in their order.
	contents *bufio.Reader
	at       int64
}

// snapshotPath returns the path of the table's snapshot.
func (c *cache) snapshotPath() string {
	return filepath.Join(c.t.s.dir.Team(), "cache", c.t.name+".snapshot")
}

// openSnapshot opens the table's snapshot, and adds the documents in it to the cache. It returns nil if there is none
// that can be used. Whether the documents are still as the snapshot says is for the caller to find out.
func (c *cache) openSnapshot() *snapshot {
	f, err := c.t.s.fs.OpenFile(c.snapshotPath(), os.O_RDONLY, 0)
	if err != nil {
		return nil
	}
	fi, err := f.Stat()
	if err == nil {
		var list []byte
		if list, err = readList(f, fi.Size()); err == nil && c.restore(list, fi.Size()) {
			return &snapshot{file: f, made: fi.ModTime(), at: -1,
				contents: bufio.NewReaderSize(nil, int(min(64<<10, fi.Size())))}
		}
	}
	_ = f.Close()
	return nil
}

// errNoSnapshot is the error for a file that is no snapshot, or not a whole one.
var errNoSnapshot = errors.New("not a whole snapshot")

// readList returns the list of a snapshot. The mark is the last thing that is written, so a file that was cut off has
// none.
func readList(f io.ReaderAt, size int64) ([]byte, error) {
	end := size - int64(8+revisionSize+len(snapshotMark))
	if end < 0 {
		return nil, errNoSnapshot
	}
	trailer, err := durable.ReadPart(f, end, size-end)
	if err != nil {
		return nil, err
	}
	length := binary.LittleEndian.Uint64(trailer)
	if string(trailer[8+revisionSize:]) != snapshotMark || length > uint64(min(end, maxSnapshotList)) {
		return nil, errNoSnapshot
	}
	list, err := durable.ReadPart(f, end-int64(length), int64(length))
	if err == nil && revOf(list) != muster.Rev(trailer[8:8+revisionSize]) {
		err = errNoSnapshot
	}
	return list, err
}

// restore adds the documents of a list to the cache. It returns false if appendEntry did not write the list: a checksum
// keeps damage out, and nobody who can write to the directory. What was added before is harmless, because the scan that
// follows looks at every document.
func (c *cache) restore(list []byte, size int64) bool {
	numbers := make([]int64, 6)
	for stored := int64(1); len(list) > 0; stored += numbers[1] {
		n, err := binary.Decode(list, binary.LittleEndian, numbers)
		left := int64(len(list) - n - revisionSize)
		if err != nil || numbers[0] < 0 || numbers[0] > left || numbers[1] < 0 ||
			numbers[1] > min(c.t.limit, size-stored) {
			return false
		}
		text := string(list[n : n+revisionSize+int(numbers[0])])
		if c.t.check(text[revisionSize:]) != nil || c.docs[text[revisionSize:]] != nil {
			return false
		}
		d := &docState{
			key: text[revisionSize:], rev: muster.Rev(text[:revisionSize]), stored: stored, sum: uint32(numbers[5]),
			file: stamp{numbers[1], uint64(numbers[2]), numbers[3], numbers[4]},
		}
		list = list[n+len(text):]
		c.docs[d.key] = d
		c.bumpMark(d)
	}
	return true
}

// appendEntry appends a document with this content to the list of a snapshot.
func appendEntry(list []byte, d *docState, data []byte) []byte {
	sum := int64(crc32.Checksum(data, castagnoli()))
	for _, n := range []int64{int64(len(d.key)), d.file.size, int64(d.file.inode), d.file.mtime, d.file.ctime, sum} {
		list = binary.LittleEndian.AppendUint64(list, uint64(n))
	}
	return append(append(list, d.rev...), d.key...)
}

// content returns the content of a document. It returns false if the snapshot does not have it whole.
func (s *snapshot) content(d docState) ([]byte, bool) {
	if s == nil || d.stored == 0 {
		return nil, false
	}
	// Only a step back starts a new read. A gap, of a document that has changed, is read over.
	at := d.stored - 1
	if s.at < 0 || at < s.at {
		s.contents.Reset(io.NewSectionReader(s.file, at, 1<<62))
	} else {
		_, _ = s.contents.Discard(int(at - s.at)) // an error comes again
	}
	data := make([]byte, d.file.size)
	n, err := io.ReadFull(s.contents, data)
	s.at = at + int64(n)
	return data, err == nil && crc32.Checksum(data, castagnoli()) == d.sum
}

// close closes the snapshot.
func (s *snapshot) close() {
	if s != nil {
		_ = s.file.Close()
	}
}

// save writes a snapshot after a first look in which so many files were not as the snapshot said. Errors are ignored,
// because it is a cache. The snapshot gets its name by a rename, so a reader sees a whole one.
func (c *cache) save(found lookResult, misses int) {
	if misses < c.t.s.snapshotFrom || 4*misses < len(c.docs) || c.t.s.files.Ended() != nil {
		return
	}
	// Several processes that start in a row and find the same few changes must not each write the whole file.
	if found.old != nil && time.Since(found.old.made) < minSnapshotAge && 4*misses < 3*len(c.docs) {
		return
	}
	var docs []*docState
	living := 0
	for _, d := range c.docs {
		if d.rev == muster.None {
			continue
		}
		if living++; d.bad == nil && d.file.ctime != 0 {
			docs = append(docs, d)
		}
	}
	on, path := c.t.s.fs, c.snapshotPath()
	if living == 0 {
		_ = on.Remove(path)
	}
	if len(docs) == 0 || 2*len(docs) < living {
		return // most are too young
	}
	// Where another program's board has no .team, this fails: looking at it must create nothing.
	if err := on.Mkdir(filepath.Dir(path), 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return
	}
	if c.isBeingSaved() {
		return
	}
	temp := filepath.Join(filepath.Dir(path), durable.TemporaryName(filepath.Base(path)))
	failpoint.Hit("snapshot.begin")
	f, err := on.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return
	}
	slices.SortFunc(docs, func(a, b *docState) int { return byKey(a.key, b.key) })
	err = errors.Join(writeSnapshot(f, docs, found), f.Close())
	failpoint.Hit("snapshot.written")
	if err == nil {
		err = on.Rename(temp, path)
	}
	if err != nil {
		_ = on.Remove(temp)
	}
	failpoint.Hit("snapshot.named")
}

// isBeingSaved reports whether another process writes the snapshot right now. All processes of a team may start at
// once, and only one of them is to write the large file. What a dead process left keeps nobody from it, and is removed.
func (c *cache) isBeingSaved() bool {
	on, dir := c.t.s.fs, filepath.Dir(c.snapshotPath())
	names, _ := on.Names(dir) // what cannot be listed cannot be written either
	for _, name := range names {
		if !durable.IsTemporary(name) || !strings.HasPrefix(name, "."+filepath.Base(c.snapshotPath())+".") {
			continue
		}
		path := filepath.Join(dir, name)
		fi, err := on.Stat(path)
		if err != nil {
			continue
		}
		if time.Since(fi.ModTime()).Abs() < snapshotWriteTime && !durable.IsAbandoned(name, fi.ModTime()) {
			return true
		}
		_ = on.Remove(path)
	}
	return false
}

// writeSnapshot writes the contents, the list, and the trailer.
func writeSnapshot(to io.Writer, docs []*docState, found lookResult) error {
	w := bufio.NewWriterSize(to, 1<<18)
	var list []byte
	for _, d := range docs {
		data, ok := found.content(*d)
		// A content of another size than its file had was stripped of a byte order mark, and would not match the stamp.
		if !ok || int64(len(data)) != d.file.size {
			continue
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		list = appendEntry(list, d, data)
	}
	trailer := binary.LittleEndian.AppendUint64(nil, uint64(len(list)))
	trailer = append(append(trailer, revOf(list)...), snapshotMark...)
	_, err := w.Write(append(list, trailer...))
	return errors.Join(err, w.Flush())
}
