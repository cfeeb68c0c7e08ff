package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster"
	"muster/internal/durable"
)

// The journal is rotated: when events.jsonl is large, it is renamed to events.N.jsonl, where N is the position of its
// end. Positions continue in the next file, so a stored position stays valid. The name alone says where a file begins,
// and a missing live file is an empty one, so a crash in the middle leaves nothing to repair: the rename has happened
// or not. The streams that are copies for other programs, and transcripts, stay in one file.

// rotateAt is the size, in bytes, from which a file is rotated.
const rotateAt = 64 << 20

// logSegment is a rotated file. It holds the positions after from, up to to.
type logSegment struct {
	path     string
	from, to int64
}

// isRotated reports whether the file of a stream is rotated.
func (l logs) isRotated(path string) bool {
	return path == filepath.Join(l.s.dir.Team(), muster.StreamEvents+".jsonl")
}

// rotatedPath returns the name of a rotated file that ends at a position.
func rotatedPath(path string, to int64) string {
	return strings.TrimSuffix(path, "jsonl") + strconv.FormatInt(to, 10) + ".jsonl"
}

// segments lists the rotated files of a stream, oldest first. It stops at a gap, because what lies before one was
// trimmed.
func (l logs) segments(path string) ([]logSegment, error) {
	if !l.isRotated(path) {
		return nil, nil
	}
	names, err := fileNames(l.s.fs, filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, errUnreadable(filepath.Dir(path), err)
	}
	var ends []int64
	for _, name := range names {
		n, ok := strings.CutPrefix(name, strings.TrimSuffix(filepath.Base(path), "jsonl"))
		n, isLog := strings.CutSuffix(n, ".jsonl")
		if to, err := strconv.ParseInt(n, 10, 64); ok && isLog && err == nil && to > 0 &&
			strconv.FormatInt(to, 10) == n {
			ends = append(ends, to)
		}
	}
	slices.Sort(ends)
	var all []logSegment
	for i, to := range slices.Backward(ends) {
		before := int64(0)
		if i > 0 {
			before = ends[i-1]
		}
		s := logSegment{path: rotatedPath(path, to), from: before, to: to}
		fi, err := l.s.fs.Stat(s.path)
		if err != nil {
			break // removed just now
		}
		// What a program without our lock has appended since lies behind the end: it is not in the stream.
		s.from = max(before, to-fi.Size())
		if all = append(all, s); s.from > before {
			break // what was before it is gone
		}
	}
	slices.Reverse(all)
	return all, nil
}

// baseOffset returns the position at which the live file begins.
func baseOffset(old []logSegment) int64 {
	if len(old) == 0 {
		return 0
	}
	return old[len(old)-1].to
}

// segmentedLog is a stream as it was at one moment.
type segmentedLog struct {
	old []logSegment
	// live is the live file, or nil if there is none.
	live durable.File
	size int64 // of the live file
}

// base returns the position at which the live file begins.
func (w segmentedLog) base() int64 { return baseOffset(w.old) }

// close closes the live file, if there is one.
func (w segmentedLog) close() {
	if w.live != nil {
		_ = w.live.Close()
	}
}

// openLog opens a stream. Readers take no lock, so it checks whether the live file was rotated meanwhile, and if so,
// starts again.
func (l logs) openLog(path string) (w segmentedLog, err error) {
	for {
		if w.old, err = l.segments(path); err != nil {
			return w, err
		}
		if w.live, w.size, err = l.open(path); err != nil || !l.isRotated(path) {
			return w, err
		}
		// If the live file was rotated between the list and the open, the opened file begins at another position than
		// the list says, and each position in it would be wrong.
		again, err := l.segments(path)
		if err == nil && baseOffset(again) == w.base() {
			return w, nil
		}
		w.close()
		if err != nil {
			return w, err
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
	if err := l.s.files.Rename(path, rotatedPath(path, end)); err != nil {
		return nil, err
	}
	return l.s.files.OpenTail(path)
}

// Trim removes rotated files that end at the position or before it. It keeps the last one, whose name says where the
// live file begins.
func (l logs) Trim(ctx context.Context, stream string, before muster.Pos) error {
	path, err := l.path(ctx, stream)
	if err != nil || !l.isRotated(path) {
		return err
	}
	unlock, err := l.lock(ctx, stream)
	if err != nil {
		return err
	}
	defer unlock()
	old, err := l.segments(path)
	if err != nil {
		return err
	}
	for i, s := range old { // the oldest first: a crash leaves no gap
		if i == len(old)-1 || uint64(s.to) > uint64(before) {
			return nil
		}
		if err := l.s.files.Remove(s.path); err != nil {
			return err
		}
	}
	return nil
}
