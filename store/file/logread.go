package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/durable"
)

// Streams are rotated: when events.jsonl is large, it is renamed to events.N.jsonl, where N is the position of its
// end. Positions continue in the next file, so a stored position stays valid. The name alone says where a file begins,
// and a missing live file is an empty one, so a crash in the middle leaves nothing to repair: the rename has happened
// or not.

// rotateAt is the size, in bytes, from which a file is rotated. keepRotated is how many bytes of rotated files are kept
// at least: a stream takes up to 384 MB, however long its team works. That is many times what the longest conversation
// takes, so the last one of a transcript is always there.
const (
	rotateAt    = 64 << 20
	keepRotated = 4 * rotateAt
)

// logSegment is an open file of a stream. It holds the positions after from, up to to.
type logSegment struct {
	path     string
	from, to int64
	file     durable.File // nil: there is no live file, or err says why the file cannot be read
	err      error
}

// isCopy reports whether a stream is a copy for other programs: the claims, and what happened to lanes. Of its rotated
// files only the last one is kept, and its positions begin anew, because nobody stores them: to know where the live
// file begins, each append would have to list the directory of all tasks.
func (l logs) isCopy(path string) bool {
	return filepath.Dir(path) == l.s.dir.Tasks() || filepath.Dir(path) == l.s.dir.Worktrees()
}

// rotatedPath returns the name of a rotated file that ends at a position.
func (l logs) rotatedPath(path string, to int64) string {
	number := strconv.FormatInt(to, 10)
	if l.isCopy(path) {
		number = "old"
	}
	return strings.TrimSuffix(path, "jsonl") + number + ".jsonl"
}

// rotatedEnds returns the positions at which the rotated files of a stream end, in order, after a zero. The live file
// begins at the last of them.
func (l logs) rotatedEnds(path string) ([]int64, error) {
	ends := []int64{0}
	if l.isCopy(path) {
		return ends, nil
	}
	names, err := l.s.fs.Names(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errUnreadable(filepath.Dir(path), err)
	}
	for _, name := range names {
		digits := strings.TrimPrefix(name, strings.TrimSuffix(filepath.Base(path), "jsonl"))
		to, err := strconv.ParseInt(strings.TrimSuffix(digits, ".jsonl"), 10, 64)
		if err == nil && to > 0 && name == filepath.Base(l.rotatedPath(path, to)) {
			ends = append(ends, to)
		}
	}
	slices.Sort(ends)
	return ends, nil
}

// openLog opens the files of a stream that hold something after a position, oldest first; the last one is the live
// file. The caller closes them. Readers take no lock. What is open keeps its content when it is rotated or trimmed, so
// only the position at which the live file begins has to be checked: if the live file was rotated between the list and
// the open, the opened file begins at another position than the list says, and each position in it would be wrong.
func (l logs) openLog(path string, after muster.Pos) ([]logSegment, error) {
	for {
		ends, err := l.rotatedEnds(path)
		if err != nil {
			return nil, err
		}
		all := l.openSegments(path, ends, after)
		again, err := l.rotatedEnds(path)
		if err == nil && slices.Max(again) == slices.Max(ends) {
			return all, nil
		}
		closeSegments(all)
		if err != nil {
			return nil, err
		}
	}
}

// openSegments is openLog with the given ends of the rotated files. It stops at a gap, because what lies before one was
// trimmed.
func (l logs) openSegments(path string, ends []int64, after muster.Pos) []logSegment {
	last := len(ends) - 1
	live := logSegment{path: path, from: ends[last]}
	var size int64
	live.file, size, live.err = l.open(path)
	live.to = live.from + size
	all := []logSegment{live}
	for i := last; i > 0 && uint64(ends[i]) > uint64(after); i-- {
		s := logSegment{path: l.rotatedPath(path, ends[i]), from: ends[i-1], to: ends[i]}
		s.file, size, s.err = l.open(s.path)
		if s.file == nil && s.err == nil {
			break // removed just now
		}
		// What a program without our lock has appended since lies behind the end: it is not in the stream.
		if s.err == nil {
			s.from = max(s.from, s.to-size)
		}
		if all = append(all, s); s.from > ends[i-1] {
			break // what was before it is gone
		}
	}
	slices.Reverse(all)
	return all
}

// closeSegments closes the files of segments.
func closeSegments(all []logSegment) {
	for _, s := range all {
		if s.file != nil {
			_ = s.file.Close()
		}
	}
}

// rotate renames the file of a tail after its end position and opens the next one. The caller holds the stream's lock,
// and the tail has no torn part.
func (l logs) rotate(t *durable.Tail, path string, from int64) (*durable.Tail, error) {
	defer func() { _ = t.Close() }()
	end := from + t.End()
	// What AppendSoon wrote is promised by the next append, which would sync another file.
	if _, err := t.Append(nil); err != nil {
		return nil, err
	}
	if err := l.s.files.Rename(path, l.rotatedPath(path, end)); err != nil {
		return nil, err
	}
	// The oldest files go after the rename. A crash in between leaves one more, until the next rotation. What cannot be
	// removed must not keep anybody from writing, and is tried again then.
	_ = l.trim(path, end-l.s.keepRotated)
	return l.s.files.OpenTail(path)
}

