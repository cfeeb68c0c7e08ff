package web

import (
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	"muster"
	"muster/internal/live"
	"muster/internal/paths"
	"muster/internal/testing/wait"
	"muster/team"
)

// The past is that of each time, whichever order it is looked at in.
func TestPastAtEachTime(t *testing.T) {
	w := newWorld(t)
	scene(w)
	run, err := w.team.LastRun(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type past struct {
		state
		Events []struct{ Text string }
	}
	at := func(minute float64) (p past) {
		w.get(fmt.Sprintf("/api/past?at=%f", run.StartedAt+60*minute), &p)
		return p
	}
	check := func(minute float64, landed, members int, spent string) {
		t.Helper()
		p := at(minute)
		if p.Board["landed"] != landed || len(p.Members) != members || p.Spent != spent {
			t.Errorf("minute %v: %v, %d members, %q", minute, p.Board, len(p.Members), p.Spent)
		}
	}
	check(0, 0, 0, "$0.00 of $5.00")
	check(9, 1, 6, at(9).Spent)
	check(40.5, 3, 6, at(40.5).Spent)
	check(9, 1, 6, at(9).Spent) // back
	if a, b := at(9), at(40.5); a.Spent >= b.Spent || len(a.Events) == 0 || len(a.Events) >= len(b.Events) {
		t.Errorf("%s and %s, %d and %d events", a.Spent, b.Spent, len(a.Events), len(b.Events))
	}
	// The end of what the events say is the state of the records.
	var now state
	w.get("/api/state", &now)
	then := at(41)
	for _, label := range []string{"landed", "in_progress", "waiting", "needs_attention", "ready"} {
		want := now.Board[label]
		if label == "in_progress" { // the record of the scene's landing task is one in progress
			want--
		}
		if then.Board[label] != want {
			t.Errorf("%s: the events say %d, and the records %d", label, then.Board[label], want)
		}
	}
	for _, bad := range []string{"", "x", "NaN", "Inf"} {
		if res, _ := w.send(w.request(http.MethodGet, "/api/past?at="+bad, "")); res.StatusCode != http.StatusBadRequest {
			t.Errorf("at %q: %s", bad, res.Status)
		}
	}
}

func TestHistoryAddsUp(t *testing.T) {
	w := newWorld(t)
	scene(w)
	w.server.Window = func(string) int { return 200_000 }
	var h history
	w.get("/api/history", &h)
	if len(h.Landings) != 3 || h.Landings[1].Subject != "write the table of new routes" || h.To <= h.From {
		t.Errorf("%+v", h.Landings)
	}
	total := 0.0
	for _, m := range h.Members {
		for _, d := range m.Dollars {
			total += d
		}
		if m.Window != 200_000 || m.Context[h.Bins-1] == 0 {
			t.Errorf("%s has %d of %d tokens", m.Name, m.Context[h.Bins-1], m.Window)
		}
	}
	book, err := team.ReadSpending(t.Context(), w.team)
	if want := float64(book.Total.Dollars) / 1e9; err != nil || math.Abs(total-want) > 1e-6 {
		t.Errorf("the parts add up to %v, and the ledger has %v, %v", total, want, err)
	}
}

// Words of another process reach the page that looks at the member, and only it.
func TestWordsStream(t *testing.T) {
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
	wait.For(t, "the words", func() bool {
		err := said.Write([]live.Piece{{Member: "bob", Kind: live.Text, Text: "not for this page"}, {Member: "alice", Kind: live.Text, Text: "I look at "},
			{Member: "alice", Kind: live.Again}, {Member: "alice", Kind: live.Progress, Text: "ok"}, {Member: "alice", Kind: live.End}})
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-over:
			return true
		default:
			return false
		}
	})
	for _, want := range []string{`{"kind":"text","text":"I look at "}`, `{"kind":"again"}`, `{"kind":"progress","text":"ok"}`} {
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
	w := makeWorld(t, true)
	scene(w)
	q := w.aliceAsks("a plan")
	for path, body := range map[string]any{"/api/answer": map[string]any{"id": q.ID, "approve": true}, "/api/mail": map[string]any{"to": "alice", "text": "x"},
		"/api/stop": map[string]any{}, "/api/start": map[string]any{"goal": "x"}, "/api/retry": map[string]any{"task": 1}, "/api/take": map[string]any{"shown": []string{}}, "/api/merge": map[string]any{}} {
		if status, said := w.post(path, body); status != http.StatusBadRequest || said["error"] != "a replay changes nothing" {
			t.Errorf("%s: %d, %v", path, status, said)
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
