package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"slices"

	"muster"
	"muster/internal/durable"
)

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
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, after-s.from, s.to-after), 64<<10)
	for pos := after; ; {
		line, err := r.ReadBytes('\n')
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
		pos += int64(len(line))
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		rec, why := verifyLine(line)
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
// found in earlier segments. It reads ever larger parts of the end, so the size of the file does not matter.
func (s logSegment) tail(n int) (place muster.Pos, more int, err error) {
	if s.file == nil {
		return muster.Pos(s.from), n, s.err
	}
	end, err := durable.LineStart(s.file, s.to-s.from)
	for size := min(end, 64<<10); err == nil; size = min(end, 4*size) {
		place, more = muster.Pos(s.from+end), n
		if n <= 0 {
			return place, 0, nil
		}
		var part []byte
		if part, err = durable.ReadPart(s.file, end-size, size); err != nil {
			break
		}
		for more > 0 && len(part) > 0 {
			start := 1 + bytes.LastIndexByte(part[:len(part)-1], '\n')
			if start == 0 && size < end {
				break // the line begins before the part
			}
			if len(bytes.TrimSpace(part[start:])) > 0 {
				place, more = muster.Pos(s.from+end-size+int64(start)), more-1
			}
			part = part[:start]
		}
		if more == 0 || size == end {
			return place, more, nil
		}
	}
	return 0, 0, errUnreadable(s.path, err)
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
