package file

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// logs is the streams: files of lines. A place is the byte offset of a line's end, counted from the first of the files
// that a stream was rotated into (rotate.go).
type logs struct{ s *Store }

// path is the file of a stream.
func (l logs) path(ctx context.Context, stream string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	d := l.s.dir
	if name, ok := strings.CutPrefix(stream, muster.StreamTranscripts); ok {
		return filepath.Join(d.Transcripts(), name, "log.jsonl"), checkName("the name of a transcript", name)
	}
	switch stream {
	case muster.StreamClaims:
		return filepath.Join(d.Tasks(), "claim_events.jsonl"), nil
	case muster.StreamLanes:
		return filepath.Join(d.Worktrees(), "events.jsonl"), nil
	}
	return filepath.Join(d.Team(), stream+".jsonl"), checkName("the name of a stream", stream)
}

// Append adds recs if the stream still ends at at: one write, one sync.
func (l logs) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	return l.append(ctx, (*durable.Tail).Append, true, stream, at, recs...)
}

// AppendSoon adds recs at the end without waiting for the disk: a killed process loses nothing of them, a power loss
// what no later Append to the stream has made durable.
func (l logs) AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error) {
	return l.append(ctx, (*durable.Tail).Write, false, stream, muster.Anywhere, recs...)
}

// append appends recs with write; together: those of several goroutines at once, for the sake of the sync.
func (l logs) append(ctx context.Context, write func(*durable.Tail, []byte) (int64, error), together bool, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	path, err := l.path(ctx, stream)
	if err != nil {
		return 0, err
	}
	var lines []byte
	for _, r := range recs {
		if err := checkRecord(stream, r); err != nil {
			return 0, err
		}
		lines = append(lines, seal(r)...)
	}
	if together && at == muster.Anywhere && len(lines) > 0 {
		return l.s.groups.append(ctx, "log "+stream, lines,
			func() (func(), error) { return l.lock(ctx, stream) },
			func(all []byte) (muster.Pos, error) { return l.appendLocked(write, stream, path, at, all) })
	}
	unlock, err := l.lock(ctx, stream)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return l.appendLocked(write, stream, path, at, lines)
}

func (l logs) lock(ctx context.Context, stream string) (unlock func(), err error) {
	return l.s.lock(ctx, "log", strings.ReplaceAll(stream, "/", "-"))
}

// appendLocked appends lines at a place; the stream's lock is held.
func (l logs) appendLocked(write func(*durable.Tail, []byte) (int64, error), stream, path string, at muster.Pos, lines []byte) (muster.Pos, error) {
	if len(lines) == 0 || at != muster.Anywhere && at != 0 { // nothing may be made when there is nothing to do
		end, err := l.end(path)
		if err != nil {
			return 0, err
		}
		if at != muster.Anywhere && at != end {
			return end, movedOn(stream, at, end)
		}
		if len(lines) == 0 {
			return end, nil
		}
	}
	old, err := l.rotated(path)
	if err != nil {
		return 0, err
	}
	t, err := l.s.files.OpenTail(path)
	if err != nil {
		return 0, err
	}
	defer func() { t.Close() }()
	from := base(old)
	if end := muster.Pos(from + t.End()); at != muster.Anywhere && at != end {
		return end, movedOn(stream, at, end)
	}
	if err := t.SetAside(); err != nil {
		return 0, err
	}
	if l.rotates(path) && t.End() >= l.s.rotateAt {
		next, err := l.rotate(t, path, from)
		if err != nil {
			return 0, err
		}
		from += t.End()
		t = next
	}
	end, err := write(t, lines)
	if err != nil {
		return 0, err
	}
	l.s.watch.tell(filepath.Dir(path), filepath.Base(path))
	return muster.Pos(from + end), nil
}

func movedOn(stream string, at, end muster.Pos) error {
	return muster.Errorf(muster.Stale, "the stream %s has moved on from %d to %d", stream, at, end)
}

