package team_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"muster"
	"muster/store/mem"
)

// shaky is a process's handle on the state. Operations are slow, fail, or say that somebody else was faster; and it can
// die: from one moment on nothing that the process does has any effect, and its leases are free, as the kernel frees them.
type shaky struct {
	*mem.Store
	s *sim
	n int

	mu   sync.Mutex
	ops  map[string]int
	dead bool
	at   time.Time // of the last operation
	same int       // operations since the clock moved
}

func newShaky(s *sim, n int) *shaky {
	return &shaky{Store: s.base.Handle(), s: s, n: n, ops: map[string]int{}}
}

// die ends the process's writing between two operations.
func (k *shaky) die() {
	k.mu.Lock()
	k.dead = true
	k.mu.Unlock()
	_ = k.Store.Close()
}

// fault is what happens to an operation instead of going well.
type fault int

const (
	fine  fault = iota
	lost        // it is not done, and an error says so
	mute        // it is done, and an error says that it is not
	stale       // somebody else was faster, it seems
)

// simSpins is how many operations at one moment are a loop that waits for nothing.
const simSpins = 3000

// faultIn is one fault in so many operations.
const faultIn = 150

// before decides what becomes of an operation and lets it take its time, in the bubble of synctest.
func (k *shaky) before(op, key string, kinds ...fault) fault {
	k.mu.Lock()
	id := op + " " + key
	n := k.ops[id]
	k.ops[id]++
	if now := time.Now(); now.Equal(k.at) {
		k.same++
	} else {
		k.at, k.same = now, 0
	}
	spins := k.same == simSpins
	if spins { // not a pause: the caller may hold a mutex
		k.same, k.dead = 0, true
	}
	k.mu.Unlock()
	if spins {
		k.s.broken("process %d goes round in circles: %d operations at one moment, the last is %s", k.n, simSpins, id)
	}
	if k.s.calm.Load() {
		return fine
	}
	r := k.s.dice(fmt.Sprintf("store %d %s", k.n, id), n)
	if r.IntN(20) == 0 && !underLock(op, key) {
		time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
	}
	if r.IntN(faultIn) > 0 {
		return fine
	}
	f := kinds[r.IntN(len(kinds))]
	k.s.faults.Add(1)
	k.s.say("process %d: %s fails (%d)", k.n, id, f)
	return f
}

// underLock reports whether callers hold a mutex over the operation. A bubble's clock stands still while anybody waits for
// a mutex, so these cannot be slow there.
func underLock(op, key string) bool {
	return op == "changes" || op == "read" || op == "tail" || op == "append" && key != muster.StreamEvents
}

