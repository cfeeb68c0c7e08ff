package file

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
)

// boxes is the inboxes: a live file NAME.jsonl that everybody appends to, and beside it the segments that earlier live
// files became when their mail was dropped (segment.go).
type boxes struct {
	store *Store
	grace time.Duration

	mu    sync.Mutex
	known map[muster.Name]*box
	ended bool

	cleaning sync.Mutex // held while the timer's cleaning runs
	timer    *time.Timer
}

// box is one inbox, and what this process knows of it.
type box struct {
	s    *Store
	name muster.Name

	mu       sync.Mutex
	views    map[muster.Pos]view  // by the place that a Peek returned
	since    map[uint32]time.Time // by generation: since when we know the segment
	rejected map[place]bool       // the lines that we know to be set aside
	due      bool                 // has segments that may be removed soon
}

// view is how far a Peek has read each file, by generation. What a program without our lock added to an older file
// after it was not peeked, although it lies before the place that the Peek returned.
type view map[uint32]int64

// maxViews is how many views are remembered for Peeks that no Drop follows.
const maxViews = 64

// grace is how long a segment stays after it was moved aside: a program that had the live file open may still write.
const grace = 2 * time.Second

// largest is where a live file is full: a place has 32 bits for the offset.
const largest = 1 << 31

func (x *boxes) box(ctx context.Context, name muster.Name) (*box, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkBox(name); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.known[name]
	if b == nil {
		b = &box{
			s: x.store, name: name,
			views: map[muster.Pos]view{}, since: map[uint32]time.Time{}, rejected: map[place]bool{},
		}
		x.known[name] = b
	}
	return b, nil
}

func (b *box) live() string { return filepath.Join(b.s.dir.Inbox(), string(b.name)+".jsonl") }

func (b *box) lock(ctx context.Context) (func(), error) {
	return b.s.lock(ctx, "inbox", string(b.name))
}

// Put appends m to the box: one write, one sync, together with what others in this process put at the same moment.
func (x *boxes) Put(ctx context.Context, name muster.Name, m muster.Message) error {
	b, err := x.box(ctx, name)
	if err != nil {
		return err
	}
	if m.To == "" {
		m.To = name
	}
	line, err := muster.Line(m)
	if err == nil {
		err = new(muster.Message).UnmarshalJSON(line)
	}
	if err != nil {
		return muster.Errorf(muster.Invalid, "this cannot be mailed to %s: %w", name, err)
	}
	_, err = x.store.groups.append(ctx, "inbox "+string(name), seal(line),
		func() (func(), error) { return b.lock(ctx) },
		func(all []byte) (muster.Pos, error) { return 0, b.add(ctx, all) })
	return err
}

// add appends lines to the box's live file. The box's lock is held.
func (b *box) add(ctx context.Context, lines []byte) error {
	t, err := b.s.files.OpenTail(b.live())
	if durable.Alone(err) && b.moveOn() == nil {
		t, err = b.s.files.OpenTail(b.live())
	}
	if err != nil {
		return err
	}
	defer t.Close()
	if t.End() > largest {
		return muster.Errorf(muster.Unavailable, "the inbox of %s is full: nobody reads it", b.name)
	}
	if err := settle(ctx, t); err != nil {
		return err
	}
	// A torn part gets a newline by the append, and thereby becomes a line: a mail, or one for the rejected.
	if _, err := t.Append(lines); err != nil {
		return err
	}
	b.s.watch.tell(b.s.dir.Inbox(), string(b.name)+".jsonl")
	return nil
}

// moveOn makes a segment of a live file that is closed to us, another user's or none, so that mail goes on beside it. What it has
// is pending, and comes when it can be read. The box's lock is held.
func (b *box) moveOn() error {
	segs, err := b.segments()
	if err != nil {
		return err
	}
	return b.s.files.Rename(b.live(), b.segment(nextGen(segs), 0))
}

// settle gives a program that appends without our lock a moment to end its line.
func settle(ctx context.Context, t *durable.Tail) error {
	for waited := time.Duration(0); waited < halfWritten && len(t.Torn()) > 0; waited += glance {
		if _, rest := split(t.Torn(), 0); len(rest.raw) == 0 {
			return nil
		}
		if err := pause(ctx, glance); err != nil {
			return err
		}
		if err := t.Look(); err != nil {
			return err
		}
	}
	return nil
}

