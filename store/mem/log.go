package mem

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"strings"

	"muster"
)

// logs is the state as streams.
type logs struct{ st *state }

// stream is the records of one stream. A place is the number of records before it, forgotten ones too.
type stream struct {
	recs  [][]byte
	first muster.Pos // how many were forgotten
	hints hints
}

// end returns the position after the last record.
func (s *stream) end() muster.Pos { return s.first + muster.Pos(len(s.recs)) }

// get returns the stream; the state's lock is held.
func (l logs) get(name string) *stream {
	s := l.st.streams[name]
	if s == nil {
		s = &stream{hints: hints{}}
		l.st.streams[name] = s
	}
	return s
}

// Append adds recs if the stream still ends at at.
func (l logs) Append(ctx context.Context, name string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if err := checkStream(ctx, name); err != nil {
		return 0, err
	}
	for _, r := range recs {
		if !json.Valid(r) || r[0] != '{' || r[len(r)-1] != '}' || bytes.ContainsAny(r, "\r\n") {
			return 0, muster.Errorf(muster.Invalid, "a record for %s is not a JSON object on one line", name)
		}
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	s := l.get(name)
	if at != muster.Anywhere && at != s.end() {
		return s.end(), muster.Errorf(muster.Stale, "the stream %s has moved on from %d to %d", name, at, s.end())
	}
	for _, r := range recs {
		s.recs = append(s.recs, bytes.Clone(r))
	}
	if len(recs) > 0 {
		s.hints.tell()
	}
	return s.end(), nil
}

// Read yields the records after the place, up to the end as it is when the sequence is started.
func (l logs) Read(ctx context.Context, name string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		if err := checkStream(ctx, name); err != nil {
			yield(muster.Record{}, err)
			return
		}
		l.st.mu.Lock()
		s := l.get(name)
		if after == 0 { // the beginning is that of what is left
			after = s.first
		}
		if after < s.first || after > s.end() {
			l.st.mu.Unlock()
			yield(muster.Record{}, muster.Errorf(muster.Trimmed,
				"the place %d of the stream %s is not there any more", after, name))
			return
		}
		recs := s.recs[after-s.first:] // never written to again
		l.st.mu.Unlock()
		for i, r := range recs {
			if err := ctx.Err(); err != nil {
				yield(muster.Record{}, err)
				return
			}
			if !yield(muster.Record{Pos: after + muster.Pos(i) + 1, Data: bytes.Clone(r)}, nil) {
				return
			}
		}
	}
}

// Tail returns the place that has the last n records after it.
func (l logs) Tail(ctx context.Context, name string, n int) (muster.Pos, error) {
	if err := checkStream(ctx, name); err != nil {
		return 0, err
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	s := l.get(name)
	return s.end() - muster.Pos(min(max(n, 0), len(s.recs))), nil
}

// Trim forgets what lies before the place.
func (l logs) Trim(ctx context.Context, name string, before muster.Pos) error {
	if err := checkStream(ctx, name); err != nil {
		return err
	}
	l.st.mu.Lock()
	defer l.st.mu.Unlock()
	s := l.get(name)
	if before > s.first {
		before = min(before, s.end())
		s.recs = s.recs[before-s.first:]
		s.first = before
	}
	return nil
}

// Watch receives after appends until ctx ends.
func (l logs) Watch(ctx context.Context, name string) <-chan struct{} {
	l.st.mu.Lock()
	s := l.get(name)
	l.st.mu.Unlock()
	return s.hints.watch(ctx, &l.st.mu)
}

// checkStream fails if the context has ended or the name cannot be a stream's.
func checkStream(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return checkName("the name of a stream", strings.TrimPrefix(name, muster.StreamTranscripts))
}
