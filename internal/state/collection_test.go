package state_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/state"
	"muster/internal/testing/require"
	"muster/store/mem"
)

// item is what the collections of these tests hold.
type item struct {
	Key string `json:"-"`
	N   int    `json:"n"`
}

func decode(key string, data []byte) (item, error) {
	it := item{Key: key}
	if err := json.Unmarshal(data, &it); err != nil {
		return it, muster.Errorf(muster.Corrupt, "%s cannot be read: %w", key, err)
	}
	return it, nil
}

func encode(_ string, it item) ([]byte, error) { return muster.Encode(it) }

// follower is a collection with an index that follows it through OnChange, and the reports that it has made.
type follower struct {
	*state.Collection[item]
	table    muster.Table
	derived  map[string]int
	bad      map[string]bool
	reported map[string]int // by key and revision
}

func follow(tb testing.TB, table muster.Table) *follower {
	f := &follower{table: table, derived: map[string]int{}, bad: map[string]bool{}, reported: map[string]int{}}
	f.Collection = state.New(state.Options[item]{
		Table: table, Name: "members", Decode: decode, Encode: encode, Reporter: f,
		IsKey: func(key string) bool { return key != "meta" },
		OnChange: func(c state.Change[item]) {
			old, had := f.derived[c.Key]
			if had != (c.Old != nil) || had && c.Old.N != old {
				tb.Errorf("%s: the change says that it was %v, the index %v %v", c.Key, c.Old, had, old)
			}
			delete(f.derived, c.Key)
			delete(f.bad, c.Key)
			switch {
			case c.Err != nil:
				f.bad[c.Key] = true
			case c.New != nil:
				f.derived[c.Key] = c.New.N
			}
		},
	})
	return f
}

func (f *follower) Report(_ context.Context, all ...state.Unreadable) error {
	for _, u := range all {
		f.reported[u.Key+" "+string(u.Rev)]++
	}
	return nil
}

// values are the listed items as the model has them.
func (f *follower) values(tb testing.TB) map[string]int {
	tb.Helper()
	all := require.Value(f.List(tb.Context()))(tb)
	out := map[string]int{}
	for _, it := range all {
		out[it.Key] = it.N
	}
	return out
}

func (f *follower) unreadable() []string {
	var keys []string
	for _, u := range f.Unreadable() {
		keys = append(keys, u.Key)
	}
	return keys
}

// write puts raw text, as another program does.
func write(tb testing.TB, table muster.Table, key, text string) {
	tb.Helper()
	for {
		d, err := table.Get(context.Background(), key)
		if err != nil && !errors.Is(err, muster.ErrNotFound) {
			tb.Fatal(err)
		}
		if _, err = table.Put(context.Background(), key, []byte(text), d.Rev); err == nil {
			return
		} else if !errors.Is(err, muster.ErrStale) {
			tb.Fatal(err)
		}
	}
}

