package storetest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"muster"
)

// changes collects the changes after a mark: key=data or key deleted, and the mark to go on from.
func changes(t *testing.T, tab muster.Table, since muster.Mark) (map[string]string, muster.Mark) {
	t.Helper()
	got := map[string]string{}
	for c, err := range tab.Changes(t.Context(), since) {
		ok(t, err)
		if _, twice := got[c.Key]; twice {
			t.Fatalf("%s came twice", c.Key)
		}
		if c.Mark <= since {
			t.Fatalf("the mark went from %d to %d", since, c.Mark)
		}
		since = c.Mark
		got[c.Key] = string(c.Data)
		if c.Rev == muster.None {
			if len(c.Data) > 0 {
				t.Fatalf("the deleted %s has data", c.Key)
			}
			got[c.Key] = "deleted"
		}
	}
	return got, since
}

var changesTests = []test{
	{"from zero they are the listing", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		got, _ := changes(t, b, 0)
		same(t, "an empty table", got, map[string]string{})
		want := map[string]string{}
		for i := 1; i <= 12; i++ {
			rev := put(t, a, strconv.Itoa(i), doc(i), muster.None)
			if i%4 == 0 {
				ok(t, a.Delete(t.Context(), strconv.Itoa(i), rev))
			} else {
				want[strconv.Itoa(i)] = string(doc(i))
			}
		}
		for range 2 {
			for _, tab := range []muster.Table{a, b, open().Table(muster.TableTasks)} {
				got, _ := changes(t, tab, 0)
				same(t, "the listing", got, want)
			}
		}
	}},
	{"a rev of theirs is one to put at", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		put(t, a, "1", doc(1), muster.None)
		for c, err := range b.Changes(t.Context(), 0) {
			ok(t, err)
			put(t, b, c.Key, doc(2), c.Rev)
		}
		equal(t, "data", string(get(t, a, "1").Data), string(doc(2)))
	}},
	{"after a mark comes each changed document once, in its newest form", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		r1 := put(t, a, "1", doc(1), muster.None)
		put(t, a, "2", doc(2), muster.None)
		r3 := put(t, a, "3", doc(3), muster.None)
		for _, tab := range []muster.Table{a, b} {
			_, mark := changes(t, tab, 0)
			none, again := changes(t, tab, mark)
			same(t, "nothing happened", none, map[string]string{})
			equal(t, "mark", again, mark)
		}
		_, markA := changes(t, a, 0)
		_, markB := changes(t, b, 0)
		r1 = put(t, a, "1", doc(11), r1)
		put(t, b, "1", doc(12), r1)
		put(t, b, "4", doc(4), muster.None)
		ok(t, a.Delete(t.Context(), "3", r3))
		want := map[string]string{"1": string(doc(12)), "4": string(doc(4)), "3": "deleted"}
		got, markA := changes(t, a, markA)
		same(t, "changes", got, want)
		got, markB = changes(t, b, markB)
		same(t, "changes", got, want)
		put(t, a, "3", doc(3), muster.None)
		got, _ = changes(t, a, markA)
		same(t, "back", got, map[string]string{"3": string(doc(3))})
		got, _ = changes(t, b, markB)
		same(t, "back", got, map[string]string{"3": string(doc(3))})
	}},
	{"they are at least as new as what was read by key", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		rev := put(t, a, "1", doc(0), muster.None)
		_, mark := changes(t, b, 0)
		rev = put(t, a, "1", doc(-1), rev)
		b.Watch(t.Context()) // from now on the hints of the engine may say where to look
		got, mark := changes(t, b, mark)
		same(t, "what came before the watch", got, map[string]string{"1": string(doc(-1))})
		for n := range 50 {
			rev = put(t, a, "1", doc(n+1), rev)
			want := string(get(t, b, "1").Data)
			got, mark = changes(t, b, mark)
			same(t, "what was read", got, map[string]string{"1": want})
		}
		ok(t, a.Delete(t.Context(), "1", rev))
	}},
	{"a document that goes and comes is told as it is", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		rev := put(t, a, "1", doc(1), muster.None)
		_, mark := changes(t, b, 0)
		ok(t, a.Delete(t.Context(), "1", rev))
		got, mark := changes(t, b, mark)
		same(t, "gone", got, map[string]string{"1": "deleted"})
		put(t, a, "1", doc(1), muster.None)
		got, _ = changes(t, b, mark)
		same(t, "back", got, map[string]string{"1": string(doc(1))})
	}},
	{"a sequence that is left goes on from its last mark", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		for i := 1; i <= 9; i++ {
			put(t, a, strconv.Itoa(i), doc(i), muster.None)
		}
		got := map[string]string{}
		var mark muster.Mark
		for range 9 {
			for c, err := range b.Changes(t.Context(), mark) {
				ok(t, err)
				got[c.Key], mark = string(c.Data), c.Mark
				break
			}
		}
		equal(t, "documents", len(got), 9)
		rest, _ := changes(t, b, mark)
		same(t, "the rest", rest, map[string]string{})
	}},
	{"a writer may put inside the sequence", func(t *testing.T, open func() muster.Store) {
		a := open().Table(muster.TableTasks)
		for i := 1; i <= 5; i++ {
			put(t, a, strconv.Itoa(i), doc(i), muster.None)
		}
		var mark muster.Mark
		n := 0
		for c, err := range a.Changes(t.Context(), 0) {
			ok(t, err)
			mark = c.Mark
			if n++; n <= 5 {
				put(t, a, c.Key, doc(100+n), c.Rev)
			}
		}
		got, _ := changes(t, a, mark)
		for i := 1; i <= 5; i++ {
			d := get(t, a, strconv.Itoa(i))
			if v, again := got[d.Key]; again {
				equal(t, "the newest form", v, string(d.Data))
			}
		}
	}},
	{"a watch is told of own and of others' changes, of deletions too", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		own, other := a.Watch(t.Context()), b.Watch(t.Context())
		rev := put(t, a, "1", doc(1), muster.None)
		hinted(t, own, "an own put")
		hinted(t, other, "another's put")
		rev = put(t, a, "1", doc(2), rev)
		hinted(t, own, "an own put")
		hinted(t, other, "another's put")
		ok(t, a.Delete(t.Context(), "1", rev))
		hinted(t, own, "an own deletion")
		hinted(t, other, "another's deletion")
	}},
	{"a watch ends with its context, and others go on", func(t *testing.T, open func() muster.Store) {
		a, b := open().Table(muster.TableTasks), open().Table(muster.TableTasks)
		ctx, cancel := context.WithCancel(t.Context())
		gone, stays := a.Watch(ctx), a.Watch(t.Context())
		cancel()
		ended(t, gone)
		put(t, b, "1", doc(1), muster.None)
		hinted(t, stays, "a change")
		ended(t, a.Watch(ctx))
	}},
	{"who reads after every hint misses nothing", func(t *testing.T, open func() muster.Store) {
		const writers, each = 3, 8
		reader := open().Table(muster.TableTasks)
		watch := reader.Watch(t.Context())
		var all sync.WaitGroup
		for w := range writers {
			tab := open().Table(muster.TableTasks)
			if w == 0 {
				tab = reader
			}
			all.Go(func() {
				for i := range each {
					if _, err := tab.Put(t.Context(), strconv.Itoa(1+w*each+i), doc(i), muster.None); err != nil {
						t.Error(err)
					}
				}
			})
		}
		seen := map[string]bool{}
		var mark muster.Mark
		for len(seen) < writers*each {
			for c, err := range reader.Changes(t.Context(), mark) {
				ok(t, err)
				seen[c.Key], mark = true, c.Mark
			}
			if len(seen) < writers*each {
				hinted(t, watch, fmt.Sprintf("%d of %d changes", len(seen), writers*each))
			}
		}
		all.Wait()
	}},
}
