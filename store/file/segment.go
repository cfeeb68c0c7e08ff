package file

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"muster"
	"muster/internal/durable"
)

// The segments of an inbox lie in .team/inbox/NAME.segments. Their names are GENERATION-DELIVERED.jsonl, where
// DELIVERED is the byte offset up to which mail was delivered. The generation of the live file is one more than the
// highest among the segments, so it stays the same when the live file becomes a segment. The last segment is never
// removed, only emptied: no generation may be used twice, because positions, and the ids of mails that came without
// one, depend on it.

// place is a position in an inbox: a byte offset in the file of a generation.
type place struct {
	gen uint32
	at  int64
}

// placeOf splits a position: the generation is in its upper 32 bits, so positions grow over the life of an inbox.
func placeOf(p muster.Pos) place { return place{uint32(p >> 32), int64(uint32(p))} }

// pos is the reverse of placeOf.
func (p place) pos() muster.Pos { return muster.Pos(p.gen)<<32 | muster.Pos(p.at) }

// String returns the place as messages and the names of rejected lines have it.
func (p place) String() string { return fmt.Sprintf("%d-%d", p.gen, p.at) }

// boxFile is a segment or the live file of an inbox.
type boxFile struct {
	gen       uint32
	delivered int64
	path      string
	size      int64
	live      bool
	// file is open if openFiles made the value.
	file durable.File
	// closed says why the file cannot be opened: it belongs to another user, or is no regular file. Its mail waits.
	closed error
}

// segmentDir returns the directory of the segments.
func (b *box) segmentDir() string {
	return filepath.Join(b.s.dir.Inbox(), string(b.name)+".segments")
}

// segment returns the path of a segment of which mail was delivered up to an offset.
func (b *box) segment(gen uint32, delivered int64) string {
	return filepath.Join(b.segmentDir(), fmt.Sprintf("%08d-%d.jsonl", gen, delivered))
}

// segments lists the segments, oldest first, and remembers when each was first seen.
func (b *box) segments() ([]boxFile, error) {
	names, err := b.s.fs.Names(b.segmentDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errUnreadable(b.segmentDir(), err)
	}
	var out []boxFile
	for _, name := range names {
		p := boxFile{path: filepath.Join(b.segmentDir(), name)}
		// Sscanf ignores what follows. A copy such as NAME.bak is not ours, and must not take its place.
		n, _ := fmt.Sscanf(name, "%d-%d.jsonl", &p.gen, &p.delivered)
		if n < 2 || p.gen == 0 || p.delivered < 0 || p.path != b.segment(p.gen, p.delivered) {
			continue
		}
		if fi, err := b.s.fs.Stat(p.path); err == nil {
			p.size = fi.Size()
		}
		if p.delivered > p.size { // emptied, and its name was not changed any more
			p.delivered = 0
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y boxFile) int {
		return cmp.Or(cmp.Compare(x.gen, y.gen), cmp.Compare(x.delivered, y.delivered))
	})
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range out {
		if b.firstSeen[p.gen].IsZero() {
			b.firstSeen[p.gen] = time.Now()
		}
	}
	return out, nil
}

// nextGen returns the generation of the live file.
func nextGen(segs []boxFile) uint32 {
	if len(segs) == 0 {
		return 1
	}
	return segs[len(segs)-1].gen + 1
}

// openFiles opens the live file and the segments that have something left. Peek takes no lock, so it checks whether a
// Drop has come between, and if so, starts again.
func (b *box) openFiles() ([]boxFile, error) {
	for {
		segs, err := b.segments()
		if err != nil {
			return nil, err
		}
		out, ok := []boxFile{}, true
		for _, p := range append(slices.Clone(segs), boxFile{gen: nextGen(segs), path: b.livePath(), live: true}) {
			if !p.live && p.delivered == p.size {
				continue
			}
			p.file, p.size, err = logs{b.s}.open(p.path)
			if durable.ConcernsOneFile(err) {
				p.closed, err = durable.Unreadable(b.s.fs, p.path, err), nil
			}
			if err != nil {
				closeAll(out)
				return nil, err
			}
			if p.file != nil || p.closed != nil {
				out = append(out, p)
			} else if !p.live {
				ok = false
			}
		}
		// A Drop renames files. If the list of segments is the same afterwards, none came between, and the opened files
		// together are the inbox of one moment. Otherwise a mail could be in two of them or in none.
		again, err := b.segments()
		same := func(x, y boxFile) bool { return x.path == y.path }
		if err == nil && ok && slices.EqualFunc(segs, again, same) {
			return out, nil
		}
		closeAll(out)
		if err != nil {
			return nil, err
		}
	}
}

// closeAll closes files that were only read.
func closeAll(parts []boxFile) {
	for _, p := range parts {
		if p.file != nil {
			_ = p.file.Close()
		}
	}
}

// isOld reports whether p is a segment that nobody writes to any more. A program that opened the live file before it
// was renamed may write to the segment for a moment; the grace is counted from when this process saw the segment first.
func (b *box) isOld(p boxFile) bool {
	if p.live {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.firstSeen[p.gen]) >= b.s.boxes.grace
}