// The model is a plain map. Whatever several collections and other programs do, each collection shows the map, its
// index agrees with it, and what is half written for a moment only is never reported.
func TestCollectionsAgreeWithAPlainMap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rapid.Check(struct{ rapid.TB }{t}, func(rt *rapid.T) { // without the deadline, which no bubble may ask for
			s := mem.New()
			var all []*follower
			for range 3 {
				all = append(all, follow(t, s.Handle().Table("members")))
			}
			model, corrupt := map[string]int{}, map[string]bool{}
			keys, some := rapid.SampledFrom([]string{"a", "b", "c", "d"}), rapid.SampledFrom(all)
			rt.Repeat(map[string]func(*rapid.T){
				"put": func(rt *rapid.T) {
					c, key, n := some.Draw(rt, "who"), keys.Draw(rt, "key"), rapid.IntRange(0, 9).Draw(rt, "n")
					d, _ := c.table.Get(t.Context(), key)
					_, err := c.Put(t.Context(), key, item{N: n}, d.Rev)
					require.NoError(rt, err)
					model[key] = n
					delete(corrupt, key)
				},
				"create": func(rt *rapid.T) {
					c, key := some.Draw(rt, "who"), keys.Draw(rt, "key")
					_, there := model[key]
					_, err := c.Create(t.Context(), key, item{N: 7})
					if stale := there || corrupt[key]; stale != errors.Is(err, muster.ErrStale) {
						rt.Fatalf("create %s: %v", key, err)
					} else if !stale {
						model[key] = 7
					}
				},
				"update": func(rt *rapid.T) {
					c, key := some.Draw(rt, "who"), keys.Draw(rt, "key")
					same := rapid.Bool().Draw(rt, "same")
					got, err := c.Update(t.Context(), key, func(it *item) error {
						if same {
							return state.ErrNoChange
						}
						it.N++
						return nil
					})
					n, there := model[key]
					switch {
					case corrupt[key]:
						if !errors.Is(err, muster.ErrCorrupt) {
							rt.Fatal(err)
						}
					case !there:
						if !errors.Is(err, muster.ErrNotFound) {
							rt.Fatal(err)
						}
					default:
						if require.NoError(rt, err); !same {
							n++
						}
						if model[key] = n; got.N != n {
							rt.Fatalf("%s is %d, want %d", key, got.N, n)
						}
					}
				},
				"delete": func(rt *rapid.T) {
					c, key := some.Draw(rt, "who"), keys.Draw(rt, "key")
					d, _ := c.table.Get(t.Context(), key)
					require.NoError(rt, c.Delete(t.Context(), key, d.Rev))
					delete(model, key)
					delete(corrupt, key)
				},
				"corrupt": func(rt *rapid.T) {
					key := keys.Draw(rt, "key")
					write(t, all[0].table, key, `{"n":"x"}`)
					delete(model, key)
					corrupt[key] = true
				},
				"half write": func(rt *rapid.T) {
					key, n := keys.Draw(rt, "key"), rapid.IntRange(0, 9).Draw(rt, "n")
					write(t, all[0].table, key, `[]`)
					time.AfterFunc(state.HalfWritten/2, func() {
						write(t, all[1].table, key, fmt.Sprintf(`{"n":%d}`, n))
					})
					c := some.Draw(rt, "who")
					require.NoError(rt, c.Refresh(t.Context()))
					if slices.Contains(c.unreadable(), key) {
						rt.Fatalf("%s was half written and counts as corrupt", key)
					}
					time.Sleep(state.HalfWritten)
					model[key] = n
					delete(corrupt, key)
				},
				"meta":    func(rt *rapid.T) { write(t, all[0].table, "meta", `[]`) },
				"refresh": func(rt *rapid.T) { require.NoError(rt, some.Draw(rt, "who").Refresh(t.Context())) },
				"get": func(rt *rapid.T) {
					c, key := some.Draw(rt, "who"), keys.Draw(rt, "key")
					it, _, err := c.Get(t.Context(), key)
					n, there := model[key]
					if there && (err != nil || it.N != n) || !there && err == nil {
						rt.Fatalf("%s is %v, %v, want %d, %v", key, it, err, n, there)
					}
				},
				"": func(rt *rapid.T) {
					c := some.Draw(rt, "who")
					if d := cmp.Diff(model, c.values(t)); d != "" {
						rt.Fatal(d)
					}
					c.View(func() {
						if d := cmp.Diff(model, c.derived); d != "" {
							rt.Fatalf("the index: %s", d)
						}
						if d := cmp.Diff(corrupt, c.bad); d != "" {
							rt.Fatalf("the index has unreadable: %s", d)
						}
					})
					if want := slices.Sorted(maps.Keys(corrupt)); !slices.Equal(want, c.unreadable()) {
						rt.Fatalf("unreadable are %v, want %v", c.unreadable(), want)
					}
				},
			})
		})
	})
}

