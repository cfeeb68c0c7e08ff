package board

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"muster"
	"muster/journal"
	"muster/store/file"
	"muster/store/mem"
)

// engines are the stores that the tests run on: each opens handles on one state, standing for as many processes.
var engines = map[string]func(testing.TB) func() muster.Store{
	"mem": func(testing.TB) func() muster.Store {
		s := mem.New()
		return func() muster.Store { return s.Handle() }
	},
	"file": func(tb testing.TB) func() muster.Store {
		root := tb.TempDir()
		return func() muster.Store {
			s, err := file.Open(root)
			if err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() { _ = s.Close() })
			return s
		}
	},
}

// onEach runs a test on every engine.
func onEach(t *testing.T, f func(t *testing.T, w *world)) {
	for name, open := range engines {
		t.Run(name, func(t *testing.T) { f(t, newWorld(t, open(t))) })
	}
}

// failer is what tests and rapid's checks have in common.
type failer interface {
	Helper()
	Fatalf(string, ...any)
	Errorf(string, ...any)
}

// world is one state and the means to look at it past the board.
type world struct {
	failer
	ctx   context.Context
	open  func() muster.Store
	store muster.Store
}

func newWorld(f failer, open func() muster.Store) *world {
	return &world{failer: f, ctx: context.Background(), open: open, store: open()}
}

// inMemory is a world without files.
func inMemory(f failer) *world {
	s := mem.New()
	return newWorld(f, func() muster.Store { return s.Handle() })
}

// board is one more process's.
func (w *world) board() *Board {
	s := w.open()
	return New(s, journal.New(s.Log()))
}

// must fails on an error.
func must[T any](w *world, v T, err error) T {
	w.Helper()
	if err != nil {
		w.Fatalf("unexpected error: %v", err)
	}
	return v
}

func (w *world) add(b *Board, subject string, on ...muster.TaskID) muster.Task {
	w.Helper()
	t, err := b.Create(w.ctx, Draft{Subject: subject, BlockedBy: on, CreatedBy: muster.Lead})
	return must(w, t, err)
}

func (w *world) take(b *Board, id muster.TaskID, who muster.Name) muster.Task {
	w.Helper()
	t, err := b.Claim(w.ctx, id, Claim{Owner: who})
	return must(w, t, err)
}

func (w *world) get(b *Board, id muster.TaskID) muster.Task {
	w.Helper()
	t, err := b.Get(w.ctx, id)
	return must(w, t, err)
}

// write puts a document as another program would: whatever is there.
func (w *world) write(key, data string) {
	w.Helper()
	tbl := w.store.Table(muster.TableTasks)
	doc, err := tbl.Get(w.ctx, key)
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		w.Fatalf("get %s: %v", key, err)
	}
	if _, err := tbl.Put(w.ctx, key, []byte(data), doc.Rev); err != nil {
		w.Fatalf("put %s: %v", key, err)
	}
}

// raw is a document's fields as they are stored.
func (w *world) raw(key string) map[string]any {
	w.Helper()
	doc, err := w.store.Table(muster.TableTasks).Get(w.ctx, key)
	if err != nil {
		w.Fatalf("get %s: %v", key, err)
	}
	var m map[string]any
	if err := json.Unmarshal(doc.Data, &m); err != nil {
		w.Fatalf("%s: %v", key, err)
	}
	return m
}

// stored are the tasks as they are stored.
func (w *world) stored() map[muster.TaskID]muster.Task {
	w.Helper()
	out := map[muster.TaskID]muster.Task{}
	for c, err := range w.store.Table(muster.TableTasks).Changes(w.ctx, 0) {
		if err != nil {
			w.Fatalf("changes: %v", err)
		}
		id, ok := idOf(c.Key)
		if !ok || c.Rev == muster.None {
			continue
		}
		t, err := decodeTask(c.Key, c.Data)
		if err != nil {
			w.Fatalf("task %d: %v", id, err)
		}
		out[id] = t
	}
	return out
}

// events are all of a kind, oldest first.
func (w *world) events(kind string) []muster.Event {
	w.Helper()
	var out []muster.Event
	for e, err := range journal.New(w.store.Log()).Read(w.ctx, 0) {
		if err != nil {
			w.Fatalf("journal: %v", err)
		}
		if e.Kind == kind {
			out = append(out, e.Event)
		}
	}
	return out
}