// clean removes the segments that are delivered and old enough. The last one is only emptied, because its name keeps
// the generation. again reports that delivered segments remain that are to be removed when they are old. The caller
// holds the lock of the inbox.
func (b *box) clean() (again bool, err error) {
	segs, err := b.segments()
	if err != nil {
		return false, err
	}
	for i, p := range segs {
		last := i == len(segs)-1
		if !b.isOld(p) {
			again = again || p.size > 0 && p.delivered == p.size
			continue
		}
		if last && p.size == 0 {
			continue
		}
		// A late writer may have added mail after the Drop that counted the segment as delivered. It must be delivered
		// before the segment goes.
		if left, err := b.hasUndelivered(p); durable.ConcernsOneFile(err) {
			continue // it is kept: its mail comes when it can be read
		} else if err != nil {
			return again, err
		} else if left {
			b.s.watch.notify(b.s.dir.Inbox(), string(b.name)+".jsonl")
			continue
		}
		if !last {
			if err := b.s.files.Remove(p.path); err != nil {
				return again, err
			}
			b.forget(p.gen)
			continue
		}
		// First empty, then rename: after a crash in between, the delivered offset is beyond the end of the file, which
		// segments takes for 0. The other order would leave delivered mail in a segment that says nothing was
		// delivered, and deliver it twice.
		if err := b.s.files.Truncate(p.path, 0); err != nil {
			return again, err
		}
		if p.path != b.segment(p.gen, 0) {
			if err := b.s.files.Rename(p.path, b.segment(p.gen, 0)); err != nil {
				return again, err
			}
		}
	}
	return again, nil
}

// forget removes what is known of a generation.
func (b *box) forget(gen uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.firstSeen, gen)
	maps.DeleteFunc(b.rejected, func(at place, _ bool) bool { return at.gen == gen })
}

// hasUndelivered reports whether an old segment holds something that was neither delivered nor quarantined.
func (b *box) hasUndelivered(p boxFile) (bool, error) {
	if p.delivered == p.size {
		return false, nil
	}
	var err error
	if p.file, p.size, err = (logs{b.s}).open(p.path); err != nil || p.file == nil {
		return false, err
	}
	defer func() { _ = p.file.Close() }()
	left := false
	err = p.scan(p.delivered, true, func(u unit) bool {
		b.mu.Lock()
		aside := u.why != "" && b.rejected[u.place()]
		b.mu.Unlock()
		left = !aside
		return aside
	})
	return left, err
}

// unit is a mail, or what stands where one should. why says why it is no mail.
type unit struct {
	gen        uint32 // of the file that it is in
	start, end int64
	raw        []byte
	mail       muster.Message
	why        string // why it is no mail; "" if it is one
}

// place returns where the unit begins.
func (u unit) place() place { return place{u.gen, u.start} }

// id returns the id of a mail whose sender gave it none. It stays the same when the live file becomes a segment.
func (u unit) id() muster.MessageID {
	return muster.MessageID(fmt.Sprintf("place-%s-%08x", u.place(), crc32.Checksum(u.raw, castagnoli())))
}

// scan calls f with each unit from an offset on, until f returns false. After the last newline, whole objects count;
// the rest counts only when nobody writes to the file any more.
func (p boxFile) scan(from int64, old bool, f func(unit) bool) error {
	r := durable.NewLineReader(p.file, from, p.size)
	for at := from; ; {
		line, size, err := durable.ReadLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		units, rest := splitObjects(line, at)
		if size > durable.MaxLine {
			rest = unit{start: at, end: at + size, raw: []byte{}, why: "it is longer than 32 MiB"}
		}
		// The rest of a line without its newline may be a mail that is just being written.
		if err == nil || old {
			if rest.why != "" {
				units = append(units, rest)
			}
			if len(units) > 0 {
				units[len(units)-1].end = at + size
			}
		}
		for _, u := range units {
			if u.gen = p.gen; !f(u) {
				return nil
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		at += size
	}
}

// blanks are the white space between objects, as JSON defines it.
const blanks = " \t\r\n"

// maxObjects is how many objects of a line are read: each takes hundreds of bytes of memory, however short it is.
const maxObjects = 10_000

// splitObjects splits a line into its objects. There is mostly one, but a program that writes no newlines leaves
// several. rest is what follows the last whole one.
func splitObjects(line []byte, at int64) (units []unit, rest unit) {
	text := bytes.TrimRight(line, blanks)
	if len(text) == 0 {
		return nil, unit{}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for done := int64(0); done < int64(len(text)); done = d.InputOffset() {
		var raw json.RawMessage
		why := "a line has more than 10,000 objects"
		if len(units) < maxObjects {
			if why = ""; d.Decode(&raw) != nil {
				why = "it is not a JSON object"
			}
		}
		if why != "" {
			left, end := bytes.TrimLeft(text[done:], blanks), at+int64(len(text))
			return units, unit{start: end - int64(len(left)), end: end, raw: left, why: why}
		}
		units = append(units, parseUnit(raw, at+d.InputOffset()-int64(len(raw))))
	}
	return units, unit{}
}

// parseUnit parses the bytes of one object, and keeps them.
func parseUnit(raw []byte, at int64) unit {
	u := unit{start: at, end: at + int64(len(raw)), raw: raw}
	rec, why := verifyLine(bytes.Clone(raw))
	if why == "" {
		if err := json.Unmarshal(rec, &u.mail); err != nil {
			why = err.Error()
		}
	}
	u.why = why
	return u
}
