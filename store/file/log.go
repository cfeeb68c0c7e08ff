package file

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// logs is the streams: files of lines. A place is the byte offset of a line's end.
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
	return l.append(ctx, (*durable.Tail).Append, stream, at, recs...)
}

// AppendSoon adds recs at the end without waiting for the disk: a killed process loses nothing of them, a power loss
// what no later Append to the stream has made durable.
func (l logs) AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error) {
	return l.append(ctx, (*durable.Tail).Write, stream, muster.Anywhere, recs...)
}

func (l logs) append(ctx context.Context, write func(*durable.Tail, []byte) (int64, error), stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
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
	unlock, err := l.s.lock(ctx, "log", strings.ReplaceAll(stream, "/", "-"))
	if err != nil {
		return 0, err
	}
	defer unlock()
	if len(recs) == 0 || at != muster.Anywhere && at != 0 { // nothing may be made when there is nothing to do
		end, err := l.end(path)
		if err != nil {
			return 0, err
		}
		if at != muster.Anywhere && at != end {
			return end, movedOn(stream, at, end)
		}
		if len(recs) == 0 {
			return end, nil
		}
	}
	t, err := l.s.files.OpenTail(path)
	if err != nil {
		return 0, err
	}
	defer t.Close()
	if end := muster.Pos(t.End()); at != muster.Anywhere && at != end {
		return end, movedOn(stream, at, end)
	}
	if err := t.SetAside(); err != nil {
		return 0, err
	}
	end, err := write(t, lines)
	if err != nil {
		return 0, err
	}
	l.s.watch.tell(filepath.Dir(path), filepath.Base(path))
	return muster.Pos(end), nil
}

func movedOn(stream string, at, end muster.Pos) error {
	return muster.Errorf(muster.Stale, "the stream %s has moved on from %d to %d", stream, at, end)
}

// Read yields the records after the place. Blank lines are none; a last line without its newline is not there yet.
func (l logs) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		path, err := l.path(ctx, stream)
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		f, size, err := l.open(path)
		if err == nil && f != nil {
			defer f.Close()
		}
		if err == nil && !startsLine(f, int64(after), size) {
			err = muster.Errorf(muster.Trimmed, "the place %d of %s is not there any more", after, path)
		}
		if err != nil {
			yield(muster.Record{}, err)
			return
		}
		if f == nil {
			return
		}
		r := bufio.NewReaderSize(io.NewSectionReader(f, int64(after), size-int64(after)), 64<<10)
		for pos := after; ; {
			line, err := r.ReadBytes('\n')
			if err == io.EOF {
				return // with what has no newline yet
			}
			if err == nil {
				err = ctx.Err()
			} else {
				err = unreadable(path, err)
			}
			if err != nil {
				yield(muster.Record{}, err)
				return
			}
			start := pos
			pos += muster.Pos(len(line))
			line = bytes.TrimSpace(line)
			if len(line) == 0 {
				continue
			}
			rec, why := unseal(line)
			var bad error
			if why != "" {
				bad = muster.Errorf(muster.Corrupt, "the line at byte %d of %s is damaged: %s", start, path, why)
			}
			if !yield(muster.Record{Pos: pos, Data: rec}, bad) {
				return
			}
		}
	}
}

// Tail returns the place that has the last n records after it, read backwards from the end.
func (l logs) Tail(ctx context.Context, stream string, n int) (muster.Pos, error) {
	path, err := l.path(ctx, stream)
	if err != nil {
		return 0, err
	}
	f, size, err := l.open(path)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	end, err := durable.LineStart(f, size)
	if err != nil {
		return 0, unreadable(path, err)
	}
	place := end // the oldest record so far starts here
	block := make([]byte, 64<<10)
	blank := true // of the line that we are in, from its end
	for at := end; at > 0 && n > 0; {
		b := block[:min(int64(len(block)), at)]
		at -= int64(len(b))
		if _, err := f.ReadAt(b, at); err != nil && err != io.EOF {
			return 0, unreadable(path, err)
		}
		for i := len(b) - 1; i >= 0; i-- {
			switch b[i] {
			case '\n':
				if !blank {
					place = at + int64(i) + 1
					if n--; n == 0 {
						return muster.Pos(place), nil
					}
				}
				blank = true
			case ' ', '\t', '\r':
			default:
				blank = false
			}
		}
		if at == 0 && !blank {
			place = 0
		}
	}
	return muster.Pos(place), nil
}

// Trim forgets what lies before the place. A stream of this engine is one segment, so all of it stays.
func (l logs) Trim(ctx context.Context, stream string, before muster.Pos) error {
	_, err := l.path(ctx, stream)
	return err
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

// end is the place after the last whole line.
func (l logs) end(path string) (muster.Pos, error) {
	f, size, err := l.open(path)
	if err != nil || f == nil {
		return 0, err
	}
	defer f.Close()
	end, err := durable.LineStart(f, size)
	if err != nil {
		return 0, unreadable(path, err)
	}
	return muster.Pos(end), nil
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

func unreadable(path string, err error) error {
	return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", path, err)
}
