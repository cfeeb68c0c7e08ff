// Package journal is the team's events: one stream, one order, read by position.
//
// Readers pull. A slow one is only late, and one that stops goes on later from the Pos of the last entry it had. The
// journal drives nothing: what must happen is in documents, and an event that a crash swallowed is only not told.
package journal

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"log/slog"
	"strconv"
	"time"

	"muster"
)

// Journal is the events of a team.
type Journal struct {
	// Logger is told of events that could not be written, which callers may ignore because the journal drives nothing,
	// and of corruption. nil: nobody is. Set it before the first Emit.
	Logger *slog.Logger

	log muster.Log
}

// New is the journal in l.
func New(l muster.Log) *Journal { return &Journal{log: l} }

// Entry is an event and the place after it.
type Entry struct {
	Pos muster.Pos
	muster.Event
}

// Emit appends e; a zero At becomes now. It is durable on nil, except for what happens within a turn (see soon): that is
// written on nil, so that everybody sees it and a killed process loses nothing, and durable with the next event that is.
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
	if e.At == 0 {
		e.At = muster.Stamp(time.Now())
	}
	line, err := muster.Line(e)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the event %s cannot be written: %w", e.Kind, err)
	}
	if log, ok := j.log.(soon); ok && withinTurn(e.Kind) {
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

// withinTurn are the kinds of which each turn has several, and whose truth the transcript has: what the model said and
// what came of each call are synced there before the turn goes on.
func withinTurn(kind string) bool {
	return kind == TurnStarted || kind == TurnEnded || kind == ToolStarted || kind == ToolEnded
}

// Read yields the entries after the place, up to the end as it is now. An error of code Corrupt concerns the one entry
// it comes with, whose Pos is good, and the sequence goes on; any other ends it.
func (j *Journal) Read(ctx context.Context, after muster.Pos) iter.Seq2[Entry, error] {
	return j.ReadTask(ctx, 0, after)
}

// ReadTask is Read of what concerns one task; 0: everything. Other tasks' lines are mostly not even decoded.
func (j *Journal) ReadTask(ctx context.Context, task muster.TaskID, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		wanted, d := ofTask(task), new(decoder)
		for r, err := range j.log.Read(ctx, muster.StreamEvents, after) {
			e := Entry{Pos: r.Pos}
			if err == nil {
				if !wanted(r.Data) {
					continue
				}
				e.Event, err = d.decode(r.Data)
			}
			if err == nil && task != 0 && e.Task != task {
				continue
			}
			if !yield(e, err) || err != nil && !errors.Is(err, muster.ErrCorrupt) {
				return
			}
		}
	}
}

// ofTask says of a line whether its event may concern a task; every line for 0. However the number is written, its digits
// are there, and most lines, as we write them, name another one.
func ofTask(task muster.TaskID) func(line []byte) bool {
	if task == 0 {
		return func([]byte) bool { return true }
	}
	name := []byte(`"task_id":`)
	digits := strconv.AppendInt(nil, int64(task), 10)
	return func(line []byte) bool {
		if !bytes.Contains(line, digits) {
			return false
		}
		named := false // a task, in our way of writing
		for rest := line; ; {
			_, value, found := bytes.Cut(rest, name)
			if !found {
				return !named
			}
			size := 0
			for size < len(value) && value[size]-'0' <= 9 {
				size++
			}
			if bytes.Equal(value[:size], digits) {
				return true
			}
			named = named || size > 0
			rest = value
		}
	}
}

// Tail returns the place that has the last n entries after it; n = 0: the end.
func (j *Journal) Tail(ctx context.Context, n int) (muster.Pos, error) {
	return j.log.Tail(ctx, muster.StreamEvents, n)
}

// Follow is Read that waits for more at the end, until ctx ends; it misses nothing and repeats nothing. The end of ctx
// ends the sequence without an error.
func (j *Journal) Follow(ctx context.Context, after muster.Pos) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		// The watch comes before the first read: what is written between them has rung.
		more := j.log.Watch(ctx, muster.StreamEvents)
		for {
			for e, err := range j.Read(ctx, after) {
				if ctx.Err() != nil {
					return
				}
				if !yield(e, err) {
					return
				}
				if err != nil && !errors.Is(err, muster.ErrCorrupt) {
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