// Peek returns at most so many pending mails after the place, and the place after them. What a program without our lock
// adds to a segment is before a place in a younger file: it is pending, and Peek from zero returns it.
func (x *boxes) Peek(ctx context.Context, name muster.Name, after muster.Pos, most int) ([]muster.Message, muster.Pos, error) {
	b, err := x.box(ctx, name)
	if err != nil || most <= 0 {
		return nil, after, err
	}
	parts, err := b.parts()
	if err != nil {
		return nil, after, err
	}
	defer closeAll(parts)
	var (
		mails []muster.Message
		bad   []reject
		end   = after
		from  = placeOf(after)
		had   = view{}
	)
	for _, p := range parts {
		if p.gen < from.gen || len(mails) >= most {
			continue
		}
		if p.closed != nil {
			bad = append(bad, reject{place{p.gen, -1}, unit{raw: []byte(p.path), why: p.closed.Error() + "; mail waits in it"}})
			continue
		}
		start := p.delivered
		if p.gen == from.gen && from.at <= p.size { // else the file was emptied by another reader
			start = max(start, from.at)
		}
		read := start
		err := p.scan(start, b.old(p), func(u unit) bool {
			if u.why != "" {
				bad = append(bad, reject{place{p.gen, u.start}, u})
			} else {
				if len(mails) >= most {
					return false
				}
				mails = append(mails, b.mail(p.gen, u))
				end = place{p.gen, u.end}.pos()
			}
			read = u.end
			return true
		})
		if err != nil {
			return nil, after, unreadable(p.path, err)
		}
		had[p.gen] = read
	}
	b.remember(end, had)
	b.setAside(ctx, bad)
	return mails, end, nil
}

// remember keeps a view; of two that end at the same place, what both have.
func (b *box) remember(end muster.Pos, had view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.views) >= maxViews {
		clear(b.views)
	}
	for gen, read := range b.views[end] {
		if now, ok := had[gen]; ok {
			had[gen] = min(now, read)
		}
	}
	b.views[end] = had
}

// mail is a unit's mail, with what other programs leave out.
func (b *box) mail(gen uint32, u unit) muster.Message {
	m := u.mail
	if m.ID == "" {
		m.ID = u.id(gen)
	}
	if m.To == "" {
		m.To = b.name
	}
	return m
}

// Drop removes what lies before the place: the live file becomes a segment, a segment's name says how much of it is
// delivered, and what is delivered as a whole is removed a little later.
func (x *boxes) Drop(ctx context.Context, name muster.Name, before muster.Pos) error {
	b, err := x.box(ctx, name)
	if err != nil || before == 0 {
		return err
	}
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
		x.store.watch.tell(x.store.dir.Inbox(), string(name)+".jsonl")
	}
	if err := b.clean(); err != nil {
		return err
	}
	x.cleanLater(b)
	return nil
}

// drop marks as delivered what lies before a place. It reports whether a segment has something else left.
func (b *box) drop(before place) (pending bool, err error) {
	segs, err := b.segments()
	if err != nil {
		return false, err
	}
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
			if had == nil { // another process peeked
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
	f, size, err := logs{b.s}.open(b.live())
	if err != nil || f == nil {
		return pending, err
	}
	ok := endsUnit(f, before.at, size)
	f.Close()
	if !ok { // another reader emptied it: what is there now was not peeked
		return pending, nil
	}
	moved := b.segment(before.gen, before.at)
	if err := b.s.files.Rename(b.live(), moved); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pending, err
	}
	// Once more: what came between the peek and the move, or comes from a program that still has the file open.
	if fi, err := b.s.fs.Stat(moved); err == nil && fi.Size() > before.at {
		pending = true
	}
	return pending, nil
}

// endsUnit reports whether a mail can end at a place of a live file.
func endsUnit(f durable.File, at, size int64) bool {
	if at > size {
		return false
	}
	last := make([]byte, 1)
	_, err := f.ReadAt(last, at-1)
	return err == nil && (last[0] == '\n' || last[0] == '}')
}

// Watch receives after new mail until ctx ends.
func (x *boxes) Watch(ctx context.Context, name muster.Name) <-chan struct{} {
	if checkBox(name) != nil {
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	return x.store.watch.subscribe(ctx, x.store.dir.Inbox(), string(name)+".jsonl", nil)
}

// cleanLater cleans the box when its segments may go. The timer does not outlive the store: what it leaves, a later
// process cleans.
func (x *boxes) cleanLater(b *box) {
	x.mu.Lock()
	defer x.mu.Unlock()
	b.due = true
	if x.timer == nil && !x.ended {
		x.timer = time.AfterFunc(x.grace+10*time.Millisecond, x.cleanDue)
	}
}

func (x *boxes) cleanDue() {
	x.cleaning.Lock()
	defer x.cleaning.Unlock()
	x.mu.Lock()
	x.timer = nil
	var due []*box
	for _, b := range x.known {
		if b.due && !x.ended {
			b.due = false
			due = append(due, b)
		}
	}
	x.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), x.grace)
	defer cancel()
	for _, b := range due {
		unlock, err := b.lock(ctx)
		if err != nil {
			x.cleanLater(b)
			continue
		}
		b.clean() // what fails stays, and is tried again after the next delivery
		unlock()
		if b.young() {
			x.cleanLater(b)
		}
	}
}

func (x *boxes) close() {
	x.mu.Lock()
	x.ended = true
	if x.timer != nil {
		x.timer.Stop()
	}
	x.mu.Unlock()
	x.cleaning.Lock() // one that runs comes to its end
	defer x.cleaning.Unlock()
}

func checkBox(name muster.Name) error {
	if err := checkName("the name of an inbox", string(name)); err != nil {
		return err
	}
	if filepath.Ext(string(name)) != "" {
		return muster.Errorf(muster.Invalid, "%q cannot be the name of an inbox: %s", name, muster.NameRule)
	}
	return nil
}
