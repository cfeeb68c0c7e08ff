package retry

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/durable"
	"muster/llm"
	"muster/llm/internal/wire"
)

// pacer paces the requests of one account by a record of them, which a file shares between the processes of a machine.
//
// The file is changed only under its lock, so that no two processes take the same place in a window. It is not synced:
// after a power loss no request is under way. One that cannot be read is thrown away, and while it cannot be locked or
// written this process goes by what it knows itself.
type pacer struct {
	rules
	files *durable.Files
	path  string // of the file; "": there is none
	id    string // of this process, for others who read the file

	turn chan struct{} // holds a token while a request of this process has a time reserved
	line atomic.Int64  // requests that wait for a time or have one

	mu     sync.Mutex // guards the fields below; nobody waits for anything while it is held
	own    record     // as it was last
	avoid  time.Time  // until when the file is left alone, because it could not be locked
	factor float64    // how many tokens a request costs for each that it seems to have
}

// lockTimeout is how long a process waits for the lock of a file. Each holds it for less than a millisecond, so that
// one who holds it longer was stopped.
const lockTimeout = time.Second

// change calls do with the record and stores what it makes of it.
func (p *pacer) change(ctx context.Context, do func(s *record, now int64)) {
	unlock, isShared := p.lock(ctx)
	defer unlock()
	var file []byte
	var stored record
	if isShared {
		file, _ = durable.ReadRegular(p.path, maxFile) // one that cannot be read is replaced
		// What a process left that was killed while it wrote may have the end of an older record behind it.
		if err := json.NewDecoder(bytes.NewReader(file)).Decode(&stored); err != nil || !p.isSane(&stored) {
			stored = record{}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if isShared && stored.Saved != 0 {
		p.own = stored
	}
	now := time.Now().UnixMilli()
	p.open(&p.own, now)
	do(&p.own, now)
	if data, err := json.Marshal(&p.own); err == nil && isShared {
		// Spaces in place of what the old record had more: one write is the whole change.
		data = append(data, bytes.Repeat([]byte(" "), max(len(file)-len(data), 0))...)
		if f, err := p.files.FS().OpenFile(p.path, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			_, _ = f.Write(data)
			_ = f.Close()
		}
	}
}

// maxFile is how large a file may be that is believed.
const maxFile = 1 << 20

// isSane reports whether a record may be what a process stored.
func (p *pacer) isSane(s *record) bool {
	horizon := s.Saved + 24*time.Hour.Milliseconds()
	for _, w := range s.windows("") {
		for _, x := range w.Slots {
			if x.At > horizon || x.Sent < 0 || x.Tokens < 0 {
				return false
			}
		}
	}
	return s.Until < horizon && s.Last < horizon && s.Guess >= 0 && s.Proven >= 0 && s.Interval > 0 && s.Step >= 0
}

// lock locks the file. isShared is false if it is not to be used now.
func (p *pacer) lock(ctx context.Context) (unlock func(), isShared bool) {
	p.mu.Lock()
	isShared = p.path != "" && time.Now().After(p.avoid)
	p.mu.Unlock()
	if !isShared {
		return func() {}, false
	}
	// A request that ends still says so to the others.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockTimeout)
	defer cancel()
	unlock, err := p.files.Lock(ctx, p.path+".lock")
	if err != nil {
		p.mu.Lock()
		p.avoid = time.Now().Add(10 * lockTimeout)
		p.mu.Unlock()
		return func() {}, false
	}
	return unlock, true
}

// wait returns when a request may be made. tell is told of a wait that is worth it.
//
// Only one request of a process has a time reserved, and the others stand in line behind it. So processes take turns,
// however many agents each has, and the requests of a process are made in the order in which they came.
func (p *pacer) wait(ctx context.Context, t *ticket, tell func(time.Time, error)) error {
	behind := p.line.Add(1) - 1
	defer p.line.Add(-1)
	select {
	case p.turn <- struct{}{}:
	default:
		p.change(ctx, func(s *record, now int64) {
			at := p.earliest(s, now, t)
			if at > now {
				at += behind * (at - s.Last) // each of them waits about as long for the one before it
			}
			p.tell(s, now, at, t, tell)
		})
		select {
		case p.turn <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	defer func() { <-p.turn }()
	for {
		var pause time.Duration
		p.change(ctx, func(s *record, now int64) {
			t.isOnly = p.line.Load() == 1
			at, ok := p.ask(s, now, t)
			if pause = time.Duration(at-now) * time.Millisecond; ok {
				pause = 0
			}
			p.tell(s, now, at, t, tell)
		})
		if pause == 0 {
			return nil
		}
		if err := sleepContext(ctx, pause); err != nil {
			p.change(ctx, func(s *record, _ int64) { p.cancel(s, t) })
			return err
		}
	}
}

// tell tells of a wait if it is worth it.
func (p *pacer) tell(s *record, now, at int64, t *ticket, tell func(time.Time, error)) {
	if pause := time.Duration(at-now) * time.Millisecond; pause >= time.Second {
		tell(time.Now().Add(pause), s.why(now, t))
	}
}

// why returns why a request has to wait.
func (s *record) why(now int64, t *ticket) error {
	switch {
	case s.Until > now || s.Guess > 0 && s.Why != "":
		return &llm.Error{Kind: llm.Limited, Err: errors.New(s.Why)}
	case t.Requests > 0:
		return llm.Errorf(llm.Limited, "you allow %d requests a minute", t.Requests)
	}
	return llm.Errorf(llm.Limited, "the server's limit for a minute is used up")
}

// answered notes an answer.
func (p *pacer) answered(ctx context.Context, t *ticket, a llm.Answer) {
	p.change(ctx, func(s *record, now int64) { p.rules.answered(s, now, t, a) })
}

// ended notes how a request has ended.
func (p *pacer) ended(ctx context.Context, t *ticket, u llm.Usage, err error) {
	cost := u.Input + u.CacheWrite + u.CacheWriteLong + u.Output
	if e, ok := errors.AsType[*llm.Error](err); ok && e.Kind == llm.Limited {
		p.change(ctx, func(s *record, now int64) {
			p.refused(s, now, t, now+e.After.Milliseconds(), e.Err.Error())
		})
	} else if t.isPending || t.tokens > 0 && cost > 0 {
		p.change(ctx, func(s *record, _ int64) {
			s.settle(t)
			p.spent(s, t, cost)
		})
		p.mu.Lock()
		defer p.mu.Unlock()
		if t.estimate > 0 && cost > 0 {
			p.factor = min(max(p.factor*(0.7+0.3*float64(cost)/float64(t.estimate)), 0.01), 10)
		}
	}
}

// ticket returns the ticket for a request.
func (p *pacer) ticket(a llm.Account, r llm.Request) *ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := &ticket{Account: a, by: p.id}
	if w := p.own.Models[a.Model]; a.Tokens > 0 || w != nil && w.Tokens > 0 {
		t.estimate = 1 + int(p.factor*float64(wire.PromptSize(r)/4))
		t.tokens = t.estimate
	}
	return t
}

// newPacer returns the pacer of an account, with its file in dir; "" has none.
func newPacer(files *durable.Files, dir, id string, window time.Duration) *pacer {
	p := &pacer{rules: rules{window.Milliseconds()}, files: files, factor: 1, id: rand.Text(),
		turn: make(chan struct{}, 1)}
	if dir != "" {
		p.path = filepath.Join(dir, id+".json")
	}
	return p
}
