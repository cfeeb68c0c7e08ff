package file

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/clock"
	"muster/internal/durable"
)

// boxes is the inboxes. Each has a live file NAME.jsonl, to which everybody appends, and segments, which are earlier
// live files that were renamed when mail was dropped.
type boxes struct {
	store *Store
	grace time.Duration

	mu       sync.Mutex
	byName   map[muster.Name]*box
	ended    bool
	cleaning sync.WaitGroup // the timers that have fired and are at work
}

// box is one inbox and what this process knows of it.
type box struct {
	s    *Store
	name muster.Name

	// timer will clean the inbox; nil: nothing is to be cleaned. The lock of boxes guards it.
	timer *time.Timer

	mu        sync.Mutex
	views     map[muster.Pos]view  // by the place that a Peek returned
	firstSeen map[uint32]time.Time // by generation: since when we know the segment
	rejected  map[place]bool       // the lines that we know to be set aside
}

// view is how far a Peek has read each file, by generation. What a program without our lock added to an older file
// after the Peek was not read, although it lies before the position that the Peek returned. Drop must not remove it.
type view map[uint32]int64

// maxViews limits the views kept for Peeks that no Drop follows.
const maxViews = 64

// segmentGrace is how long a segment is kept after it was moved. A program that had the live file open may still write
// to it.
const segmentGrace = 2 * time.Second

// maxUnread is how many bytes of mail may wait for a member before others may write it no more. What the runtime has to
// say, such as requests and answers, still comes.
const maxUnread = 16 << 20

// maxLiveFile is the size at which a live file is full: a place has 32 bits for the offset.
const maxLiveFile = 1 << 31

