package board

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"muster"
	"muster/journal"
)

// interrupted is a process's store that lets others act at one place: right before an operation on a document.
type interrupted struct {
	muster.Store
	at func(op, key string)
}

func (s interrupted) Table(name string) muster.Table {
	return interruptedTable{s.Store.Table(name), s.at}
}

type interruptedTable struct {
	muster.Table
	at func(op, key string)
}

func (t interruptedTable) Get(ctx context.Context, key string) (muster.Doc, error) {
	t.at("get", key)
	return t.Table.Get(ctx, key)
}

func (t interruptedTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	t.at("put", key)
	return t.Table.Put(ctx, key, data, at)
}

func (t interruptedTable) Delete(ctx context.Context, key string, at muster.Rev) error {
	t.at("delete", key)
	return t.Table.Delete(ctx, key, at)
}

func (t interruptedTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	t.at("list", "")
	return t.Table.Changes(ctx, since)
}

// interruptedBoard is a board in a process that is interrupted once, when what says so.
func (w *world) interruptedBoard(when func(op, key string) bool, do func()) *Board {
	done := false
	s := interrupted{w.open(), func(op, key string) {
		if !done && when(op, key) {
			done = true
			do()
		}
	}}
	return New(s, journal.New(s.Log()))
}

func at(op, key string) func(string, string) bool {
	return func(o, k string) bool { return o == op && k == key }
}

func TestTheOtherHalfOfACycleComesBetween(t *testing.T) {
	w := newWorld(t, engines["file"](t)) // whose revisions come again with the content
	other := w.board()
	w.add(other, "1")
	w.add(other, "2")
	w.add(other, "3")
	must(w, 0, errOf(other.Update(w.ctx, 3, Patch{AddBlockers: []muster.TaskID{1}}))) // so that there is a meta
	b := w.interruptedBoard(at("put", "meta"), func() {
		must(w, 0, errOf(other.Update(w.ctx, 2, Patch{AddBlockers: []muster.TaskID{1}})))
	})
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{2}})), muster.Invalid, "task 1 cannot wait for task 2: 1 -> 2 -> 1 would wait for each other")
}

// Somebody slow adds an edge; others write it for it, remove it again, and add the opposite one. The slow one must
// not bring it back.
func TestALateAdditionComesToNothing(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	for _, slow := range []string{"get", "put"} {
		one, two := w.add(other, "1").ID, w.add(other, "2").ID
		decided := false
		b := w.interruptedBoard(func(op, k string) bool {
			was := decided
			decided = decided || op == "put" && k == "meta"
			return was && op == slow && k == key(one)
		}, func() {
			must(w, 0, other.Settle(w.ctx))
			if got := w.get(other, one); !slices.Equal(got.DependsOn, []muster.TaskID{two}) {
				w.Errorf("the edge was decided and nobody else wrote it: %+v", got)
			}
			must(w, 0, errOf(other.Update(w.ctx, one, Patch{RemoveBlockers: []muster.TaskID{two}})))
			must(w, 0, errOf(other.Update(w.ctx, two, Patch{AddBlockers: []muster.TaskID{one}})))
		})
		must(w, 0, errOf(b.Update(w.ctx, one, Patch{AddBlockers: []muster.TaskID{two}})))
		must(w, 0, other.Settle(w.ctx))
		w.whole()
		if got := w.get(other, one); len(got.DependsOn) != 0 {
			t.Errorf("slow at %s: %+v", slow, got)
		}
	}
}

// The same for who finishes what another one left.
func TestALateFinisherBringsNothingBack(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	w.add(other, "1")
	w.add(other, "2")
	w.write("meta", `{"edges": 1, "adding": [{"n": 1, "id": 1, "on": [2]}]}`)
	b := w.interruptedBoard(at("get", "1"), func() {
		must(w, 0, errOf(other.Update(w.ctx, 1, Patch{RemoveBlockers: []muster.TaskID{2}})))
	})
	must(w, 0, b.Settle(w.ctx))
	if got := w.get(other, 1); len(got.DependsOn) != 0 {
		t.Errorf("%+v", got)
	}
	if m := w.raw("meta"); m["adding"] != nil {
		t.Errorf("%v", m)
	}
}

