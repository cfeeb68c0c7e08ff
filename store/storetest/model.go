package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster"
)

// modelTests does random steps on several handles and on a plain map, slice and queue, which must agree.
func modelTests(t *testing.T, open Open) {
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			another := handles(t, open)
			m := &model{t: r, ctx: t, docs: map[string]string{}}
			for range 2 {
				m.stores = append(m.stores, another())
			}
			m.marks, m.seen = make([]muster.Mark, 2), []map[string]string{{}, {}}
			for range rapid.IntRange(1, 10).Draw(r, "steps") {
				m.step()
			}
			m.check()
		})
	})
}

// model is what the state should be.
type model struct {
	t      *rapid.T
	ctx    *testing.T
	stores []muster.Store
	n      int

	docs  map[string]string
	marks []muster.Mark
	seen  []map[string]string // what each handle knows from its changes

	recs []string
	end  muster.Pos

	box []string
}

// step makes one random call on one of the handles, and compares what it returns with the model.
func (m *model) step() {
	which := rapid.IntRange(0, 1).Draw(m.t, "handle")
	s := m.stores[which]
	m.n++
	ops := []string{"put", "put", "delete", "changes", "append", "fenced", "mail", "mail", "deliver"}
	switch op := rapid.SampledFrom(ops).Draw(m.t, "op"); op {
	case "put", "delete":
		m.table(op, s.Table(muster.TableTasks))
	case "changes":
		m.changes(which)
	case "append", "fenced":
		m.append(op, s.Log())
	case "mail":
		id := fmt.Sprint("m", m.n)
		m.ok(s.Inbox().Put(m.ctx.Context(), "alice", mail(id)))
		m.box = append(m.box, id)
	case "deliver":
		m.deliver(s.Inbox())
	}
}

// table puts or deletes a document, at its revision or at a wrong one.
func (m *model) table(op string, tab muster.Table) {
	key := rapid.SampledFrom([]string{"1", "2", "3"}).Draw(m.t, "key")
	was, there := m.docs[key]
	d, err := tab.Get(m.ctx.Context(), key)
	if there != (err == nil) || there && string(d.Data) != was {
		m.t.Fatalf("%s is %q, want %q (%v)", key, d.Data, was, err)
	}
	at := d.Rev
	stale := rapid.IntRange(0, 3).Draw(m.t, "stale") == 0
	if stale {
		at = "of another"
	}
	if op == "put" {
		_, err = tab.Put(m.ctx.Context(), key, doc(m.n), at)
	} else {
		err = tab.Delete(m.ctx.Context(), key, at)
	}
	switch {
	case stale:
		if !errors.Is(err, muster.ErrStale) {
			m.t.Fatalf("%s of %s at a wrong rev: %v", op, key, err)
		}
		return
	case op == "put":
		m.docs[key] = string(doc(m.n))
	default:
		delete(m.docs, key)
	}
	m.ok(err)
}

// changes reads what a handle has not seen yet, and keeps its view up to date.
func (m *model) changes(which int) {
	for c, err := range m.stores[which].Table(muster.TableTasks).Changes(m.ctx.Context(), m.marks[which]) {
		m.ok(err)
		m.marks[which] = c.Mark
		if c.Rev == muster.None {
			delete(m.seen[which], c.Key)
		} else {
			m.seen[which][c.Key] = string(c.Data)
		}
	}
	if fmt.Sprint(m.seen[which]) != fmt.Sprint(m.docs) {
		m.t.Fatalf("by its changes handle %d knows %v, want %v", which, m.seen[which], m.docs)
	}
}

// append appends a record, or checks that one at a wrong position is refused.
func (m *model) append(op string, l muster.Log) {
	at := m.end
	if op == "fenced" {
		at += 1000
	}
	end, err := l.Append(m.ctx.Context(), one, at, rec(m.n))
	if op == "fenced" {
		if !errors.Is(err, muster.ErrStale) {
			m.t.Fatalf("an append beyond the end: %v", err)
		}
		return
	}
	m.ok(err)
	m.end = end
	m.recs = append(m.recs, string(rec(m.n)))
}

// deliver peeks some mails and drops them.
func (m *model) deliver(in muster.Inbox) {
	most := rapid.IntRange(1, 3).Draw(m.t, "most")
	got, end := m.peek(in, most)
	want := m.box[:min(most, len(m.box))]
	if !slices.Equal(got, want) {
		m.t.Fatalf("the box has %v, want %v", got, want)
	}
	m.ok(in.Drop(m.ctx.Context(), "alice", end))
	m.box = m.box[len(want):]
}

// peek returns the ids of the next mails and the position after them.
func (m *model) peek(in muster.Inbox, most int) (ids []string, end muster.Pos) {
	ms, end, err := in.Peek(m.ctx.Context(), "alice", 0, most)
	m.ok(err)
	for _, x := range ms {
		ids = append(ids, string(x.ID))
	}
	return ids, end
}

// check compares everything that the handles show with the model.
func (m *model) check() {
	for which, s := range m.stores {
		m.changes(which)
		var recs []string
		for r, err := range s.Log().Read(m.ctx.Context(), one, 0) {
			m.ok(err)
			recs = append(recs, string(r.Data))
		}
		if !slices.Equal(recs, m.recs) {
			m.t.Fatalf("the stream has %v, want %v", recs, m.recs)
		}
		if ids, _ := m.peek(s.Inbox(), math.MaxInt); strings.Join(ids, " ") != strings.Join(m.box, " ") {
			m.t.Fatalf("the box has %v, want %v", ids, m.box)
		}
	}
}

// ok ends the test if a call that must succeed has failed.
func (m *model) ok(err error) {
	if err != nil {
		m.t.Fatal(err)
	}
}