// box returns the inbox of that name.
func (x *boxes) box(ctx context.Context, name muster.Name) (*box, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkBox(name); err != nil {
		return nil, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	b := x.byName[name]
	if b == nil {
		b = &box{
			s: x.store, name: name,
			views: map[muster.Pos]view{}, firstSeen: map[uint32]time.Time{}, rejected: map[place]bool{},
		}
		x.byName[name] = b
	}
	return b, nil
}

// livePath returns the path of the live file.
func (b *box) livePath() string { return filepath.Join(b.s.dir.Inbox(), string(b.name)+".jsonl") }

// lock takes the lock of the inbox. Writers, Drop and the cleaning take it; Peek does not.
func (b *box) lock(ctx context.Context) (func(), error) {
	return b.s.lock(ctx, "inbox", string(b.name))
}

// Put appends m to the inbox with one write and one sync, which it shares with other goroutines of this process.
func (x *boxes) Put(ctx context.Context, name muster.Name, m muster.Message) error {
	b, err := x.box(ctx, name)
	if err != nil {
		return err
	}
	m.To = cmp.Or(m.To, name)
	isSpeech := m.Type == muster.MailMessage || m.Type == muster.MailBroadcast
	if isSpeech && m.From != muster.System && b.unread() > maxUnread {
		return muster.Errorf(muster.Held, "no mail sent: %s has %d MB of mail that it has not read", name,
			maxUnread>>20).
			WithHint("wait until it has")
	}
	line, err := muster.MarshalLine(m)
	if err == nil { // what could not be read again must not be written, because it would be set aside at delivery
		err = new(muster.Message).UnmarshalJSON(line)
	}
	if err != nil {
		return muster.Errorf(muster.Invalid, "this cannot be mailed to %s: %w", name, err)
	}
	_, err = x.store.groups.append(ctx, "inbox "+string(name), addChecksum(line), b.lock,
		// Others must not fail because the context of the one that writes for all has ended.
		func(all []byte) (muster.Pos, error) { return 0, b.add(context.WithoutCancel(ctx), all) })
	return err
}

// unread returns how many bytes of mail wait. What cannot be looked at counts nothing.
func (b *box) unread() (size int64) {
	if fi, err := b.s.fs.Stat(b.livePath()); err == nil {
		size = fi.Size()
	}
	segments, _ := b.segments()
	for _, s := range segments {
		size += s.size - s.delivered
	}
	return size
}

// add appends lines to the live file. The caller holds the lock of the inbox.
func (b *box) add(ctx context.Context, lines []byte) error {
	t, err := b.s.files.OpenTail(b.livePath())
	if durable.ConcernsOneFile(err) && b.setLiveAside() == nil {
		t, err = b.s.files.OpenTail(b.livePath())
	}
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	if t.End() > maxLiveFile {
		return muster.Errorf(muster.Unavailable, "the inbox of %s is full: nobody reads it", b.name)
	}
	if err := waitForWholeLine(ctx, t); err != nil {
		return err
	}
	// A torn part gets a newline by the append, and thereby becomes a line: a mail, or one for the rejected.
	if _, err := t.Append(lines); err != nil {
		return err
	}
	b.s.watch.notify(b.s.dir.Inbox(), string(b.name)+".jsonl")
	return nil
}

// setLiveAside turns a live file that cannot be opened into a segment, so that mail goes on beside it. Its mail stays
// pending until it can be read. The caller holds the lock of the inbox.
func (b *box) setLiveAside() error {
	segs, err := b.segments()
	if err != nil {
		return err
	}
	return b.s.files.Rename(b.livePath(), b.segment(nextGen(segs), 0))
}

// How long a program that writes without our lock gets to end what it writes, and the time between two looks at a line.
const (
	maxHalfWritten = 50 * time.Millisecond
	briefWait      = 5 * time.Millisecond
)

// waitForWholeLine gives a program that appends without our lock a moment to end its line.
func waitForWholeLine(ctx context.Context, t *durable.Tail) error {
	for waited := time.Duration(0); waited < maxHalfWritten && len(t.Torn()) > 0; waited += briefWait {
		if _, rest := splitObjects(t.Torn(), 0); len(rest.raw) == 0 {
			return nil
		}
		if err := clock.Sleep(ctx, briefWait); err != nil {
			return err
		}
		if err := t.Reread(); err != nil {
			return err
		}
	}
	return nil
}

// Peek returns at most most pending mails after a position, and the position after them. What a program without our
// lock adds to a segment lies before positions in a younger file; it is pending, and Peek from zero returns it.
func (x *boxes) Peek(
	ctx context.Context, name muster.Name, after muster.Pos, most int,
) (mails []muster.Message, end muster.Pos, err error) {
	b, err := x.box(ctx, name)
	if err != nil || most <= 0 {
		return nil, after, err
	}
	// The files stay open until they are read. A Drop or the cleaning may rename or remove them meanwhile; what is open
	// keeps its content, so a Peek sees the inbox as it was at one moment.
	parts, err := b.openFiles()
	if err != nil {
		return nil, after, err
	}
	defer closeAll(parts)
	var bad []unit
	from, had := placeOf(after), view{}
	end = after
	for _, p := range parts {
		if p.gen < from.gen || len(mails) >= most {
			continue
		}
		if p.closed != nil {
			why := p.closed.Error() + "; mail waits in it"
			bad = append(bad, unit{gen: p.gen, start: -1, raw: []byte(p.path), why: why})
			continue
		}
		// What is behind the delivered offset is pending. In the file of the position, what was peeked before is not
		// returned again.
		start := p.delivered
		if p.gen == from.gen && from.at <= p.size { // else the file was emptied by another reader
			start = max(start, from.at)
		}
		read := start
		err := p.scan(start, b.isOld(p), func(u unit) bool {
			if u.why != "" {
				if len(bad) < maxBad && !b.isRejected(u) {
					u.raw = bytes.Clone(u.raw[:min(len(u.raw), maxQuarantined)])
					bad = append(bad, u)
				}
			} else {
				if len(mails) >= most {
					return false
				}
				mails = append(mails, b.mail(u))
				end = place{p.gen, u.end}.pos()
			}
			read = u.end
			return true
		})
		if durable.ConcernsOneFile(err) { // the mail before it is read, and that of the other files
			bad = append(bad, unit{gen: p.gen, start: -1, raw: []byte(p.path), why: err.Error()})
		} else if err != nil {
			return nil, after, errUnreadable(p.path, err)
		}
		had[p.gen] = read
	}
	b.remember(end, had)
	b.quarantine(ctx, bad)
	return mails, end, nil
}

// remember keeps a view. If two Peeks end at the same position, only what both have read counts: a Drop of that
// position must not remove a mail that one of them has not returned.
func (b *box) remember(end muster.Pos, had view) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.views) >= maxViews {
		clear(b.views)
	}
	if before, isKnown := b.views[end]; isKnown {
		for gen, now := range had {
			had[gen] = min(now, before[gen]) // 0: that Peek has not read the file
		}
	}
	b.views[end] = had
}