// The task is claimed after an edge was decided and before it is written: the claim stands, the edge is refused.
func TestAClaimComesBeforeTheEdge(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	w.add(other, "1")
	w.add(other, "2")
	b := w.interruptedBoard(at("put", "1"), func() { w.take(other, 1, "alice") })
	w.refused(errOf(b.Update(w.ctx, 1, Patch{AddBlockers: []muster.TaskID{2}})), muster.Held, "")
	if m := w.raw("meta"); m["adding"] != nil {
		t.Errorf("%v", m)
	}
	// So it is when whoever decided it died before writing it.
	w.write("meta", `{"edges": 7, "adding": [{"n": 7, "id": 1, "on": [2]}]}`)
	must(w, 0, b.Settle(w.ctx))
	if got := w.get(b, 1); len(got.DependsOn) != 0 || got.Owner != "alice" {
		t.Errorf("%+v", got)
	}
	if m := w.raw("meta"); m["adding"] != nil {
		t.Errorf("%v", m)
	}
}

func TestAnEdgeThatWasOnlyDecidedCountsForCycles(t *testing.T) {
	w := inMemory(t)
	b := w.board()
	w.add(b, "1")
	w.add(b, "2")
	w.write("meta", `{"edges": 1, "adding": [{"n": 1, "id": 1, "on": [2]}]}`)
	w.refused(errOf(b.Update(w.ctx, 2, Patch{AddBlockers: []muster.TaskID{1}})), muster.Invalid, "task 2 cannot wait for task 1: 2 -> 1 -> 2 would wait for each other")
	must(w, 0, b.Settle(w.ctx))
	w.whole()
}

// Between looking for a free id and taking it, a task of that id comes and goes.
func TestAnIDThatCameAndWent(t *testing.T) {
	w := inMemory(t)
	other := w.board()
	w.add(other, "1")
	b := w.interruptedBoard(at("put", "2"), func() {
		w.add(other, "2")
		w.add(other, "3")
		must(w, 0, other.Delete(w.ctx, 2, false))
	})
	if got := w.add(b, "new"); got.ID == 2 {
		t.Errorf("id %d was given again", got.ID)
	}
	if _, err := other.Get(w.ctx, 2); !errors.Is(err, muster.ErrNotFound) {
		t.Errorf("task 2 is back: %v", err)
	}
}

// The next task may be gone when it is claimed, or be one that cannot be read. Then the one after it is claimed.
func TestTheNextTaskIsGone(t *testing.T) {
	for name, does := range map[string]func(w *world, other *Board){
		"deleted": func(w *world, other *Board) { must(w, 0, other.Delete(w.ctx, 1, false)) },
		"corrupt": func(w *world, _ *Board) { w.write("1", `{"id": 1, "subject": 7}`) },
	} {
		w := inMemory(t)
		other := w.board()
		w.add(other, "1")
		w.add(other, "2")
		_, _, err := other.ClaimNext(w.ctx, Claim{Owner: "Bob Smith"}) // which is no name, and no task's fault
		w.refused(err, muster.Invalid, "")
		b := w.interruptedBoard(at("get", "1"), func() { does(w, other) })
		if got, ok, err := b.ClaimNext(w.ctx, Claim{Owner: "ann"}); err != nil || !ok || got.ID != 2 {
			t.Errorf("%s: %+v, %v, %v", name, got, ok, err)
		}
	}
}

// Whoever has written its edges strikes off no others.
func TestOthersStayAnnounced(t *testing.T) {
	w := inMemory(t)
	w.write("meta", `{"edges": 2, "adding": [{"n": 1, "id": 1, "on": [2]}, {"n": 2, "id": 1, "on": [3]}]}`)
	must(w, 0, w.board().edges.strike(w.ctx, adding{N: 1, ID: 1}))
	if left := fmt.Sprint(w.raw("meta")["adding"]); left != "[map[id:1 n:2 on:[3]]]" {
		t.Errorf("announced are %v", left)
	}
}
