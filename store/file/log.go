package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
)

// logs is the streams. Each is a file of lines. A position is the byte offset of a line's end, counted from the
// beginning of the first file that the stream was rotated into.
type logs struct{ s *Store }

// path returns the file of a stream.
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

// Append adds records if the stream still ends at at, with one write and one sync.
func (l logs) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	path, lines, err := l.encode(ctx, stream, recs)
	if err != nil {
		return 0, err
	}
	if at != muster.Anywhere || len(lines) == 0 {
		return l.appendAlone(ctx, stream, path, at, lines, true)
	}
	return l.s.groups.append(ctx, "log "+stream, lines,
		func(ctx context.Context) (func(), error) { return l.lock(ctx, stream) },
		func(all []byte) (muster.Pos, error) {
			return l.appendLocked(stream, path, at, all, true)
		})
}

// AppendSoon adds records at the end without waiting for the disk. A killed process loses nothing of them; a power
// loss takes what no later Append to the stream has made durable.
func (l logs) AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error) {
	path, lines, err := l.encode(ctx, stream, recs)
	if err != nil {
		return 0, err
	}
	return l.appendAlone(ctx, stream, path, muster.Anywhere, lines, false)
}

// encode returns the file of a stream and the lines of records.
func (l logs) encode(ctx context.Context, stream string, recs [][]byte) (path string, lines []byte, err error) {
	if path, err = l.path(ctx, stream); err != nil {
		return "", nil, err
	}
	for _, r := range recs {
		if err := checkRecord(stream, r); err != nil {
			return "", nil, err
		}
		lines = append(lines, addChecksum(r)...)
	}
	return path, lines, nil
}

// appendAlone appends lines in a write of their own.
func (l logs) appendAlone(ctx context.Context, stream, path string, at muster.Pos, lines []byte, sync bool) (
	muster.Pos, error) {
	unlock, err := l.lock(ctx, stream)
	if err != nil {
		return 0, err
	}
	defer unlock()
	return l.appendLocked(stream, path, at, lines, sync)
}

// lock takes the lock of a stream. Everybody who appends, rotates or trims holds it; readers do not.
func (l logs) lock(ctx context.Context, stream string) (unlock func(), err error) {
	return l.s.lock(ctx, "log", strings.ReplaceAll(stream, "/", "-"))
}

// appendLocked appends lines at a position, and with sync makes them durable. The caller holds the stream's lock.
func (l logs) appendLocked(stream, path string, at muster.Pos, lines []byte, sync bool) (muster.Pos, error) {
	_, missing := l.s.fs.Stat(path)
	// Nothing may be made when there is nothing to do.
	if len(lines) == 0 || at != muster.Anywhere && at != 0 && missing != nil {
		end, err := l.tail(path, 0)
		if err == nil && at != muster.Anywhere && at != end {
			err = errMovedOn(stream, at, end)
		}
		if err != nil || len(lines) == 0 {
			return end, err
		}
	}
	// From here on, files may be made.
	ends, err := l.rotatedEnds(path)
	if err != nil {
		return 0, err
	}
	t, err := l.s.files.OpenTail(path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = t.Close() }()
	from := slices.Max(ends)
	if end := muster.Pos(from + t.End()); at != muster.Anywhere && at != end {
		return end, errMovedOn(stream, at, end)
	}
	// What a killed writer left of a line is moved away first: appended to it, the new record would be part of a line
	// that is no JSON, and be lost with it.
	if err := t.SetAside(); err != nil {
		return 0, err
	}
	if t.End() >= l.s.rotateAt {
		next, err := l.rotate(t, path, from)
		if err != nil {
			return 0, err
		}
		if !l.isCopy(path) {
			from += t.End()
		}
		t = next
	}
	write := t.Write
	if sync {
		write = t.Append
	}
	end, err := write(lines)
	if err != nil {
		return 0, err
	}
	l.s.watch.notify(filepath.Dir(path), filepath.Base(path))
	return muster.Pos(from + end), nil
}

// errMovedOn says that somebody else has appended.
func errMovedOn(stream string, at, end muster.Pos) error {
	return muster.Errorf(muster.Stale, "the stream %s has moved on from %d to %d", stream, at, end)
}

// Watch receives after appends until ctx ends.
func (l logs) Watch(ctx context.Context, stream string) <-chan struct{} {
	path, err := l.path(ctx, stream)
	if err != nil {
		return endedWatch()
	}
	return l.s.watch.subscribe(ctx, filepath.Dir(path), filepath.Base(path), nil)
}

// open opens a file of a stream for reading. It returns nil if there is none.
func (l logs) open(path string) (durable.File, int64, error) {
	f, err := l.s.fs.OpenFile(path, os.O_RDONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, errUnreadable(path, err)
	}
	fi, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return nil, 0, errUnreadable(path, err)
	}
	return f, fi.Size(), nil
}

// errUnreadable is the error for a file or directory without which nothing of a stream, an inbox or a table can be
// read.
func errUnreadable(path string, err error) error {
	return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", path, err)
}
