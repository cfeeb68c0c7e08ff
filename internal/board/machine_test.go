package board

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"muster"
	"muster/journal"
	"muster/store/mem"
)

// machine is three processes on one board, driven at random.
type machine struct {
	*world
	boards []*Board
	fences map[muster.TaskID]int // the highest ever seen
	ids    map[muster.TaskID]bool
	told   map[muster.TaskID]int  // of its completion
	done   map[muster.TaskID]bool // completed by us, once
}

func (m *machine) pick(r *rapid.T) *Board { return rapid.SampledFrom(m.boards).Draw(r, "process") }
func (m *machine) id(r *rapid.T) muster.TaskID {
	return muster.TaskID(rapid.IntRange(1, len(m.ids)+1).Draw(r, "task"))
}
func (m *machine) some(r *rapid.T) []muster.TaskID {
	n := rapid.IntRange(0, 3).Draw(r, "blockers")
	var out []muster.TaskID
	for range n {
		out = append(out, m.id(r))
	}
	return out
}
func (m *machine) who(r *rapid.T) muster.Name {
	return rapid.SampledFrom([]muster.Name{"alice", "bob", muster.Lead}).Draw(r, "who")
}

// fence is the task's, or one that is too old.
func (m *machine) fence(r *rapid.T, id muster.TaskID) int {
	return m.fences[id] - rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(r, "late by")
}

// known lets pass what a board may refuse.
func (m *machine) known(what string, t muster.Task, err error) {
	m.Helper()
	var e *muster.Error
	if err != nil && (!errors.As(err, &e) || !slices.Contains([]muster.Code{muster.NotFound, muster.Held, muster.Invalid, muster.Fenced}, e.Code) || e.Message == "") {
		m.Fatalf("%s: %v", what, err)
	}
	if err == nil && t.ID != 0 {
		if t.Fence < m.fences[t.ID] {
			m.Fatalf("%s: the fence of task %d went from %d to %d", what, t.ID, m.fences[t.ID], t.Fence)
		}
	}
}

