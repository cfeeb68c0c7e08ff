package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/store/mem"
)

// process is the roster as one process has it.
func process(s muster.Store) *Roster { return New(s, journal.New(s.Log()), "api-v2") }

func add(t testing.TB, r *Roster, m muster.Member) muster.Member {
	t.Helper()
	m, err := r.Add(t.Context(), m)
	require.NoError(t, err)
	return m
}

func join(t testing.TB, r *Roster) *Host {
	t.Helper()
	h, err := r.Join(t.Context(), "muster run")
	require.NoError(t, err)
	return h
}

func set(t testing.TB, r *Roster, n muster.Name, s muster.MemberStatus, why muster.IdleReason) muster.Member {
	t.Helper()
	m, err := r.Update(t.Context(), n, func(m *muster.Member) { m.Status, m.IdleReason = s, why })
	require.NoError(t, err)
	return m
}

func kinds(t testing.TB, s muster.Store) (out []string) {
	t.Helper()
	for e, err := range journal.New(s.Log()).Read(t.Context(), 0) {
		require.NoError(t, err)
		out = append(out, fmt.Sprintf("%s %s %s%s", e.Kind, e.Member, e.Text("reason"), e.Text("role")))
	}
	return out
}

func TestALife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mem.New()
		r := process(s)
		start := time.Now()
		watch := r.Watch(t.Context())
		h := join(t, r)
		m := add(t, r, muster.Member{Name: "alice", Role: "coder", Prompt: "write", Model: "m", Host: h.ID(), StartedBy: "lead"})
		<-watch
		if m.Status != muster.Working || m.AgentID != "alice@api-v2" || m.JoinedAt != muster.UnixTime(start) || m.Since != m.JoinedAt || m.Epoch != 1 {
			t.Fatalf("%+v", m)
		}
		if _, err := r.Add(t.Context(), muster.Member{Name: "alice", Role: "tester"}); !errors.Is(err, muster.ErrHeld) || err.Error() != "alice is already here (working)" {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Minute)
		m = set(t, r, "alice", muster.Idle, muster.IdleTasks)
		if m.Since != muster.UnixTime(start.Add(time.Minute)) {
			t.Fatalf("since %v", m.Since)
		}
		if _, err := r.Add(t.Context(), muster.Member{Name: "alice", Role: "tester"}); !errors.Is(err, muster.ErrHeld) || err.Error() != "alice is already here (idle)" {
			t.Fatalf("got %v", err)
		}
		time.Sleep(time.Minute)
		if m = set(t, r, "alice", muster.Idle, muster.IdleTimeout); m.Since != muster.UnixTime(start.Add(time.Minute)) {
			t.Fatal("another reason is no other status")
		}
		set(t, r, "alice", muster.Shutdown, muster.IdleTimeout)
		_, err := r.Update(t.Context(), "alice", func(m *muster.Member) {
			m.Turns, m.Host, m.Task, m.Doing = 7, "", 3, "parked"
		})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		m = add(t, r, muster.Member{Name: "alice", Role: "tester", Prompt: "again", Host: h.ID(), StartedBy: "user",
			RequirePlan: true})
		want := muster.Member{Name: "alice", Role: "tester", Status: muster.Working, AgentID: "alice@api-v2",
			Model: "m", JoinedAt: muster.UnixTime(start), Since: muster.UnixTime(time.Now()), Turns: 7, Host: h.ID(),
			Epoch: 2, StartedBy: "user", Prompt: "again", RequirePlan: true}
		if d := cmp.Diff(want, m); d != "" {
			t.Fatal(d)
		}
		set(t, r, "alice", muster.Idle, muster.IdleMessages)
		set(t, r, "alice", muster.Working, "")
		if d := cmp.Diff([]string{"member.spawned alice coder", "member.idle alice awaiting_tasks",
			"member.shutdown alice timeout", "member.spawned alice tester", "member.idle alice awaiting_messages",
			"member.working alice "}, kinds(t, s)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestNames(t *testing.T) {
	r := process(mem.New())
	for _, n := range []muster.Name{"", "Alice", "lead", "user", "all", "system", "con", "a/b", "../a", "ä"} {
		if _, err := r.Add(t.Context(), muster.Member{Name: n, Role: "coder"}); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%q: %v", n, err)
		}
	}
	if m := add(t, r, muster.Member{Name: muster.Lead, Role: "lead"}); m.Name != muster.Lead {
		t.Fatal("the lead has a record too")
	}
	if all, err := r.List(t.Context()); err != nil || len(all) != 1 {
		t.Fatalf("%v %v", all, err)
	}
}

