package team_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/testing/tapped"
)

// shaky is a process's handle on the state. Operations are slow, fail, or say that somebody else was faster; and it can
// die: from one moment on nothing that the process does has any effect, and its leases are free, as the kernel frees them.
type shaky struct {
	tapped.Store
	s *sim
	n int

	mu   sync.Mutex
	ops  map[string]int
	dead bool
	at   time.Time // of the last operation
	same int       // operations since the clock moved
}

func newShaky(s *sim, n int) *shaky {
	k := &shaky{s: s, n: n, ops: map[string]int{}}
	k.Store = tapped.Store{Store: s.base.Handle(), Around: k.do}
	if s.with == blind {
		k.Store.Store = overwriting{k.Store.Store}
	}
	return k
}

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

// fate decides what becomes of an operation and lets it take its time, in the bubble of synctest.
func (k *shaky) fate(op, key string, kinds ...fault) fault {
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

// faults are the kinds of faults of each operation. An append at a position can be stale, too.
var faults = map[string][]fault{"get": {lost}, "put": {lost, mute, stale, stale}, "delete": {lost, mute, stale}, "changes": {lost},
	"append": {lost, mute}, "read": {lost}, "tail": {lost}, "mail": {lost, mute}, "peek": {lost}, "drop": {lost, mute},
	"lease": {lost}, "held": {lost}}

// do runs an operation, or its fault. The death of the process comes before or after it, never in the middle.
func (k *shaky) do(o tapped.Operation, f func() error) error {
	kinds := faults[o.Name]
	if o.Name == "append" && o.At != muster.Anywhere {
		kinds = append(slices.Clone(kinds), stale)
	}
	if o.Name == "mail" && k.s.with == leaky && k.s.dice("leak "+string(o.Mail.ID), 0).IntN(40) == 0 {
		f = func() error { return nil }
	}
	err := k.outcome(o, k.fate(o.Name, strings.TrimSuffix(o.Key, "/"), kinds...), f)
	if err == nil && o.Name == "mail" {
		k.s.ack(muster.Name(o.Key), o.Mail)
	}
	return err
}

func (k *shaky) outcome(o tapped.Operation, what fault, f func() error) error {
	if what == stale {
		return muster.Errorf(muster.Stale, "%s %s: somebody else was faster", o.Name, o.Key)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.dead || what == lost {
		return muster.Errorf(muster.Unavailable, "%s %s: the engine cannot be reached", o.Name, o.Key)
	}
	if err := f(); err != nil || what == fine {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s %s: the engine cannot be reached any more", o.Name, o.Key)
}

// overwriting is a store whose put overwrites what others have written since.
type overwriting struct{ muster.Store }

func (o overwriting) Table(name string) muster.Table { return overwritingTable{o.Store.Table(name)} }

type overwritingTable struct{ muster.Table }

func (t overwritingTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	rev, err := t.Table.Put(ctx, key, data, at)
	if errors.Is(err, muster.ErrStale) {
		if d, e := t.Get(ctx, key); e == nil {
			return t.Table.Put(ctx, key, data, d.Rev)
		}
	}
	return rev, err
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
