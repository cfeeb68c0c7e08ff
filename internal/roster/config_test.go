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
		write(t, s, `{"members":[{"name":"Zed"},{"name":"amy"}]}`)
		require.NoError(t, r.Project(t.Context()))
		if got := config(t, s); !strings.Contains(got, "carol") || !strings.Contains(got, "Zed") {
			t.Errorf("another program has overwritten the file, and it stays so: %s", got)
		}
		for n, want := range map[muster.Name]error{"zed": muster.ErrHeld, "amy": muster.ErrHeld} {
			if _, err := r.Add(t.Context(), muster.Member{Name: n, Role: "x"}); !errors.Is(err, want) {
				t.Errorf("%s: %v", n, err)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		var projecting sync.WaitGroup
		projecting.Go(func() { r.Projector(ctx) })
		time.Sleep(2 * time.Second)
		set(t, r, "carol", muster.Working, "")
		write(t, s, `["half"]`)
		time.Sleep(10 * time.Second)
		if told := strings.Count(strings.Join(kinds(t, s), ""), "state.corrupt"); config(t, s) != `["half"]` || told != 1 {
			t.Errorf("a file that cannot be read has become %s, told %d times", config(t, s), told)
		}
		write(t, s, `{"members":[{"name":"Zed"}]}`) // it is tried again although no member changes
		time.Sleep(2 * time.Second)
		if got := config(t, s); !strings.Contains(got, "carol") || !strings.Contains(got, "Zed") {
			t.Errorf("mended, it has %s", got)
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

// The name of another program's member does not become free while config.json cannot be read, but when it is removed.
// Beside it, the record of a run that cannot be read is reported.
func TestANameStaysTakenWhileTheFileCannotBeRead(t *testing.T) {
	s := mem.New()
	r := process(s)
	for i, text := range []string{`{"members":[{"name":"zed"}]}`, `["half"]`, `{"members":7}`} {
		write(t, s, text)
		if all, err := r.Foreign(t.Context()); err != nil || (len(all) == 1) != (i == 0) {
			t.Errorf("with %s: of other programs are %v, %v", text, all, err)
		}
		if known, _, err := r.Known(t.Context(), "zed"); err != nil || !known {
			t.Errorf("with %s: known is %t, %v", text, known, err)
		}
		if _, err := r.Add(t.Context(), muster.Member{Name: "zed", Role: "coder"}); !errors.Is(err, muster.ErrHeld) {
			t.Errorf("with %s: the name was free, %v", text, err)
		}
	}
	team := s.Table(muster.TableTeam)
	_, err := team.Put(t.Context(), "run", []byte(`7`), muster.None)
	require.NoError(t, err)
	doc, err := team.Get(t.Context(), "config")
	require.NoError(t, err)
	require.NoError(t, team.Delete(t.Context(), "config", doc.Rev))
	add(t, r, muster.Member{Name: "zed", Role: "coder"})
	if got := kinds(t, s); len(got) != 4 {
		t.Errorf("said were %q", got)
	}
}

// A large file is written less often: at most a megabyte a second.
func TestTheProjectorWritesAtMostOnceASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testPace(t, 0, 5, 11)
		testPace(t, 3<<20, 3, 4)
	})
}

// testPace counts the writes of 10 s; it runs in synctest.
func testPace(t *testing.T, size, least, most int) {
	s := mem.New()
	write(t, s, `{"big":"`+strings.Repeat("x", size)+`"}`)
	r := process(s)
	add(t, r, muster.Member{Name: "alice", Role: "coder"})
	ctx, cancel := context.WithCancel(t.Context())
	var projecting sync.WaitGroup
	projecting.Go(func() { r.Projector(ctx) })
	writes, last := 0, ""
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
	if writes < least || writes > most || !strings.Contains(config(t, s), `"doing": "99"`) {
		t.Errorf("%d writes of %d bytes in 10 s", writes, len(config(t, s)))
	}
}