func TestAMemberWhoseHostDiedIsSpawnedAgain(t *testing.T) {
	s := mem.New()
	r := process(s)
	h := join(t, r)
	add(t, r, muster.Member{Name: "alice", Role: "coder", Host: h.ID(), Task: 4, Model: "m"})
	other := process(s.Handle())
	if _, err := other.Add(t.Context(), muster.Member{Name: "alice", Role: "coder"}); !errors.Is(err, muster.ErrHeld) {
		t.Fatalf("got %v", err)
	}
	require.NoError(t, h.Release())
	m := add(t, other, muster.Member{Name: "alice", Prompt: "new", Model: "n"})
	if m.Epoch != 2 || m.Task != 4 || m.Host != "" || m.Prompt != "new" || m.Role != "coder" || m.Model != "n" {
		t.Fatalf("%+v", m)
	}
	if _, err := other.Add(t.Context(), muster.Member{Name: "alice", Role: "coder"}); !errors.Is(err, muster.ErrHeld) {
		t.Fatalf("one that is about to be started is here: %v", err)
	}
}

func TestOnlyOneSpawnsAName(t *testing.T) {
	s := mem.New()
	for i := range tier.Amount(5, 30) {
		name := muster.Name(fmt.Sprint("w", i))
		var g sync.WaitGroup
		won := make(chan string, 8)
		for k := range 8 {
			r := process(s.Handle())
			g.Go(func() {
				prompt := fmt.Sprint(k)
				_, err := r.Add(context.Background(), muster.Member{Name: name, Role: "coder", Prompt: prompt})
				if err == nil {
					won <- prompt
				} else if !errors.Is(err, muster.ErrHeld) {
					t.Error(err)
				}
			})
		}
		g.Wait()
		if len(won) != 1 {
			t.Fatalf("%d spawned %s", len(won), name)
		}
		if m, err := process(s).Get(t.Context(), name); err != nil || m.Prompt != <-won {
			t.Fatalf("%+v %v", m, err)
		}
	}
}

func TestForeignFieldsOfARecordAreKept(t *testing.T) {
	s := mem.New()
	r := process(s)
	_, err := s.Table(muster.TableMembers).Put(t.Context(), "alice", []byte(`{"name":"alice","role":"coder","status":"active","colour":"red"}`), muster.None)
	require.NoError(t, err)
	m, err := r.Update(t.Context(), "alice", func(m *muster.Member) {
		m.Doing, m.Extra["taste"] = "x", []byte(`1`)
		m.Name = "mallory" // which is the key of the document, and stays
	})
	require.NoError(t, err)
	there, err := process(s).Get(t.Context(), "alice")
	require.NoError(t, err)
	if m.Name != "alice" || m.Status != muster.Working || string(there.Extra["colour"]) != `"red"` ||
		string(there.Extra["taste"]) != "1" || there.Doing != "x" {
		t.Fatalf("%+v", there)
	}
	// An update that changes nothing writes nothing, also where a field of another program is spaced otherwise in the
	// document: each write costs every process a look.
	var revs []muster.Rev
	for range 3 {
		m, err := r.Update(t.Context(), "alice", func(m *muster.Member) {
			m.Extra["asked"] = json.RawMessage(`["bob",{"of":[1]}]`) // nothing but an extra field
		})
		require.NoError(t, err)
		doc, err := s.Table(muster.TableMembers).Get(t.Context(), "alice")
		require.NoError(t, err)
		revs = append(revs, doc.Rev)
		if !strings.Contains(string(doc.Data), "bob") || m.Extra["asked"] == nil {
			t.Errorf("after the update there is %s", doc.Data)
		}
	}
	if revs[1] != revs[0] || revs[2] != revs[0] {
		t.Errorf("the revisions are %v", revs)
	}
}

