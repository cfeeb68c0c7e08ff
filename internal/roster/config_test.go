package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/testing/require"
	"muster/store/mem"
)

func config(t testing.TB, s muster.Store) string {
	t.Helper()
	d, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
	require.NoError(t, err)
	return string(d.Data)
}

func write(t testing.TB, s muster.Store, text string) {
	t.Helper()
	d, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
	if !errors.Is(err, muster.ErrNotFound) {
		require.NoError(t, err)
	}
	_, err = s.Table(muster.TableTeam).Put(t.Context(), "config", []byte(text), d.Rev)
	require.NoError(t, err)
}

func TestProject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		r := process(s)
		require.NoError(t, r.Project(t.Context()))
		if got := config(t, s); got != "{\n  \"team_name\": \"api-v2\",\n  \"members\": []\n}\n" {
			t.Fatal(got)
		}
		add(t, r, muster.Member{Name: "lead", Role: "lead"})
		add(t, r, muster.Member{Name: "carol", Role: "tester", Model: "m"})
		time.Sleep(time.Second)
		add(t, r, muster.Member{Name: "bob", Role: "coder", Prompt: "secret"})
		require.NoError(t, r.Project(t.Context()))
		// What another program may do: its own members, fields of its own anywhere, old values of ours.
		write(t, s, `{"version":2,"team_name":"default","members":[
			{"name":"bob","role":"old","status":"idle","pane":"%3","idle_reason":"timeout"},
			{"status":"idle","name":"Zed","tools":["a",{"b":1}]},"odd",
			{"name":"amy","role":"x<y"}],"a":{"b":[1,2]}}`)
		set(t, r, "carol", muster.Idle, muster.IdleTasks)
		require.NoError(t, r.Project(t.Context()))
		at := time.Now().Unix()
		want := fmt.Sprintf(`{"team_name":"api-v2","members":[{"status":"idle","name":"Zed","tools":["a",{"b":1}]},"odd",`+
			`{"name":"amy","role":"x<y"},{"name":"carol","role":"tester","status":"idle","idle_reason":"awaiting_tasks",`+
			`"agent_id":"carol@api-v2","model":"m","joined_at":%d},{"name":"bob","role":"coder","status":"working",`+
			`"agent_id":"bob@api-v2","joined_at":%d,"pane":"%%3"}],"a":{"b":[1,2]},"version":2}`, at-1, at)
		var got bytes.Buffer
		require.NoError(t, json.Compact(&got, []byte(config(t, s))))
		if d := cmp.Diff(want, got.String()); d != "" {
			t.Fatal(d)
		}
		before, err := s.Table(muster.TableTeam).Get(t.Context(), "config")
		require.NoError(t, err)
		require.NoError(t, process(s.Handle()).Project(t.Context()))
		if after, _ := s.Table(muster.TableTeam).Get(t.Context(), "config"); after.Rev != before.Rev {
			t.Fatalf("nothing changed, and it was written:\n%s", after.Data)
		}
		ctx, cancel := context.WithCancel(t.Context())
		var projecting sync.WaitGroup
		projecting.Go(func() { r.Projector(ctx) })
		time.Sleep(2 * time.Second)
		write(t, s, `["half"]`)
		set(t, r, "carol", muster.Working, "") // after it: the projector looks at each change
		time.Sleep(10 * time.Second)
		told := strings.Count(strings.Join(kinds(t, s), ""), "state.corrupt")
		if !strings.Contains(config(t, s), "carol") || told != 1 {
			t.Errorf("a file that cannot be read has become %s, told %d times", config(t, s), told)
		}
		add(t, r, muster.Member{Name: "soon", Role: "x"})
		time.Sleep(time.Second / 2)
		set(t, r, "soon", muster.Shutdown, muster.IdleTimeout) // in the pause after a write
		time.Sleep(2 * time.Second)
		soon := config(t, s)
		add(t, r, muster.Member{Name: "late", Role: "x"})
		cancel()
		projecting.Wait()
		if !strings.Contains(soon, string(muster.IdleTimeout)) || !strings.Contains(config(t, s), "late") {
			t.Errorf("it has %s, and at the end %s", soon, config(t, s))
		}
	})
}

func TestTheProjectorWritesAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		r := process(s)
		add(t, r, muster.Member{Name: "alice", Role: "coder"})
		ctx, cancel := context.WithCancel(t.Context())
		var projecting sync.WaitGroup
		projecting.Go(func() { r.Projector(ctx) })
		synctest.Wait()
		writes, last := 0, config(t, s)
		for i := range 100 {
			_, err := r.Update(t.Context(), "alice", func(m *muster.Member) { m.Doing = fmt.Sprint(i) })
			require.NoError(t, err)
			time.Sleep(100 * time.Millisecond)
			if now := config(t, s); now != last {
				writes, last = writes+1, now
			}
		}
		cancel()
		projecting.Wait()
		if writes < 5 || writes > 11 || !strings.Contains(config(t, s), `"doing": "99"`) {
			t.Errorf("%d writes in 10 s", writes)
		}
	})
}
