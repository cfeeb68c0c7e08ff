// Package journal is the team's events: one stream in one order, read by position.
//
// Journal writes events with Emit, and reads them with Read and Follow. kinds.go lists the kinds of events
// and their fields. Readers pull: a slow reader is only late, and one that stops goes on later from the Pos of the
// last Entry that it had. New kinds and new fields may come with any version, so readers skip what they do not know;
// a kind that exists keeps its name and the meaning of its fields.
//
// The journal drives nothing. What must happen is in documents, and an event that a crash has swallowed is only
// missing from what people see. A line that cannot be read harms no other line.
//
// Text that streams, and the progress of tools, are not events of the journal: they are not durable.
package journal

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"log/slog"
	"time"

	"muster"
)

// Journal is the events of a team. It is safe for concurrent use.
type Journal struct {
	// Logger is told of events that could not be written, which callers may ignore because the journal drives nothing,
	// and of corruption. nil: nobody is. Set it before the first Emit.
	Logger *slog.Logger

	log muster.Log
}

// New returns the journal in l.
func New(l muster.Log) *Journal { return &Journal{log: l} }

// Entry is an event and the position after it.
type Entry struct {
	Pos muster.Pos
	muster.Event
}

// Emit appends e. A zero At becomes now. When Emit returns nil the event is durable, except for what happens within a
// turn (see isWithinTurn): that is written, so everybody sees it and a killed process loses nothing, and it becomes
// durable with the next event that is.
func (j *Journal) Emit(ctx context.Context, e muster.Event) error {
	err := j.emit(ctx, e)
	if j.Logger != nil {
		if err != nil {
			j.Logger.Warn("event not written", "event", e.Kind, "member", e.Member, "task", e.Task, "err", err)
		}
		if e.Kind == StateCorrupt {
			j.Logger.Warn("state corrupt", "table", e.Text("table"), "key", e.Text("key"), "text", e.Text("text"))
		}
	}
	return err
}

func (j *Journal) emit(ctx context.Context, e muster.Event) error {
	e.At = cmp.Or(e.At, muster.UnixTime(time.Now()))
	line, err := muster.MarshalLine(e)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the event %s cannot be written: %w", e.Kind, err)
	}
	if log, ok := j.log.(soon); ok && isWithinTurn(e.Kind) {
		_, err = log.AppendSoon(ctx, muster.StreamEvents, line)
	} else {
		_, err = j.log.Append(ctx, muster.StreamEvents, muster.Anywhere, line)
	}
	return err
}

// soon is a log that can append without waiting for the disk.
type soon interface {
	AppendSoon(ctx context.Context, stream string, recs ...[]byte) (muster.Pos, error)
}

// isWithinTurn reports whether a turn has several events of the kind. They need not wait for the disk, because the
// transcript has the truth: what the model said and what came of each call are synced there before the turn goes on.
func isWithinTurn(kind string) bool {
	return kind == TurnStarted || kind == TurnEnded || kind == ToolStarted || kind == ToolEnded
}

// Read yields the entries after a position, up to the end as it is now. An error of code Corrupt concerns the one entry
// that it comes with, whose Pos is good, and the sequence goes on. Any other error ends the sequence.
func (j *Journal) Read(ctx context.Context, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for r, err := range j.log.Read(ctx, muster.StreamEvents, after) {
			e := Entry{Pos: r.Pos}
			if err == nil {
				e.Event, err = decode(r.Data)
			}
			if !yield(e, err) || isFatal(err) {
				return
			}
		}
	}
}

// decode returns the event in a line. The error has the code Corrupt.
func decode(line []byte) (e muster.Event, err error) {
	if err := e.UnmarshalJSON(line); err != nil {
		return e, muster.Errorf(muster.Corrupt, "a line of the journal is not an event: %w", err)
	}
	if e.Kind == "" {
		return e, muster.Errorf(muster.Corrupt, "a line of the journal names no event")
	}
	return e, nil
}

// isFatal reports whether an error ends a sequence of entries. An entry that cannot be read does not.
func isFatal(err error) bool { return err != nil && !errors.Is(err, muster.ErrCorrupt) }

// Tail returns the position that has the last n entries after it. With n = 0 it is the end.
func (j *Journal) Tail(ctx context.Context, n int) (muster.Pos, error) {
	return j.log.Tail(ctx, muster.StreamEvents, n)
}

// Follow is Read that waits for more at the end. It misses nothing and repeats nothing. The end of ctx ends the
// sequence without an error.
func (j *Journal) Follow(ctx context.Context, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// The watch begins before the first read, so that what is written between the two is not missed.
		more := j.log.Watch(ctx, muster.StreamEvents)
		for {
			for e, err := range j.Read(ctx, after) {
				if ctx.Err() != nil {
					return
				}
				if !yield(e, err) {
					return
				}
				if isFatal(err) {
					return
				}
				after = max(after, e.Pos)
			}
			select {
			case <-ctx.Done():
				return
			case _, open := <-more:
				if !open {
					return
				}
			}
		}
	}
}

// Check returns how many events cannot be read. Nothing depends on them.
func (j *Journal) Check(ctx context.Context) (unreadable int, err error) {
	for _, err := range j.Read(ctx, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
			unreadable++
		case err != nil:
			return unreadable, err
		}
	}
	return unreadable, nil
}