// Trim removes rotated files that end at the position or before it. It keeps the last one, whose name says where the
// live file begins.
func (l logs) Trim(ctx context.Context, stream string, before muster.Pos) error {
	path, err := l.path(ctx, stream)
	if err != nil {
		return err
	}
	unlock, err := l.lock(ctx, stream)
	if err != nil {
		return err
	}
	defer unlock()
	return l.trim(path, int64(min(before, math.MaxInt64)))
}

// trim is Trim for a caller that holds the stream's lock.
func (l logs) trim(path string, before int64) error {
	ends, err := l.rotatedEnds(path)
	if err != nil {
		return err
	}
	for _, end := range ends[1:max(1, len(ends)-1)] { // the oldest first: a crash leaves no gap
		if end > before {
			return nil
		}
		if err := l.s.files.Remove(l.rotatedPath(path, end)); err != nil {
			return err
		}
	}
	return nil
}

// Read yields the records after a position; from 0 on, those that were not trimmed. A last line without its newline is
// not a record yet.
func (l logs) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		path, err := l.path(ctx, stream)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		all, err := l.openLog(path, after)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		defer closeSegments(all)
		if after == 0 { // the beginning is where what is left of the stream begins
			after = muster.Pos(all[0].from)
		}
		for _, s := range all {
			// A position that was trimmed is an error, not a jump: who reads from a stored position relies on seeing
			// all records after it.
			err := s.err
			if err == nil && !s.startsLine(int64(after)) {
				err = muster.Errorf(muster.Trimmed, "the place %d of %s is not there any more", after, path)
			}
			if err != nil {
				yield(muster.Record{}, err)
				return
			}
			if !s.read(ctx, int64(after), yield) {
				return
			}
			after = muster.Pos(s.to)
		}
	}
}

// read yields the records of an open segment after a position. It returns false if the caller must not go on with the
// next segment.
func (s logSegment) read(ctx context.Context, after int64, yield func(muster.Record, error) bool) bool {
	if s.file == nil {
		return true
	}
	r := durable.NewLineReader(s.file, after-s.from, s.to-s.from)
	for pos := after; ; {
		line, size, err := durable.ReadLine(r)
		if errors.Is(err, io.EOF) {
			return true // with what has no newline yet
		}
		if err == nil {
			err = ctx.Err()
		} else {
			err = errUnreadable(s.path, err)
		}
		if err != nil {
			yield(muster.Record{}, err)
			return false
		}
		start := pos - s.from
		pos += size
		rec, why := []byte(nil), "it is longer than 32 MiB"
		if line != nil {
			if line = bytes.TrimSpace(line); len(line) == 0 {
				continue
			}
			rec, why = verifyLine(line)
		}
		var bad error
		if why != "" {
			bad = muster.Errorf(muster.Corrupt, "the line at byte %d of %s is damaged: %s", start, s.path, why)
		}
		if !yield(muster.Record{Pos: muster.Pos(pos), Data: rec}, bad) {
			return false
		}
	}
}

// Tail returns the position that the last n records follow.
func (l logs) Tail(ctx context.Context, stream string, n int) (muster.Pos, error) {
	path, err := l.path(ctx, stream)
	if err != nil {
		return 0, err
	}
	return l.tail(path, n)
}

// tail returns the position that the last n records of the stream with that file follow.
func (l logs) tail(path string, n int) (place muster.Pos, err error) {
	after := muster.Pos(0)
	if n <= 0 { // the end is in the live file
		after = muster.Anywhere
	}
	all, err := l.openLog(path, after)
	if err != nil {
		return 0, err
	}
	defer closeSegments(all)
	for _, s := range slices.Backward(all) {
		if place, n, err = s.tail(n); err != nil || n <= 0 {
			break
		}
	}
	return place, err
}

// tail returns the position before the last n records of an open segment. more is how many records are still to be
// found in earlier segments. It goes backwards in blocks, so neither the size of the file nor the length of a line
// matters.
func (s logSegment) tail(n int) (place muster.Pos, more int, err error) {
	if s.file == nil {
		return muster.Pos(s.from), n, s.err
	}
	end, err := durable.LineStart(s.file, s.to-s.from)
	place, more = muster.Pos(s.from+end), n
	hasText := false // the line that is being looked at is more than white space
	for at := end; err == nil && at > 0 && more > 0; {
		var part []byte
		if part, err = durable.ReadPart(s.file, at-min(at, 64<<10), min(at, 64<<10)); err != nil {
			break
		}
		at -= int64(len(part))
		for more > 0 {
			start := 1 + bytes.LastIndexByte(part, '\n') // of the line; 0 if it begins before the part
			hasText = hasText || len(bytes.TrimSpace(part[start:])) > 0
			if start == 0 && at > 0 {
				break
			}
			if hasText {
				place, more, hasText = muster.Pos(s.from+at+int64(start)), more-1, false
			}
			if start == 0 {
				break
			}
			part = part[:start-1]
		}
	}
	if err != nil {
		return 0, 0, errUnreadable(s.path, err)
	}
	return place, more, nil
}

// startsLine reports whether a line may start at a position of an open segment: at its beginning or after a newline. A
// position that is in the middle of a line is one of another stream, or the file was replaced.
func (s logSegment) startsLine(pos int64) bool {
	if pos == s.from {
		return true
	}
	if s.file == nil || pos < s.from || pos > s.to {
		return false
	}
	before, err := durable.ReadPart(s.file, pos-s.from-1, 1)
	return err == nil && before[0] == '\n'
}
