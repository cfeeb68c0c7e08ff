package team_test

import (
	"context"
	"iter"
	"maps"
	"strings"
	"sync"

	"muster"
	"muster/store/mem"
)

// meter is a store that counts the leases and watches that its users hold, and what they write.
type meter struct {
	*mem.Store
	mu      sync.Mutex
	leases  int
	watches map[string]int // by what is watched
	puts    map[string]int // by table/key
	reads   map[string]int // by table/name or inbox/name
}

func newMeter(s *mem.Store) *meter {
	return &meter{Store: s, watches: map[string]int{}, puts: map[string]int{}, reads: map[string]int{}}
}

// counts are what is held now: leases, watches, and the most watches of one teammate's inbox.
func (m *meter) counts() (leases, watches, perBox int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for what, n := range m.watches {
		watches += n
		if strings.HasPrefix(what, "inbox/t") {
			perBox = max(perBox, n)
		}
	}
	return m.leases, watches, perBox
}

// written is what was written how often.
func (m *meter) written() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.puts)
}

// looked is how often tables and inboxes were read.
func (m *meter) looked() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.reads)
}

// forget begins to count reads and writes anew.
func (m *meter) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts, m.reads = map[string]int{}, map[string]int{}
}

func (m *meter) add(counts *map[string]int, what string, n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	(*counts)[what] += n
}

func (m *meter) watched(ctx context.Context, what string, ch <-chan struct{}) <-chan struct{} {
	m.add(&m.watches, what, 1)
	context.AfterFunc(ctx, func() { m.add(&m.watches, what, -1) })
	return ch
}

func (m *meter) Table(name string) muster.Table { return meterTable{m.Store.Table(name), m, name} }
func (m *meter) Inbox() muster.Inbox            { return meterInbox{m.Store.Inbox(), m} }
func (m *meter) Log() muster.Log                { return meterLog{m.Store.Log(), m} }
func (m *meter) Leases() muster.Leases          { return meterLeases{m.Store.Leases(), m} }

type meterTable struct {
	muster.Table
	m    *meter
	name string
}

func (t meterTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	t.m.add(&t.m.puts, t.name+"/"+key, 1)
	return t.Table.Put(ctx, key, data, at)
}

func (t meterTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	t.m.add(&t.m.reads, "table/"+t.name, 1)
	return t.Table.Changes(ctx, since)
}

func (t meterTable) Watch(ctx context.Context) <-chan struct{} {
	return t.m.watched(ctx, "table/"+t.name, t.Table.Watch(ctx))
}

type meterInbox struct {
	muster.Inbox
	m *meter
}

func (i meterInbox) Peek(ctx context.Context, box muster.Name, after muster.Pos, most int) ([]muster.Message, muster.Pos, error) {
	i.m.add(&i.m.reads, "inbox/"+string(box), 1)
	return i.Inbox.Peek(ctx, box, after, most)
}

func (i meterInbox) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	return i.m.watched(ctx, "inbox/"+string(box), i.Inbox.Watch(ctx, box))
}

type meterLog struct {
	muster.Log
	m *meter
}

func (l meterLog) Watch(ctx context.Context, stream string) <-chan struct{} {
	return l.m.watched(ctx, "log/"+stream, l.Log.Watch(ctx, stream))
}

type meterLeases struct {
	muster.Leases
	m *meter
}

func (l meterLeases) Acquire(ctx context.Context, name string) (muster.Lease, error) {
	lease, err := l.Leases.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	l.m.mu.Lock()
	l.m.leases++
	l.m.mu.Unlock()
	return meterLease{lease, l.m}, nil
}

type meterLease struct {
	muster.Lease
	m *meter
}

func (l meterLease) Release() error {
	l.m.mu.Lock()
	l.m.leases--
	l.m.mu.Unlock()
	return l.Lease.Release()
}
