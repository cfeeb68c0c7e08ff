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

// logSegment is a file of a stream. It holds the positions after from, up to to.
type logSegment struct {
	path     string
	from, to int64
	live     bool // it is appended to; all others have a name that says where they end
	// file is open in the live one, unless there is none, and in others that openSegment has opened.
	file durable.File
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
	ends := []int64{0}
	for _, name := range names {
		digits := strings.TrimPrefix(name, strings.TrimSuffix(filepath.Base(path), "jsonl"))
		to, err := strconv.ParseInt(strings.TrimSuffix(digits, ".jsonl"), 10, 64)
		if err == nil && to > 0 && name == filepath.Base(rotatedPath(path, to)) {
			ends = append(ends, to)
		}
	}
	slices.Sort(ends)
	var all []logSegment
	for i := len(ends) - 1; i > 0; i-- {
		before, s := ends[i-1], logSegment{path: rotatedPath(path, ends[i]), to: ends[i]}
		fi, err := l.s.fs.Stat(s.path)
		if err != nil {
			break // removed just now
		}
		// What a program without our lock has appended since lies behind the end: it is not in the stream.
		s.from = max(before, s.to-fi.Size())
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

// openLog returns the segments of a stream as it is now; the last one is the live file, which the caller closes.
// Readers take no lock, so it checks whether the live file was rotated meanwhile, and if so, starts again.
func (l logs) openLog(path string) ([]logSegment, error) {
	for {
		all, err := l.segments(path)
		if err != nil {
			return nil, err
		}
		base := baseOffset(all)
		file, size, err := l.open(path)
		if err != nil {
			return nil, err
		}
		live := logSegment{path: path, from: base, to: base + size, live: true, file: file}
		// If the live file was rotated between the list and the open, the opened file begins at another position than
		// the list says, and each position in it would be wrong.
		again, err := l.segments(path)
		if err == nil && baseOffset(again) == base {
			return append(all, live), nil
		}
		live.close()
		if err != nil {
			return nil, err
		}
	}
}

// openSegment opens the file of a segment. gone reports that the segment was trimmed just now.
func (l logs) openSegment(s *logSegment) (gone bool, err error) {
	if !s.live {
		s.file, _, err = l.open(s.path)
	}
	return err == nil && s.file == nil && !s.live, err
}

// close closes the file of a segment.
func (s logSegment) close() {
	if s.file != nil {
		_ = s.file.Close()
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
