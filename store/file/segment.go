package file

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/durable"
)

// A box's segments lie in .team/inbox/NAME.segments: GENERATION-DELIVERED.jsonl, the second a byte offset. The live
// file's generation is one more than the highest there, and so stays the same when the live file becomes a segment. The
// last segment stays, empty, because no generation may come twice: places and the ids of mails without one are made of it.

// place is a place in a box: a byte offset in the file of a generation.
type place struct {
	gen uint32
	at  int64
}

func placeOf(p muster.Pos) place { return place{uint32(p >> 32), int64(uint32(p))} }

func (p place) pos() muster.Pos { return muster.Pos(p.gen)<<32 | muster.Pos(p.at) }

func (p place) String() string { return fmt.Sprintf("%d-%d", p.gen, p.at) }

// part is a segment or the live file.
type part struct {
	gen       uint32
	delivered int64
	path      string
	size      int64
	live      bool
	file      durable.File // open, when parts made it
	closed    error        // it cannot be opened: it is another user's, or none. What it has waits
}

func (b *box) segmentDir() string {
	return filepath.Join(b.s.dir.Inbox(), string(b.name)+".segments")
}

func (b *box) segment(gen uint32, delivered int64) string {
	return filepath.Join(b.segmentDir(), fmt.Sprintf("%08d-%d.jsonl", gen, delivered))
}

// segments lists the segments, oldest first.
func (b *box) segments() ([]part, error) {
	entries, err := b.s.fs.ReadDir(b.segmentDir())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, unreadable(b.segmentDir(), err)
	}
	var out []part
	for _, e := range entries {
		gen, delivered, ok := strings.Cut(strings.TrimSuffix(e.Name(), ".jsonl"), "-")
		g, err1 := strconv.ParseUint(gen, 10, 32)
		d, err2 := strconv.ParseInt(delivered, 10, 64)
		if !ok || err1 != nil || err2 != nil || g == 0 {
			continue
		}
		p := part{gen: uint32(g), delivered: d, path: filepath.Join(b.segmentDir(), e.Name())}
		if fi, err := b.s.fs.Stat(p.path); err == nil {
			p.size = fi.Size()
		}
		if p.delivered > p.size { // emptied, and its name was not changed any more
			p.delivered = 0
		}
		out = append(out, p)
	}
	slices.SortFunc(out, func(x, y part) int { return int(int64(x.gen) - int64(y.gen)) })
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range out {
		if b.since[p.gen].IsZero() {
			b.since[p.gen] = time.Now()
		}
	}
	return out, nil
}

func nextGen(segs []part) uint32 {
	if len(segs) == 0 {
		return 1
	}
	return segs[len(segs)-1].gen + 1
}

