package file

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"muster"
	"muster/internal/durable"
)

// Drop removes what lies before a position. The live file becomes a segment, the name of a segment says how much of it
// was delivered, and segments that were delivered whole are removed a little later. Each step is one rename, so that a
// crash in between loses and repeats nothing.
func (x *boxes) Drop(ctx context.Context, name muster.Name, before muster.Pos) error {
	b, err := x.box(ctx, name)
	if err != nil || before == 0 {
		return err
	}
	// Without mail nothing is made, not even the lock's directory: looking at a foreign repository leaves no trace.
	if _, err := x.store.fs.Stat(x.store.dir.Inbox()); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := b.lock(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	pending, err := b.drop(placeOf(before))
	if err != nil {
		return err
	}
	if pending {
		x.store.watch.notify(x.store.dir.Inbox(), string(name)+".jsonl")
	}
	again, err := b.clean()
	if again {
		x.cleanLater(b) //nolint:contextcheck // It happens after the caller has gone on.
	}
	return err
}

// drop marks what lies before a place as delivered. It reports whether a segment has something else left.
func (b *box) drop(before place) (pending bool, err error) {
	segs, err := b.segments()
	if err != nil {
		return false, err
	}
	// A view is used once. A second Drop of the same position has nothing more to say about what was read.
	b.mu.Lock()
	had := b.views[before.pos()]
	delete(b.views, before.pos())
	b.mu.Unlock()
	for _, s := range segs {
		upto := s.delivered
		switch {
		case s.gen == before.gen:
			upto = max(upto, min(before.at, s.size))
		case s.gen < before.gen:
			// Another process peeked, or the view was thrown away, so what was read is not known. The position lies
			// beyond the older files, so they count as delivered as far as they go now.
			if had == nil {
				upto = s.size
			}
			upto = max(upto, min(had[s.gen], s.size))
		}
		if upto > s.delivered {
			if err := b.s.files.Rename(s.path, b.segment(s.gen, upto)); err != nil {
				return false, err
			}
		}
		pending = pending || max(upto, s.delivered) < s.size
	}
	if before.gen != nextGen(segs) || before.at == 0 {
		return pending, nil
	}
	f, size, err := logs{b.s}.open(b.livePath())
	if err != nil || f == nil {
		return pending, err
	}
	ok := endsUnit(f, before.at, size)
	_ = f.Close()
	if !ok { // another reader emptied it: what is there now was not peeked
		return pending, nil
	}
	// The rename is the delivery: before it all mail of the live file is pending, and after it the name says how much
	// is not. There is no state in between.
	moved := b.segment(before.gen, before.at)
	if err := b.s.files.Rename(b.livePath(), moved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pending, err
	}
	// Once more: what came between the peek and the move, or comes from a program that still has the file open.
	if fi, err := b.s.fs.Stat(moved); err == nil && fi.Size() > before.at {
		pending = true
	}
	return pending, nil
}

// endsUnit reports whether a mail can end at an offset of a live file. If none can, the position is not one that a Peek
// of this very file returned.
func endsUnit(f durable.File, at, size int64) bool {
	if at > size {
		return false
	}
	last, err := durable.ReadPart(f, at-1, 1)
	return err == nil && (last[0] == '\n' || last[0] == '}')
}

// cleanLater schedules the cleaning of an inbox. The timer ends with the store; a later process cleans what it leaves.
func (x *boxes) cleanLater(b *box) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if b.timer == nil && !x.ended {
		b.timer = time.AfterFunc(x.grace+10*time.Millisecond, func() { x.cleanNow(b) })
	}
}

// cleanNow cleans an inbox whose timer has fired.
func (x *boxes) cleanNow(b *box) {
	x.mu.Lock()
	b.timer = nil
	if x.ended {
		x.mu.Unlock()
		return
	}
	x.cleaning.Add(1)
	x.mu.Unlock()
	defer x.cleaning.Done()
	// Cleaning can wait. If somebody holds the lock of the inbox for long, the next round tries again, and Close is not
	// held up.
	ctx, cancel := context.WithTimeout(context.Background(), x.grace)
	defer cancel()
	again := true // unless a cleaning says that nothing is left
	if unlock, err := b.lock(ctx); err == nil {
		again, _ = b.clean() // what fails stays, and is tried again after the next delivery
		unlock()
	}
	if again {
		x.cleanLater(b)
	}
}
