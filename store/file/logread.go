package file

import (
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
		w, err := l.openLog(path)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		defer w.close()
		gone := func() {
			yield(muster.Record{}, muster.Errorf(muster.Trimmed, "the place %d of %s is not there any more", after,
				path))
		}
		// A position that was trimmed is an error, not a jump: who reads from a stored position relies on seeing all
		// records after it.
		oldest := after == 0 // the beginning is where what is left of the stream begins
		for _, s := range w.old {
			if uint64(after) >= uint64(s.to) {
				continue
			}
			f, _, err := l.open(s.path)
			if err != nil {
				yield(muster.Record{}, err)
				return
			}
			if oldest {
				if f == nil { // trimmed just now
					after = muster.Pos(s.to)
					continue
				}
				after, oldest = muster.Pos(s.from), false
			}
			if f == nil || !startsLine(f, int64(after)-s.from, s.to-s.from) {
				if f != nil {
					_ = f.Close()
				}
				gone()
				return
			}
			on := l.readFile(ctx, f, s.path, s.from, int64(after), s.to, yield)
			_ = f.Close()
			if !on {
				return
			}
			after = muster.Pos(s.to)
		}
		from := w.base()
		if !startsLine(w.live, int64(after)-from, w.size) {
			gone()
			return
		}
		if w.live != nil {
			l.readFile(ctx, w.live, path, from, int64(after), from+w.size, yield)
		}
	}
}

// readFile yields the records of one file between two positions. from is the position at which the file begins. It
// returns false if the caller must not go on with the next file.
func (l logs) readFile(ctx context.Context, f durable.File, path string, from, after, to int64,
	yield func(muster.Record, error) bool) bool {
	r := lineReader{f: f, at: after - from, end: to - from}
	for pos := after; ; {
		line, err := r.next()
		if errors.Is(err, io.EOF) {
			return true // with what has no newline yet
		}
		if err == nil {
			err = ctx.Err()
		} else {
			err = errUnreadable(path, err)
		}
		if err != nil {
			yield(muster.Record{}, err)
			return false
		}
		start := pos - from
		pos += int64(len(line))
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			continue
		}
		rec, why := verifyLineInPlace(line)
		var bad error
		if why != "" {
			bad = muster.Errorf(muster.Corrupt, "the line at byte %d of %s is damaged: %s", start, path, why)
		}
		if !yield(muster.Record{Pos: muster.Pos(pos), Data: rec}, bad) {
			return false
		}
	}
}

// lineReader reads the lines of a part of a file in large blocks.
type lineReader struct {
	f       io.ReaderAt
	at, end int64  // what is not yet read
	left    []byte // what is read and not yet returned
	err     error  // comes after that
}

// lineBlock is how many bytes are read at a time.
const lineBlock = 64 << 10

// next returns the next line with its newline; the line belongs to the caller. It returns io.EOF if no whole line
// follows.
func (r *lineReader) next() ([]byte, error) {
	for {
		if size := bytes.IndexByte(r.left, '\n') + 1; size > 0 {
			line := r.left[:size:size]
			r.left = r.left[size:]
			return line, nil
		}
		if r.err == nil && r.at >= r.end {
			r.err = io.EOF
		}
		if r.err != nil {
			return nil, r.err
		}
		// A new block: what was returned of the last one is its receiver's. A line that is longer than one doubles it.
		more := min(int64(max(lineBlock, len(r.left))), r.end-r.at)
		block := make([]byte, len(r.left)+int(more))
		copy(block, r.left)
		n, err := r.f.ReadAt(block[len(r.left):], r.at)
		r.left, r.at, r.err = block[:len(r.left)+n], r.at+int64(n), err
	}
}

// Tail returns the position that the last n records follow.
func (l logs) Tail(ctx context.Context, stream string, n int) (muster.Pos, error) {
	path, err := l.path(ctx, stream)
	if err != nil {
		return 0, err
	}
	w, err := l.openLog(path)
	if err != nil {
		return 0, err
	}
	defer w.close()
	place := w.base()
	if w.live != nil {
		end, err := durable.LineStart(w.live, w.size)
		if err != nil {
			return 0, errUnreadable(path, err)
		}
		if place, n, err = tailPosition(w.live, place, end, n); err != nil {
			return 0, errUnreadable(path, err)
		}
	}
	for _, s := range slices.Backward(w.old) {
		if n <= 0 {
			break
		}
		f, _, err := l.open(s.path)
		if err != nil {
			return 0, err
		}
		if f == nil { // trimmed just now
			break
		}
		place, n, err = tailPosition(f, s.from, s.to-s.from, n)
		_ = f.Close()
		if err != nil {
			return 0, errUnreadable(s.path, err)
		}
	}
	return muster.Pos(place), nil
}

// tailPosition returns the position before the last n records of a file of end bytes that begins at position from.
// more is how many records are still to be found in earlier files.
func tailPosition(f durable.File, from, end int64, n int) (place int64, more int, err error) {
	place = from + end // the oldest record so far starts here
	block := make([]byte, 64<<10)
	blank := true // of the line that we are in, from its end
	for at := end; at > 0 && n > 0; {
		b := block[:min(int64(len(block)), at)]
		at -= int64(len(b))
		if _, err := f.ReadAt(b, at); err != nil && !errors.Is(err, io.EOF) {
			return 0, 0, err
		}
		for i := len(b) - 1; i >= 0; i-- {
			switch b[i] {
			case '\n':
				if !blank {
					place = from + at + int64(i) + 1
					if n--; n == 0 {
						return place, 0, nil
					}
				}
				blank = true
			case ' ', '\t', '\r':
			default:
				blank = false
			}
		}
		if at == 0 && !blank {
			place = from
			n--
		}
	}
	return place, n, nil
}

// startsLine reports whether a line may start at an offset: at the beginning of a file or after a newline. A position
// that is in the middle of a line is one of another stream, or the file was replaced.
func startsLine(f durable.File, at, size int64) bool {
	if at == 0 {
		return true
	}
	if f == nil || at < 0 || at > size {
		return false
	}
	before := make([]byte, 1)
	_, err := f.ReadAt(before, at-1)
	return err == nil && before[0] == '\n'
}