// parts opens the segments with something left and the live file. Peek takes no lock, so it looks whether a Drop has
// come between.
func (b *box) parts() ([]part, error) {
	for {
		segs, err := b.segments()
		if err != nil {
			return nil, err
		}
		out, ok := []part{}, true
		for _, p := range append(slices.Clone(segs), part{gen: nextGen(segs), path: b.live(), live: true}) {
			if !p.live && p.delivered == p.size {
				continue
			}
			p.file, p.size, err = logs{b.s}.open(p.path)
			if durable.Alone(err) {
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
		again, err := b.segments()
		same := func(x, y part) bool { return x.path == y.path }
		if err == nil && ok && slices.EqualFunc(segs, again, same) {
			return out, nil
		}
		closeAll(out)
		if err != nil {
			return nil, err
		}
	}
}

func closeAll(parts []part) {
	for _, p := range parts {
		if p.file != nil {
			p.file.Close()
		}
	}
}

// old reports whether p is a segment that nobody writes to any more.
func (b *box) old(p part) bool {
	if p.live {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Since(b.since[p.gen]) >= b.s.boxes.grace
}

// young reports whether the box has a segment that is to be cleaned later.
func (b *box) young() bool {
	segs, err := b.segments()
	if err != nil {
		return false
	}
	for _, p := range segs {
		if p.size > 0 && p.delivered == p.size && !b.old(p) {
			return true
		}
	}
	return false
}

// clean removes the segments that are delivered and old enough; the last one is only emptied. The box's lock is held.
func (b *box) clean() error {
	segs, err := b.segments()
	if err != nil {
		return err
	}
	for i, p := range segs {
		last := i == len(segs)-1
		if !b.old(p) || last && p.size == 0 {
			continue
		}
		if left, err := b.left(p); durable.Alone(err) {
			continue // it is kept: its mail comes when it can be read
		} else if err != nil {
			return err
		} else if left {
			b.s.watch.tell(b.s.dir.Inbox(), string(b.name)+".jsonl")
			continue
		}
		if !last {
			if err := b.s.files.Remove(p.path); err != nil {
				return err
			}
			b.forget(p.gen)
			continue
		}
		if err := b.s.files.Truncate(p.path, 0); err != nil {
			return err
		}
		if p.path != b.segment(p.gen, 0) {
			if err := b.s.files.Rename(p.path, b.segment(p.gen, 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *box) forget(gen uint32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.since, gen)
	for at := range b.rejected {
		if at.gen == gen {
			delete(b.rejected, at)
		}
	}
}

// left reports whether an old segment has something that is neither delivered nor set aside.
func (b *box) left(p part) (bool, error) {
	if p.delivered == p.size {
		return false, nil
	}
	var err error
	if p.file, p.size, err = (logs{b.s}).open(p.path); err != nil || p.file == nil {
		return false, err
	}
	defer p.file.Close()
	left := false
	err = p.scan(p.delivered, true, func(u unit) bool {
		b.mu.Lock()
		aside := u.why != "" && b.rejected[place{p.gen, u.start}]
		b.mu.Unlock()
		left = !aside
		return aside
	})
	return left, err
}

// unit is a mail, or what stands where one should.
type unit struct {
	start, end int64
	raw        []byte
	mail       muster.Message
	why        string // it is no mail
}

// id is the id of a mail whose sender gave it none. It stays the same when the live file becomes a segment.
func (u unit) id(gen uint32) muster.MessageID {
	return muster.MessageID(fmt.Sprintf("place-%d-%d-%08x", gen, u.start, crc32.Checksum(u.raw, castagnoli())))
}

// scan calls f with each unit from an offset on, until f returns false. What follows the last newline counts as far as
// it is whole objects; the rest of it only when nobody writes to the file any more.
func (p part) scan(from int64, old bool, f func(unit) bool) error {
	r := bufio.NewReaderSize(io.NewSectionReader(p.file, from, p.size-from), 64<<10)
	for at := from; ; {
		line, err := r.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		units, rest := split(line, at)
		if err == nil || old {
			if len(rest.raw) > 0 {
				units = append(units, rest)
			}
			if len(units) > 0 {
				units[len(units)-1].end = at + int64(len(line))
			}
		}
		for _, u := range units {
			if !f(u) {
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		at += int64(len(line))
	}
}

const blanks = " \t\r\n"

// split takes a line apart into its objects: mostly one, but a program that writes no newlines leaves several. rest is
// what comes after the last whole one.
func split(line []byte, at int64) (units []unit, rest unit) {
	text := bytes.TrimRight(line, blanks)
	if len(text) == 0 {
		return nil, unit{}
	}
	lead := len(text) - len(bytes.TrimLeft(text, blanks))
	if u := read(text[lead:], at+int64(lead)); u.why == "" {
		return []unit{u}, unit{}
	}
	d := json.NewDecoder(bytes.NewReader(text))
	for done := int64(0); done < int64(len(text)); done = d.InputOffset() {
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			left := bytes.TrimLeft(text[done:], blanks)
			return units, rejected(left, at+int64(len(text)-len(left)), "it is not a JSON object")
		}
		units = append(units, read(raw, at+d.InputOffset()-int64(len(raw))))
	}
	return units, unit{}
}

// read makes a unit of one object's bytes.
func read(raw []byte, at int64) unit {
	rec, why := unseal(raw)
	if why != "" {
		return rejected(raw, at, why)
	}
	u := unit{start: at, end: at + int64(len(raw)), raw: bytes.Clone(raw)}
	if err := json.Unmarshal(rec, &u.mail); err != nil {
		u.why = err.Error()
	}
	return u
}

func rejected(raw []byte, at int64, why string) unit {
	return unit{start: at, end: at + int64(len(raw)), raw: bytes.Clone(raw), why: why}
}