// Read yields the records after the place, from 0 those that were not trimmed. Blank lines are none; a last line without its newline is not there yet.
func (l logs) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		path, err := l.path(ctx, stream)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		w, err := l.openWhole(path)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		defer w.close()
		gone := func() {
			yield(muster.Record{}, muster.Errorf(muster.Trimmed, "the place %d of %s is not there any more", after, path))
		}
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
					f.Close()
				}
				gone()
				return
			}
			on := l.readFile(ctx, f, s.path, s.from, int64(after), s.to, yield)
			f.Close()
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

// readFile yields the records of one file, which begins at the place from, between two places. It reports whether to go on
// with the next file.
func (l logs) readFile(ctx context.Context, f durable.File, path string, from, after, to int64, yield func(muster.Record, error) bool) bool {
	r := lineReader{f: f, at: after - from, end: to - from}
	for pos := after; ; {
		line, err := r.next()
		if err == io.EOF {
			return true // with what has no newline yet
		}
		if err == nil {
			err = ctx.Err()
		} else {
			err = unreadable(path, err)
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
		rec, why := unsealed(line)
		var bad error
		if why != "" {
			bad = muster.Errorf(muster.Corrupt, "the line at byte %d of %s is damaged: %s", start, path, why)
		}
		if !yield(muster.Record{Pos: muster.Pos(pos), Data: rec}, bad) {
			return false
		}
	}
}

// lineReader reads the lines of a part of a file, many at a time.
type lineReader struct {
	f       io.ReaderAt
	at, end int64  // what is not yet read
	left    []byte // what is read and not yet returned
	err     error  // comes after that
}

// lineBlock is how much it reads at a time, in bytes.
const lineBlock = 64 << 10

// next is the next line with its newline, which is the caller's. io.EOF: there is no other whole one.
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

// Tail returns the place that has the last n records after it, read backwards from the end.
func (l logs) Tail(ctx context.Context, stream string, n int) (muster.Pos, error) {
	path, err := l.path(ctx, stream)
	if err != nil {
		return 0, err
	}
	w, err := l.openWhole(path)
	if err != nil {
		return 0, err
	}
	defer w.close()
	place := w.base()
	if w.live != nil {
		end, err := durable.LineStart(w.live, w.size)
		if err != nil {
			return 0, unreadable(path, err)
		}
		if place, n, err = tail(w.live, place, end, n); err != nil {
			return 0, unreadable(path, err)
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
		place, n, err = tail(f, s.from, s.to-s.from, n)
		f.Close()
		if err != nil {
			return 0, unreadable(s.path, err)
		}
	}
	return muster.Pos(place), nil
}

// tail finds the place before the last n records of a file, which begins at the place from and has so many bytes, and
// how many records are to be found before that.
func tail(f durable.File, from, end int64, n int) (place int64, more int, err error) {
	place = from + end // the oldest record so far starts here
	block := make([]byte, 64<<10)
	blank := true // of the line that we are in, from its end
	for at := end; at > 0 && n > 0; {
		b := block[:min(int64(len(block)), at)]
		at -= int64(len(b))
		if _, err := f.ReadAt(b, at); err != nil && err != io.EOF {
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

// Watch receives after appends until ctx ends.
func (l logs) Watch(ctx context.Context, stream string) <-chan struct{} {
	path, err := l.path(ctx, stream)
	if err != nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return l.s.watch.subscribe(ctx, filepath.Dir(path), filepath.Base(path), nil)
}

// open opens a stream's file for reading; nil when there is none.
func (l logs) open(path string) (durable.File, int64, error) {
	f, err := l.s.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, unreadable(path, err)
	}
	fi, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, 0, unreadable(path, err)
	}
	return f, fi.Size(), nil
}

// end is the place after the last whole line. The stream's lock is held.
func (l logs) end(path string) (muster.Pos, error) {
	w, err := l.openWhole(path)
	if err != nil {
		return 0, err
	}
	defer w.close()
	if w.live == nil {
		return muster.Pos(w.base()), nil
	}
	end, err := durable.LineStart(w.live, w.size)
	if err != nil {
		return 0, unreadable(path, err)
	}
	return muster.Pos(w.base() + end), nil
}

// startsLine reports whether a line may start at a place.
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

// unreadable is the error for a file or directory without which nothing of a stream, a box or a table can be read.
func unreadable(path string, err error) error {
	return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", path, err)
}
