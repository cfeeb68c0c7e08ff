package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/testing/tier"
	"muster/store/mem"
)

func config(t testing.TB, s muster.Store) string {
	t.Helper()
	d, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
	must(t, err)
	return string(d.Data)
}

func write(t testing.TB, s muster.Store, text string) {
	t.Helper()
	d, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
	if !errors.Is(err, muster.ErrNotFound) {
		must(t, err)
	}
	_, err = s.Table(muster.TableTeam).Put(t.Context(), "config", []byte(text), d.Rev)
	must(t, err)
}

func TestProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		r := process(s)
		must(t, r.Project(t.Context()))
		if got := config(t, s); got != "{\n  \"team_name\": \"api-v2\",\n  \"members\": []\n}\n" {
			t.Fatal(got)
		}
		add(t, r, muster.Member{Name: "lead", Role: "lead"})
		add(t, r, muster.Member{Name: "carol", Role: "tester", Model: "m"})
		time.Sleep(time.Second)
		add(t, r, muster.Member{Name: "bob", Role: "coder", Prompt: "secret"})
		must(t, r.Project(t.Context()))
		// What another program may do: its own members, fields of its own anywhere, old values of ours.
		write(t, s, `{"version":2,"team_name":"default","members":[
			{"name":"bob","role":"old","status":"idle","pane":"%3","idle_reason":"timeout"},
			{"status":"idle","name":"Zed","tools":["a",{"b":1}]},"odd",
			{"name":"amy","role":"x<y"}],"a":{"b":[1,2]}}`)
		set(t, r, "carol", muster.Idle, muster.IdleTasks)
		must(t, r.Project(t.Context()))
		at := time.Now().Unix()
		want := fmt.Sprintf(`{
  "team_name": "api-v2",
  "members": [
    {
      "status": "idle",
      "name": "Zed",
      "tools": [
        "a",
        {
          "b": 1
        }
      ]
    },
    "odd",
    {
      "name": "amy",
      "role": "x<y"
    },
    {
      "name": "carol",
      "role": "tester",
      "status": "idle",
      "idle_reason": "awaiting_tasks",
      "agent_id": "carol@api-v2",
      "model": "m",
      "joined_at": %d
    },
    {
      "name": "bob",
      "role": "coder",
      "status": "working",
      "agent_id": "bob@api-v2",
      "joined_at": %d,
      "pane": "%%3"
    }
  ],
  "a": {
    "b": [
      1,
      2
    ]
  },
  "version": 2
}
`, at-1, at)
		if d := cmp.Diff(want, config(t, s)); d != "" {
			t.Fatal(d)
		}
		before, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
		must(t, err)
		must(t, process(s.Handle()).Project(t.Context()))
		if after, _ := s.Table(muster.TableTeam).Get(t.Context(), "config"); after.Rev != before.Rev {
			t.Fatalf("nothing changed, and it was written:\n%s", after.Data)
		}
		for n, want := range map[muster.Name]error{"zed": muster.ErrHeld, "amy": muster.ErrHeld} {
			if _, err := r.Add(t.Context(), muster.Member{Name: n, Role: "x"}); !errors.Is(err, want) {
				t.Errorf("%s: %v", n, err)
			}
		}
	})
}

func TestAFileThatCannotBeReadIsLeftAlone(t *testing.T) {
	tier.All(t)
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		r := process(s)
		ctx, cancel := context.WithCancel(t.Context())
		var g sync.WaitGroup
		g.Go(func() { r.Projector(ctx) })
		time.Sleep(time.Second)
		write(t, s, `["half"]`)
		add(t, r, muster.Member{Name: "alice", Role: "coder"}) // and the team goes on
		if known, _, err := r.Known(t.Context(), "alice"); err != nil || !known {
			t.Fatal(known, err)
		}
		time.Sleep(10 * time.Second)
		if got := config(t, s); got != `["half"]` {
			t.Fatalf("it was overwritten: %s", got)
		}
		// Which of the two comes first is nobody's promise; that each comes once is.
		got := kinds(t, s)
		slices.Sort(got)
		if want := []string{"member.spawned alice coder", "state.corrupt  "}; !slices.Equal(got, want) {
			t.Fatalf("events %q", got)
		}
		write(t, s, `{"members":[{"name":"Zed"}]}`)
		time.Sleep(2 * time.Second)
		if got := config(t, s); !strings.Contains(got, "alice") || !strings.Contains(got, "Zed") {
			t.Fatalf("mended, it must be written again: %s", got)
		}
		cancel()
		g.Wait()
	})
}

