package mailbox

import (
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"muster"
)

// Status news wakes nobody and may lie in a box for hours: the lead's gets two of each member that becomes idle. Whoever
// asks at every hint whether there is something else must not read it all each time.

// again is how long news that was looked at is taken for all that lies there. A place in a box says nothing of what
// another program, which knows nothing of places, has done before it.
const again = time.Minute

// moved is how long after a Drop everything is read: what was moved aside may still be written to by a program that had
// the file open.
const moved = 5 * time.Second

// quiet is what is known of one box.
type quiet struct {
	upto    muster.Pos // before it lies news only,
	landed  []muster.Message
	read    time.Time // as it was when all of it was read
	dropped time.Time
}

// quiets are the boxes that had news in them, or a Drop.
type quiets struct {
	mu    sync.Mutex
	boxes map[muster.Name]quiet
}

func (q *quiets) get(box muster.Name) quiet {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.boxes[box]
}

func (q *quiets) note(box muster.Name, f func(*quiet)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.boxes == nil {
		q.boxes = map[muster.Name]quiet{}
	}
	k := q.boxes[box]
	f(&k)
	q.boxes[box] = k
}

// Waking returns the pending mails after the place that are not status news, oldest first. News that it has seen once it
// passes over for a minute: what it reads is what has come since.
func (p *Post) Waking(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	waking, _, err := p.look(ctx, box, after)
	return waking, err
}

// Landings returns the pending mails after the place that tell of a landing, oldest first, and reads as little as Waking.
func (p *Post) Landings(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	_, landed, err := p.look(ctx, box, after)
	return landed, err
}

func (p *Post) look(ctx context.Context, box muster.Name, after muster.Pos) (waking, landed []muster.Message, err error) {
	k, now, from := p.quiets.get(box), time.Now(), after
	part := k.upto > after && now.Sub(k.read) < again && now.Sub(k.dropped) >= moved
	if part {
		from, landed = k.upto, slices.Clip(k.landed)
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
	if len(waking) == 0 {
		p.quiets.note(box, func(k *quiet) {
			if k.upto, k.landed = end, landed; !part {
				k.read = now
			}
		})
	}
	return waking, landed, nil
}