// do runs an operation, or its fault. The death of the process comes before or after it, never in the middle.
func (k *shaky) do(op, key string, f func() error, kinds ...fault) error {
	what := k.before(op, key, kinds...)
	if what == stale {
		return muster.Errorf(muster.Stale, "%s %s: somebody else was faster", op, key)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead || what == lost {
		return muster.Errorf(muster.Unavailable, "%s %s: the engine cannot be reached", op, key)
	}
	if err := f(); err != nil || what == fine {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s %s: the engine cannot be reached any more", op, key)
}

func (k *shaky) Table(name string) muster.Table { return shakyTable{k.Store.Table(name), k, name} }
func (k *shaky) Log() muster.Log                { return shakyLog{k.Store.Log(), k} }
func (k *shaky) Inbox() muster.Inbox            { return shakyInbox{k.Store.Inbox(), k} }
func (k *shaky) Leases() muster.Leases          { return shakyLeases{k.Store.Leases(), k} }

type shakyTable struct {
	muster.Table
	k    *shaky
	name string
}

func (t shakyTable) Get(ctx context.Context, key string) (d muster.Doc, err error) {
	err = t.k.do("get", t.name+"/"+key, func() (err error) { d, err = t.Table.Get(ctx, key); return err }, lost)
	return d, err
}

func (t shakyTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (rev muster.Rev, err error) {
	err = t.k.do("put", t.name+"/"+key, func() (err error) {
		if rev, err = t.Table.Put(ctx, key, data, at); t.k.s.with == blind && errors.Is(err, muster.ErrStale) {
			if d, e := t.Table.Get(ctx, key); e == nil {
				rev, err = t.Table.Put(ctx, key, data, d.Rev)
			}
		}
		return err
	}, lost, mute, stale, stale)
	if err != nil {
		return muster.None, err
	}
	return rev, nil
}

func (t shakyTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	return t.k.do("delete", t.name+"/"+key, func() error { return t.Table.Delete(ctx, key, at) }, lost, mute, stale)
}

func (t shakyTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		var all []muster.Change
		err := t.k.do("changes", t.name, func() error {
			for c, err := range t.Table.Changes(ctx, since) {
				if err != nil {
					return err
				}
				all = append(all, c)
			}
			return nil
		}, lost)
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
		if err != nil {
			yield(muster.Change{}, err)
		}
	}
}

type shakyLog struct {
	muster.Log
	k *shaky
}

func (l shakyLog) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (end muster.Pos, err error) {
	kinds := []fault{lost, mute}
	if at != muster.Anywhere {
		kinds = append(kinds, stale)
	}
	err = l.k.do("append", stream, func() (err error) { end, err = l.Log.Append(ctx, stream, at, recs...); return err }, kinds...)
	if err != nil {
		return 0, err
	}
	return end, nil
}

func (l shakyLog) Read(ctx context.Context, stream string, after muster.Pos) iter.Seq2[muster.Record, error] {
	return func(yield func(muster.Record, error) bool) {
		if err := l.k.do("read", stream, func() error { return nil }, lost); err != nil {
			yield(muster.Record{}, err)
			return
		}
		for rec, err := range l.Log.Read(ctx, stream, after) {
			if !yield(rec, err) {
				return
			}
		}
	}
}

func (l shakyLog) Tail(ctx context.Context, stream string, n int) (at muster.Pos, err error) {
	err = l.k.do("tail", stream, func() (err error) { at, err = l.Log.Tail(ctx, stream, n); return err }, lost)
	return at, err
}

type shakyInbox struct {
	muster.Inbox
	k *shaky
}

func (i shakyInbox) Put(ctx context.Context, box muster.Name, m muster.Message) error {
	err := i.k.do("mail", string(box), func() error {
		if i.k.s.with == leaky && i.k.s.dice("leak "+string(m.ID), 0).IntN(40) == 0 {
			return nil
		}
		return i.Inbox.Put(ctx, box, m)
	}, lost, mute)
	if err == nil {
		i.k.s.ack(box, m)
	}
	return err
}

func (i shakyInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) (ms []muster.Message, end muster.Pos, err error) {
	end = after
	err = i.k.do("peek", string(box), func() (err error) { ms, end, err = i.Inbox.Peek(ctx, box, after, most); return err }, lost)
	return ms, end, err
}

func (i shakyInbox) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	return i.k.do("drop", string(box), func() error { return i.Inbox.Drop(ctx, box, before) }, lost, mute)
}

type shakyLeases struct {
	muster.Leases
	k *shaky
}

func (l shakyLeases) Acquire(ctx context.Context, name string) (held muster.Lease, err error) {
	err = l.k.do("lease", name, func() (err error) { held, err = l.Leases.Acquire(ctx, name); return err }, lost)
	return held, err
}

func (l shakyLeases) Held(ctx context.Context, name string) (held bool, err error) {
	err = l.k.do("held", name, func() (err error) { held, err = l.Leases.Held(ctx, name); return err }, lost)
	return held, err
}

// ack notes a mail that its sender believes sent.
func (s *sim) ack(box muster.Name, m muster.Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.acked[box] == nil {
		s.acked[box] = map[muster.MessageID]muster.MessageType{}
	}
	s.acked[box][m.ID] = m.Type
}
