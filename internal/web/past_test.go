package web

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/live"
	"muster/internal/paths"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/journal"
)

// past gives the world a run that began at 1000 and lands two tasks within 40 s.
func (w *world) past() {
	w.Helper()
	w.put(muster.TableTeam, "run", muster.Run{Team: "api", Goal: "g", StartedAt: 1000, EndedAt: 1040, Budget: "$5.00"})
	emit := func(at float64, kind string, who muster.Name, task muster.TaskID, fields map[string]any) {
		require.NoError(w, w.journal.Emit(w.Context(), muster.Event{Kind: kind, At: at, Member: who, Task: task, Fields: fields}))
	}
	turn := func(dollars float64) map[string]any {
		return map[string]any{"dollars": dollars, "input": 100, "cache_read": 900, "output": 10, "model": "m"}
	}
	emit(900, journal.TaskCompleted, "alice", 9, map[string]any{"commit": "9999", "subject": "of an earlier run"})
	emit(1000, journal.RunStarted, muster.System, 0, nil)
	emit(1001, journal.MemberSpawned, "alice", 0, map[string]any{"role": "coder"})
	for id := range muster.TaskID(2) {
		emit(1002, journal.TaskCreated, muster.Lead, id+1, map[string]any{"subject": fmt.Sprintf("part %d", id+1)})
		emit(1010+10*float64(id), journal.TurnEnded, "alice", id+1, turn(0.25))
		emit(1020+10*float64(id), journal.TaskCompleted, "alice", id+1, map[string]any{"commit": "aaaa", "subject": fmt.Sprintf("part %d", id+1)})
	}
	emit(1040, journal.TurnEnded, "bob", 2, turn(1)) // the last moment belongs to the last part
	emit(1040, journal.RunEnded, muster.System, 0, nil)
}

// The past is that of each time, whichever order it is looked at in. What is seen of the events has tests in
// internal/face.
func TestPastAtEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.past()
	type past struct {
		state
		Events []struct{ Text string }
	}
	check := func(at float64, landed, members int, spent string) (events int) {
		t.Helper()
		var p past
		w.get(fmt.Sprintf("/api/past?at=%f", at), &p)
		if p.Board["landed"] != landed || len(p.Members) != members || p.Spent != spent {
			t.Errorf("at %v: %v, %d members, %q", at, p.Board, len(p.Members), p.Spent)
		}
		return len(p.Events)
	}
	check(999, 0, 0, "$0.00 of $5.00")
	first := check(1020, 1, 1, "$0.50 of $5.00")
	if later := check(1040, 2, 1, "$1.50 of $5.00"); first == 0 || later <= first {
		t.Errorf("%d and then %d events", first, later)
	}
	check(1019, 0, 1, "$0.25 of $5.00") // back
	for _, bad := range []string{"", "x", "NaN", "Inf"} {
		if res, _ := w.send(w.request(http.MethodGet, "/api/past?at="+bad, "")); res.StatusCode != http.StatusBadRequest {
			t.Errorf("at %q: %s", bad, res.Status)
		}
	}
}

func TestHistoryAddsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.past()
	w.server.Window = func(string) int { return 200_000 }
	var h history
	w.get("/api/history", &h)
	if len(h.Landings) != 2 || h.Landings[1].Subject != "part 2" || h.From != 1000 || h.To != 1040 || len(h.Members) != 2 {
		t.Fatalf("%+v", h)
	}
	for i, want := range []spending{{Name: "bob", Turns: 1, total: 1}, {Name: "alice", Turns: 2, total: 0.5}} { // the dearest first
		m := h.Members[i]
		for _, d := range m.Dollars {
			m.total += d
		}
		if m.Name != want.Name || m.Turns != want.Turns || m.total != want.total || m.Window != 200_000 || m.Context[h.Bins-1] != 1000 || m.Context[0] != 0 || m.Dollars[h.Bins-1] == 1 != (m.Name == "bob") {
			t.Errorf("%+v", m)
		}
	}
}

// Words of another process reach the page that looks at the member, and only it.
func TestWordsStream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members("alice", "bob")
	said := live.NewWriter(paths.Dir(w.dir).Live())
	t.Cleanup(func() { _ = said.Close() })
	p := &page{query: "?member=alice"}
	over := make(chan struct{})
	go func() {
		defer close(over)
		p.read(t.Context(), w, func() bool { return strings.Contains(p.words, `"end"`) })
	}()
	// What was said before the page was there is not told again, so it is said until the page has it.
	wait.Within(t, time.Minute, "the words", func() bool {
		require.NoError(t, said.Write([]live.Piece{{Member: "bob", Kind: live.Text, Text: "not for this page"}, {Member: "alice", Kind: live.Text, Text: "I look at "},
			{Member: "alice", Kind: live.Think, Text: "where is it?"}, {Member: "alice", Kind: live.Again}, {Member: "alice", Kind: live.Progress, Text: "ok"}, {Member: "alice", Kind: live.End}}))
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	for _, want := range []string{`{"kind":"text","text":"I look at "}`, `{"kind":"think","text":"where is it?"}`, `{"kind":"again"}`, `{"kind":"progress","text":"ok"}`} {
		if !strings.Contains(p.words, want) {
			t.Errorf("%s is missing in %s", want, p.words)
		}
	}
	if strings.Contains(p.words, "not for this page") {
		t.Errorf("the page has words of bob: %s", p.words)
	}
}

// A replay answers what was, and refuses whatever would change something.
func TestAReplayChangesNothing(t *testing.T) {
	t.Parallel()
	w := makeWorld(t, true)
	w.past()
	q := w.aliceAsks("a plan")
	if res, said := w.send(w.request(http.MethodPost, "/api/code", `{"language":"go","text":"if"}`)); res.StatusCode != http.StatusOK {
		t.Errorf("code is not coloured: %s", said)
	}
	for path, body := range changes {
		res, said := w.send(w.request(http.MethodPost, path, strings.Replace(body, "00000001", string(q.ID), 1)))
		if res.StatusCode != http.StatusBadRequest || !strings.Contains(said, "a replay changes nothing") {
			t.Errorf("%s: %s, %s", path, res.Status, said)
		}
	}
	if q, err := w.team.Requests().Get(t.Context(), q.ID); err != nil || q.Status != muster.RequestPending {
		t.Errorf("the request is %s, %v", q.Status, err)
	}
	var s state
	if w.get("/api/state", &s); !s.IsReplay || s.Can != (can{}) || !s.HasTeam || len(s.Tasks) > 0 {
		t.Errorf("%+v", s)
	}
}