func TestMachine(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		s := mem.New()
		m := &machine{world: newWorld(r, func() muster.Store { return s.Handle() }), fences: map[muster.TaskID]int{},
			ids: map[muster.TaskID]bool{}, told: map[muster.TaskID]int{}, done: map[muster.TaskID]bool{}}
		for range 3 {
			b := m.board()
			b.OnEffect(muster.EffectTell, func(_ context.Context, t muster.Task) error {
				if t.Status == muster.Completed { // it may have been set aside before, which was told too
					m.told[t.ID]++
				}
				return nil
			})
			m.boards = append(m.boards, b)
		}
		late := func(what string, id muster.TaskID, fence int, t muster.Task, err error) {
			m.known(what, t, err)
			if err == nil && fence != m.fences[id] {
				m.Fatalf("%s: task %d at fence %d let an owner of fence %d act", what, id, m.fences[id], fence)
			}
		}
		r.Repeat(map[string]func(*rapid.T){
			"create": func(r *rapid.T) {
				t, err := m.pick(r).Create(m.ctx, Draft{Subject: "x", BlockedBy: m.some(r), Priority: rapid.IntRange(0, 2).Draw(r, "priority"),
					Role: rapid.SampledFrom([]string{"", "", "coder", "Coder", "KOCH"}).Draw(r, "role")})
				m.known("create", t, err)
				if err == nil && m.ids[t.ID] {
					m.Fatalf("id %d was given twice", t.ID)
				}
				if err == nil {
					m.ids[t.ID] = true
				}
			},
			"claim": func(r *rapid.T) {
				id := m.id(r)
				before := m.stored()
				t, err := m.pick(r).Claim(m.ctx, id, Claim{Owner: m.who(r), Role: "coder"})
				m.known("claim", t, err)
				may := before[id].Status == muster.Pending && before[id].RoleMay("coder")
				for _, d := range before[id].DependsOn {
					may = may && before[d].Status == muster.Completed
				}
				if (err == nil) != may {
					m.Fatalf("claim of %+v: %v", before[id], err)
				}
				if err == nil && t.Fence != m.fences[id]+1 {
					m.Fatalf("claim: fence %d after %d", t.Fence, m.fences[id])
				}
			},
			"claim next": func(r *rapid.T) {
				p, role := m.pick(r), rapid.SampledFrom([]string{"", "coder", "koch", "codi"}).Draw(r, "role")
				ready, err := p.Ready(m.ctx, role, false)
				m.known("ready", muster.Task{}, err)
				if want := m.plainlyReady(role); !slices.Equal(ids(ready), want) {
					m.Fatalf("ready for %q: %v, want %v", role, ids(ready), want)
				}
				t, ok, err := p.ClaimNext(m.ctx, Claim{Owner: m.who(r), Role: role})
				m.known("claim next", t, err)
				if ok != (len(ready) > 0) || ok && t.ID != ready[0].ID {
					m.Fatalf("ready were %v, claimed %+v", ready, t)
				}
			},
			"release": func(r *rapid.T) {
				id := m.id(r)
				f := m.fence(r, id)
				t, err := m.pick(r).Release(m.ctx, id, f, Release{Reason: "r", Counts: rapid.Bool().Draw(r, "counts")})
				late("release", id, f, t, err)
			},
			"revoke": func(r *rapid.T) {
				id := m.id(r)
				f, highest := m.fence(r, id), m.fences[id]
				t, err := m.pick(r).Revoke(m.ctx, id, f, muster.User, "r")
				m.known("revoke", t, err)
				if err == nil && f != highest {
					m.Fatalf("revoke: task %d at fence %d lost its claim to a revoker of fence %d", id, highest, f)
				}
			},
			"land": func(r *rapid.T) {
				id := m.id(r)
				f := m.fence(r, id)
				t, err := m.pick(r).BeginLanding(m.ctx, id, f, muster.PendingLanding{Head: "h"})
				late("land", id, f, t, err)
			},
			"return": func(r *rapid.T) {
				id := m.id(r)
				f := m.fence(r, id)
				t, err := m.pick(r).Return(m.ctx, id, f, "check", Details{})
				m.known("return", t, err)
			},
			"complete": func(r *rapid.T) {
				id := m.id(r)
				f := m.fence(r, id)
				t, err := m.pick(r).Complete(m.ctx, id, f, Outcome{Result: "r"})
				late("complete", id, f, t, err)
			},
			"finish": func(r *rapid.T) {
				t, err := m.pick(r).CompleteByHand(m.ctx, m.id(r), muster.User, "r")
				m.known("finish", t, err)
			},
			"update": func(r *rapid.T) {
				p := rapid.IntRange(0, 2).Draw(r, "priority")
				t, err := m.pick(r).Update(m.ctx, m.id(r), Patch{Priority: &p, Retry: rapid.Bool().Draw(r, "retry"),
					AddBlockers: m.some(r), RemoveBlockers: m.some(r)})
				m.known("update", t, err)
			},
			"delete": func(r *rapid.T) {
				m.known("delete", muster.Task{}, m.pick(r).Delete(m.ctx, m.id(r), rapid.Bool().Draw(r, "force")))
			},
			"settle": func(r *rapid.T) {
				must(m.world, 0, m.pick(r).Settle(m.ctx))
				m.whole()
			},
			"": func(r *rapid.T) {
				all := m.stored()
				m.owners(all)
				for id, t := range all {
					if t.Fence < m.fences[id] {
						m.Fatalf("the fence of task %d went from %d to %d", id, m.fences[id], t.Fence)
					}
					m.fences[id] = t.Fence
				}
				if c := cycleIn(all); c != "" {
					m.Fatalf("there is a cycle: %s", c)
				}
			},
		})
		must(m.world, 0, m.boards[0].Settle(m.ctx))
		m.whole()
		for id, n := range m.told {
			if n > 1 {
				m.Fatalf("task %d was told %d times", id, n)
			}
		}
	})
}

// plainlyReady returns the ids of the tasks that are ready for a role by a plain look at all tasks.
func (m *machine) plainlyReady(role string) []muster.TaskID {
	m.Helper()
	all := m.stored()
	var ready []muster.Task
	for _, t := range all {
		isOpen := func(d muster.TaskID) bool { return all[d].Status != muster.Completed }
		if t.Status == muster.Pending && !slices.ContainsFunc(t.DependsOn, isOpen) && t.RoleMay(role) {
			ready = append(ready, t)
		}
	}
	slices.SortFunc(ready, func(a, b muster.Task) int { return inOrder(&node{task: &a}, &node{task: &b}) })
	return ids(ready)
}

func ids(tasks []muster.Task) (out []muster.TaskID) {
	for _, t := range tasks {
		out = append(out, t.ID)
	}
	return out
}

func ExampleDraft() {
	s := mem.New()
	b := New(s, journal.New(s.Log()))
	ctx := context.Background()
	one, _ := b.Create(ctx, Draft{Subject: "tokenizer"})
	two, _ := b.Create(ctx, Draft{Subject: "counter", BlockedBy: []muster.TaskID{one.ID}})
	_, err := b.Claim(ctx, two.ID, Claim{Owner: "alice"})
	fmt.Println(err)
	// Output: task 2 waits for 1 (pending)
}