// mail returns the mail of a unit, with the fields that other programs leave out.
func (b *box) mail(u unit) muster.Message {
	m := u.mail
	if m.ID == "" {
		m.ID = u.id()
	}
	m.To = cmp.Or(m.To, b.name)
	return m
}

// Watch receives after new mail until ctx ends.
func (x *boxes) Watch(ctx context.Context, name muster.Name) <-chan struct{} {
	if checkBox(name) != nil {
		return endedWatch()
	}
	return x.store.watch.subscribe(ctx, x.store.dir.Inbox(), string(name)+".jsonl", nil)
}

// close ends the cleaning and waits for one that runs, so that nothing is written after Close has returned.
func (x *boxes) close() {
	x.mu.Lock()
	x.ended = true
	for _, b := range x.byName {
		if b.timer != nil {
			b.timer.Stop()
		}
	}
	x.mu.Unlock()
	x.cleaning.Wait()
}

// checkBox refuses a name that cannot be an inbox's. A name with an extension could be the name of another inbox's
// file.
func checkBox(name muster.Name) error {
	if err := checkName("the name of an inbox", string(name)); err != nil {
		return err
	}
	if filepath.Ext(string(name)) != "" {
		return muster.Errorf(muster.Invalid, "%q cannot be the name of an inbox: %s", name, muster.NameRule)
	}
	return nil
}

// quarantined is a line of NAME.rejected.jsonl: what stood where, and why it is no mail.
type quarantined struct {
	Place string `json:"place"`
	Why   string `json:"why"`
	Line  string `json:"line,omitempty"`
	Bytes []byte `json:"bytes,omitempty"` // instead of Line, when it is no text
}

// maxQuarantined is how many bytes of a line are kept that is no mail. A longer one is no mail that anybody wrote.
const maxQuarantined = 64 << 10

// maxBad is how many of them a Peek sets aside. The next one sets aside those that follow.
const maxBad = 1000

// isRejected reports whether this process knows a unit to be set aside.
func (b *box) isRejected(u unit) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.rejected[u.place()]
}

// quarantine copies units that are no mail to NAME.rejected.jsonl, each once, and reports those that it copied. It is
// a service to people and never delays mail: what fails is tried again at the next Peek.
func (b *box) quarantine(ctx context.Context, bad []unit) {
	bad = slices.DeleteFunc(bad, b.isRejected)
	if len(bad) == 0 {
		return
	}
	// Without the lock of the box, because writing takes that of the inbox's file. Two Peeks may come here with the
	// same unit; the file then shows the second one that it is there.
	written, err := b.writeQuarantine(ctx, bad)
	if err != nil {
		return
	}
	b.mu.Lock()
	for _, u := range bad {
		b.rejected[u.place()] = true
	}
	b.mu.Unlock()
	for _, u := range written {
		if b.s.OnReject != nil {
			b.s.OnReject(b.name, u.raw, u.why)
		}
	}
}

// writeQuarantine appends the units that no process has appended yet, and returns them. It reads the whole file each
// time, which is small: units that are no mail are rare.
func (b *box) writeQuarantine(ctx context.Context, bad []unit) (fresh []unit, err error) {
	unlock, err := b.lock(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	path := filepath.Join(b.s.dir.Inbox(), string(b.name)+".rejected.jsonl")
	data, _, err := b.s.files.ReadFile(path)
	if errors.Is(err, durable.ErrTooLarge) { // what it has stays for people, as long as no further one is full
		err = b.s.files.Rename(path, path+".old")
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	there := map[string]bool{}
	for line := range bytes.Lines(data) {
		var a quarantined
		if json.Unmarshal(line, &a) == nil {
			there[a.Place] = true
		}
	}
	var out []byte
	for _, u := range bad {
		a := quarantined{Place: u.place().String(), Why: u.why, Line: string(u.raw)}
		if there[a.Place] {
			continue
		}
		if !utf8.Valid(u.raw) {
			a.Line, a.Bytes = "", u.raw
		}
		line, err := muster.MarshalLine(a)
		if err != nil {
			return nil, err
		}
		out, fresh = append(out, addChecksum(line)...), append(fresh, u)
	}
	if len(fresh) > 0 {
		_, err = b.s.files.Append(path, bytes.TrimSuffix(out, []byte("\n")))
	}
	return fresh, err
}