// counting is a store that counts writes of config.json.
type counting struct {
	muster.Store
	writes *writes
}

type countingTable struct {
	muster.Table
	writes *writes
}

type writes struct {
	mu sync.Mutex
	at []time.Time
}

func (w *writes) all() []time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.at)
}

func (c counting) Table(name string) muster.Table {
	if name != muster.TableTeam {
		return c.Store.Table(name)
	}
	return countingTable{c.Store.Table(name), c.writes}
}

func (c countingTable) Put(ctx context.Context, key string, data []byte, at muster.Rev) (muster.Rev, error) {
	c.writes.mu.Lock()
	c.writes.at = append(c.writes.at, time.Now())
	c.writes.mu.Unlock()
	return c.Table.Put(ctx, key, data, at)
}

func TestTheProjectorWritesAtMostOnceASecond(t *testing.T) {
	tier.All(t)
	synctest.Test(t, func(t *testing.T) {
		var count writes
		s := counting{mem.New(), &count}
		r := process(s)
		ctx, cancel := context.WithCancel(t.Context())
		var g sync.WaitGroup
		g.Go(func() { r.Projector(ctx) })
		for i := range 500 {
			add(t, r, muster.Member{Name: muster.Name(fmt.Sprint("w", i)), Role: "coder"})
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		at := count.all()
		for i := range at[1:] {
			if d := at[i+1].Sub(at[i]); d < time.Second {
				t.Fatalf("two writes within %s", d)
			}
		}
		if len(at) < 5 || len(at) > 8 {
			t.Fatalf("%d writes in 7 s", len(at))
		}
		shown := func() int {
			var f struct{ Members []json.RawMessage }
			must(t, json.Unmarshal([]byte(config(t, s)), &f))
			return len(f.Members)
		}
		if shown() != 500 {
			t.Fatalf("%d members are shown", shown())
		}
		time.Sleep(time.Hour)
		if len(count.all()) != len(at) {
			t.Fatal("nothing happened, and it was written")
		}
		add(t, r, muster.Member{Name: "last", Role: "coder"})
		cancel()
		g.Wait()
		if shown() != 501 {
			t.Fatal("the last change is not shown")
		}
	})
}

// slow is a store in which something happens right after the members were listed.
type slow struct {
	muster.Store
	then *func()
}

type slowTable struct {
	muster.Table
	then *func()
}

func (s slow) Table(name string) muster.Table {
	if name != muster.TableMembers {
		return s.Store.Table(name)
	}
	return slowTable{s.Store.Table(name), s.then}
}

func (s slowTable) Changes(ctx context.Context, since muster.Mark) iter.Seq2[muster.Change, error] {
	return func(yield func(muster.Change, error) bool) {
		for c, err := range s.Table.Changes(ctx, since) {
			if !yield(c, err) {
				return
			}
		}
		if then := *s.then; then != nil {
			*s.then = nil
			then()
		}
	}
}

func TestALateProjectorDoesNotWriteAnOldState(t *testing.T) {
	tier.All(t)
	s := mem.New()
	var then func()
	fast, late := process(s.Handle()), process(slow{s, &then})
	add(t, fast, muster.Member{Name: "alice", Role: "coder"})
	then = func() {
		set(t, fast, "alice", muster.Idle, muster.IdleTasks)
		must(t, fast.Project(t.Context()))
	}
	must(t, late.Project(t.Context()))
	if got := config(t, s); !strings.Contains(got, `"status": "idle"`) {
		t.Fatalf("alice is idle, config.json says\n%s", got)
	}
}