func TestTakeOver(t *testing.T) {
	s := mem.New()
	a := process(s)
	ha := join(t, a)
	add(t, a, muster.Member{Name: "alice", Role: "coder", Host: ha.ID(), Task: 3})
	require.NoError(t, ha.Release())
	var g sync.WaitGroup
	won := make(chan muster.HostID, 8)
	for range 8 {
		r := process(s.Handle())
		h := join(t, r)
		g.Go(func() {
			m, err := r.TakeOver(context.Background(), "alice", ha.ID(), h.ID())
			switch {
			case err == nil && m.Host == h.ID() && m.Epoch == 2 && m.Task == 3:
				won <- h.ID()
			case !errors.Is(err, muster.ErrStale):
				t.Errorf("%+v %v", m, err)
			}
		})
		g.Go(func() { // its record may change meanwhile
			if _, err := r.Update(context.Background(), "alice", func(m *muster.Member) { m.Turns++ }); err != nil {
				t.Error(err)
			}
		})
	}
	g.Wait()
	if len(won) != 1 {
		t.Fatalf("%d took alice over", len(won))
	}
	if m, err := a.Get(t.Context(), "alice"); err != nil || m.Host != <-won || m.Turns != 8 {
		t.Fatalf("%+v %v", m, err)
	}
	if got := kinds(t, s); got[len(got)-1] != "member.resumed alice " {
		t.Fatalf("%q", got)
	}
	add(t, a, muster.Member{Name: "bob", Role: "coder"})
	if m, err := a.TakeOver(t.Context(), "bob", "", "host-1.1"); err != nil || m.Host != "host-1.1" {
		t.Fatalf("%+v %v", m, err)
	}
	if slices.Contains(kinds(t, s), "member.resumed bob ") {
		t.Fatal("a first start is no resumption")
	}
	if _, err := a.TakeOver(t.Context(), "nobody", "", "host-1.1"); !errors.Is(err, muster.ErrNotFound) {
		t.Fatalf("got %v", err)
	}
}

func TestKnown(t *testing.T) {
	s := mem.New()
	r := process(s)
	for _, n := range []muster.Name{"alice", "alina", "bob", "worker-10", "w-1", "w-2", "w-3", "w-4"} {
		add(t, r, muster.Member{Name: n, Role: "coder"})
	}
	set(t, r, "bob", muster.Shutdown, "")
	write(t, s, `{"team_name":"default","members":[{"name":"Zed","role":"x","status":"active","host":"host-1.1"},`+
		`{"name":"bob"},{"name":"lead"},{"name":"zoe","role":5},"odd",7,{"name":"Zed"}]}`)
	_, err := s.Table(muster.TableMembers).Put(t.Context(), "torn", []byte(`{"name":[]}`), muster.None)
	require.NoError(t, err)
	for _, c := range []struct {
		name  muster.Name
		known bool
		near  []muster.Name
	}{
		{"alice", true, nil}, {"bob", true, nil}, {"lead", true, nil}, {"user", true, nil}, {"Zed", true, nil},
		{"torn", true, nil}, {"zoe", true, nil}, {"usr", false, []muster.Name{"user"}},
		{"zad", false, []muster.Name{"Zed"}}, {"alinb", false, []muster.Name{"alina", "alice"}},
		{"w-5", false, []muster.Name{"w-1", "w-2", "w-3"}}, {"alcie", false, []muster.Name{"alice"}},
		{"alic", false, []muster.Name{"alice"}},
		{"Alice", false, []muster.Name{"alice", "alina"}},
		{"leed", false, []muster.Name{"lead"}},
		{"zed", false, []muster.Name{"Zed"}},
		{"worker10", false, []muster.Name{"worker-10"}},
		{"somebody-else", false, nil}, {"", false, nil}, {"a b/../c", false, nil},
	} {
		known, near, err := r.Known(t.Context(), c.name)
		require.NoError(t, err)
		if known != c.known || !slices.Equal(near, c.near) {
			t.Errorf("%q: known %v, near %v", c.name, known, near)
		}
	}
	_, errGet := r.Get(t.Context(), "alcie")
	_, errUpdate := r.Update(t.Context(), "alcie", func(*muster.Member) {})
	for _, err := range []error{errGet, errUpdate} {
		if !errors.Is(err, muster.ErrNotFound) || muster.HintOf(err) != "muster team list" ||
			err.Error() != `there is no member "alcie" (did you mean alice?)` {
			t.Errorf("got %v, with the hint %q", err, muster.HintOf(err))
		}
	}
	write(t, s, `["half"]`)
	if known, _, err := r.Known(t.Context(), "Zed"); known || err != nil {
		t.Errorf("with a config.json that cannot be read: %t, %v", known, err)
	}
}
