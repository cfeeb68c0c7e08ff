package mailbox

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"muster"
)

// newsCacheTTL is how long the cache counts. Another program may change what lies before a position without
// changing the position, so everything is read again after that time.
const newsCacheTTL = time.Minute

// afterDrop is how long after a Drop everything is read. A program that had the file open may still write
// to what was moved aside.
const afterDrop = 5 * time.Second

// boxState is what is known of one inbox: before newsEnd there is only status news, of which landings are
// the landings.
type boxState struct {
	newsEnd   muster.Pos // before it lies news only,
	landings  []muster.Message
	readAt    time.Time // as it was when all of it was read
	droppedAt time.Time
}

// idleCache remembers up to where an inbox holds nothing but status news. News wakes nobody and may lie
// there for hours. A lead gets two of them for each member that becomes idle, and asks at each hint whether
// there is anything else; without the cache it would read all of them each time.
type idleCache struct {
	mu    sync.Mutex
	boxes map[muster.Name]boxState
}

// update changes what is known of a box, and returns what was known before; the zero value says nothing.
// The read and the write happen under one lock, so no update of another goroutine is lost.
func (q *idleCache) update(box muster.Name, f func(*boxState)) boxState {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.boxes == nil {
		q.boxes = map[muster.Name]boxState{}
	}
	before := q.boxes[box]
	after := before
	f(&after)
	q.boxes[box] = after
	return before
}

// Waking returns the pending mails after a position that are not status news, oldest first. It reads only
// what is new since it last saw nothing but news, for at most a minute.
func (p *Mail) Waking(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	waking, _, err := p.scan(ctx, box, after)
	return waking, err
}

// Landings returns the pending mails after a position that report a landing, oldest first. It reads as
// little as Waking.
func (p *Mail) Landings(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	_, landed, err := p.scan(ctx, box, after)
	return landed, err
}

// scan reads the mail after a position, and sorts it into mail that wakes a member and reports of landings.
func (p *Mail) scan(ctx context.Context, box muster.Name, after muster.Pos) (waking, landed []muster.Message,
	err error) {
	k, now, from := p.idle.update(box, func(*boxState) {}), time.Now(), after
	isCached := k.newsEnd > after && now.Sub(k.readAt) < newsCacheTTL && now.Sub(k.droppedAt) >= afterDrop
	if isCached {
		from, landed = k.newsEnd, slices.Clip(k.landings)
	}
	msgs, end, err := p.inbox.Peek(ctx, box, from, math.MaxInt32)
	if err != nil || len(msgs) == 0 {
		return nil, landed, err
	}
	for _, m := range msgs {
		switch {
		case !m.Type.News():
			waking = append(waking, m)
		case m.Type == muster.MailLanded:
			landed = append(landed, m)
		}
	}
	if len(waking) == 0 { // otherwise the mail is about to be read, and there is nothing to remember
		p.idle.update(box, func(k *boxState) {
			if k.newsEnd, k.landings = end, landed; !isCached {
				k.readAt = now
			}
		})
	}
	return waking, landed, nil
}