// lines are the records of the claims' own log.
func (w *world) lines() []map[string]any {
	w.Helper()
	var out []map[string]any
	for r, err := range w.store.Log().Read(w.ctx, muster.StreamClaims, 0) {
		if err != nil {
			w.Fatalf("claim events: %v", err)
		}
		var m map[string]any
		if err := json.Unmarshal(r.Data, &m); err != nil {
			w.Fatalf("claim events: %v", err)
		}
		out = append(out, m)
	}
	return out
}

// refused checks the code and, unless it is empty, the sentence of an error.
func (w *world) refused(err error, code muster.Code, sentence string) {
	w.Helper()
	var e *muster.Error
	if !errors.As(err, &e) || e.Code != code {
		w.Fatalf("got %v, want an error of code %s", err, code)
	}
	if sentence != "" && e.Message != sentence {
		w.Fatalf("got %q, want %q", e.Message, sentence)
	}
}

// owners checks what must hold of every stored task at any time.
func (w *world) owners(all map[muster.TaskID]muster.Task) {
	w.Helper()
	for id, t := range all {
		switch t.Status {
		case muster.InProgress, muster.Landing:
			if t.Owner == "" {
				w.Errorf("task %d is %s and nobody's", id, t.Status)
			}
		case muster.Pending, muster.NeedsAttention:
			if t.Owner != "" {
				w.Errorf("task %d is %s and %s's", id, t.Status, t.Owner)
			}
		}
		if (t.Status == muster.Landing) != (t.Landing != nil) {
			w.Errorf("task %d is %s with landing %v", id, t.Status, t.Landing)
		}
	}
}

// whole checks what must hold once the board was settled.
func (w *world) whole() {
	w.Helper()
	all := w.stored()
	w.owners(all)
	blocks := map[muster.TaskID][]muster.TaskID{}
	for id, t := range all {
		for _, d := range t.DependsOn {
			blocks[d] = append(blocks[d], id)
			if _, there := all[d]; !there {
				w.Errorf("task %d depends on %d, which is gone", id, d)
			}
		}
	}
	for id, t := range all {
		var open []muster.TaskID
		for _, d := range t.DependsOn {
			if all[d].Status != muster.Completed {
				open = append(open, d)
			}
		}
		if !slices.Equal(set(t.BlockedBy...), set(open...)) || len(set(t.BlockedBy...)) != len(t.BlockedBy) {
			w.Errorf("task %d: blockedBy %v, unfinished are %v of %v", id, t.BlockedBy, open, t.DependsOn)
		}
		if slices.Contains(t.Effects, muster.EffectUnblock) {
			w.Errorf("task %d: effects %v are left", id, t.Effects)
		}
	}
	listed, err := w.board().List(w.ctx)
	if must(w, listed, err); len(listed) != len(all) {
		w.Errorf("%d tasks are listed, %d are stored", len(listed), len(all))
	}
	for _, t := range listed {
		if !slices.Equal(t.Blocks, set(blocks[t.ID]...)) {
			w.Errorf("task %d: blocks %v, dependants are %v", t.ID, t.Blocks, blocks[t.ID])
		}
	}
	if c := cycleIn(all); c != "" {
		w.Errorf("there is a cycle: %s", c)
	}
	completed := map[muster.TaskID]int{}
	for _, e := range w.events(journal.TaskCompleted) {
		if completed[e.Task]++; completed[e.Task] > 1 {
			w.Errorf("task %d was completed %d times", e.Task, completed[e.Task])
		}
	}
}

// cycleIn looks for a cycle the plain way: by depth, with a colour for what is on the way.
func cycleIn(all map[muster.TaskID]muster.Task) string {
	state := map[muster.TaskID]int{}
	var visit func(id muster.TaskID) string
	visit = func(id muster.TaskID) string {
		switch state[id] {
		case 1:
			return fmt.Sprint(id)
		case 2:
			return ""
		}
		state[id] = 1
		for _, d := range all[id].DependsOn {
			if s := visit(d); s != "" {
				return fmt.Sprint(id, " <- ", s)
			}
		}
		state[id] = 2
		return ""
	}
	for id := range all {
		if s := visit(id); s != "" {
			return s
		}
	}
	return ""
}