// Many goroutines and processes write and list at the same time. No increment is lost, and whoever has written finds
// the write in its next list, although refreshes are shared.
func TestWritersFindTheirWritesInTheList(t *testing.T) {
	const writers, rounds = 8, 20
	s := mem.New()
	shared := []*follower{follow(t, s.Handle().Table("members")), follow(t, s.Handle().Table("members"))}
	_, err := shared[0].Create(t.Context(), "sum", item{})
	require.NoError(t, err)
	var all sync.WaitGroup
	for w := range writers {
		c, key := shared[w%len(shared)], fmt.Sprintf("own-%d", w)
		all.Go(func() {
			var rev muster.Rev
			for n := range rounds {
				var err error
				if rev, err = c.Put(t.Context(), key, item{N: n}, rev); err != nil {
					t.Error(err)
					return
				}
				if got, there := c.values(t)[key]; !there || got != n {
					t.Errorf("%s is %d in the list, after %d was written", key, got, n)
				}
				increment := func(it *item) error { it.N++; return nil }
				if _, err := c.Update(t.Context(), "sum", increment); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if got := shared[1].values(t)["sum"]; got != writers*rounds {
		t.Errorf("the sum is %d, want %d", got, writers*rounds)
	}
}

// slowTable stops in Changes until it is let go on.
type slowTable struct {
	muster.Table
	entered, goOn chan struct{}
}

func (s slowTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		s.entered <- struct{}{}
		select {
		case <-s.goOn:
			s.Table.Changes(ctx, since)(yield)
		case <-ctx.Done():
			yield(muster.Change{}, ctx.Err())
		}
	}
}

// While one caller waits for the disk, others read the cache, a refresh gives up with its context, and two that come
// meanwhile share one more refresh instead of waiting for two.
func TestNobodyWaitsForTheDiskWithTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := slowTable{mem.New().Table("members"), make(chan struct{}, 9), make(chan struct{})}
		c := follow(t, table)
		var all sync.WaitGroup
		refresh := func() { all.Go(func() { require.NoError(t, c.Refresh(t.Context())) }) }
		refresh()
		<-table.entered
		c.View(func() {})
		_ = c.Unreadable()
		ended, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.Refresh(ended); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the error is %v", err)
		}
		refresh()
		refresh()
		synctest.Wait()
		table.goOn <- struct{}{}
		<-table.entered
		write(t, table.Table, "late", `{"n":1}`)
		table.goOn <- struct{}{}
		all.Wait()
		if len(table.entered) != 0 {
			t.Error("the two that came meanwhile did not share a refresh")
		}
		c.View(func() {
			if c.derived["late"] != 1 {
				t.Error("the second refresh did not start after the first")
			}
		})
	})
}

// A refresh that is cancelled while it waits to read a document again leaves that to the next one.
func TestADoubtfulDocumentIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		table := mem.New().Table("members")
		c := follow(t, table)
		write(t, table, "a", `[]`)
		ctx, cancel := context.WithTimeout(t.Context(), state.HalfWritten/2)
		defer cancel()
		if err := c.Refresh(ctx); !errors.Is(err, context.DeadlineExceeded) || len(c.unreadable()) != 0 {
			t.Fatalf("%v, %v", err, c.unreadable())
		}
		require.NoError(t, c.Refresh(t.Context()))
		began := time.Now()
		require.NoError(t, c.Refresh(t.Context()))
		if took := time.Since(began); took != 0 || !slices.Equal(c.unreadable(), []string{"a"}) {
			t.Fatalf("%v after %v", c.unreadable(), took)
		}
		if len(c.reported) != 1 {
			t.Errorf("reported are %v", c.reported)
		}
	})
}

// A failing table ends a refresh with its error; what came before is kept, and the next refresh goes on from there.
func TestARefreshGoesOnWhereItFailed(t *testing.T) {
	table := &failingTable{Table: mem.New().Table("members"), after: 1}
	c := follow(t, table)
	for _, key := range []string{"a", "b", "c"} {
		write(t, table.Table, key, `{"n":1}`)
	}
	if err := c.Refresh(t.Context()); !errors.Is(err, muster.ErrUnavailable) || len(c.derived) != 1 {
		t.Fatalf("%v, %v", err, c.derived)
	}
	table.after = -1
	if got := c.values(t); len(got) != 3 {
		t.Errorf("%v", got)
	}
	if table.first == 0 {
		t.Error("the second refresh began at the beginning")
	}
}

// failingTable ends Changes with an error after so many changes, unless after is negative.
type failingTable struct {
	muster.Table
	after int
	first muster.Mark // from where Changes was asked last
}

func (f *failingTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	f.first = since
	return func(yield func(muster.Change, error) bool) {
		n := 0
		for c, err := range f.Table.Changes(ctx, since) {
			if n == f.after {
				yield(muster.Change{}, muster.Errorf(muster.Unavailable, "the disk is gone"))
				return
			}
			if n++; !yield(c, err) {
				return
			}
		}
	}
}
