package web

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/roster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/team"
)

// addrOnly is a listener of which only the address is used.
type addrOnly struct{ addr string }

func (a addrOnly) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (a addrOnly) Close() error              { return nil }
func (a addrOnly) Addr() net.Addr            { t, _ := net.ResolveTCPAddr("tcp", a.addr); return t }

func TestNoTeamYet(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	entries := func() (names []string) {
		all := require.Value(os.ReadDir(w.dir))(t)
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	before := strings.Join(entries(), " ")
	var s state
	w.get("/api/state", &s)
	if s.HasTeam || s.Root != w.dir || s.Tasks == nil || s.Members == nil || s.Needs == nil {
		t.Errorf("%+v", s)
	}
	new(page).read(t.Context(), w, func() bool { return true })
	if after := strings.Join(entries(), " "); after != before {
		t.Errorf("looking has made %s of %s", after, before)
	}
	w.add(3)
	w.server.Launch = func(context.Context, string) error { return nil }
	w.get("/api/state", &s)
	if s.Can != (can{Start: true}) {
		t.Errorf("it can %+v", s.Can)
	}
	if !s.HasTeam || len(s.Tasks) != 3 || s.Tasks[1].Label != "waiting" || s.Tasks[1].BlockedBy[0] != 1 {
		t.Errorf("%+v", s)
	}
}

func TestConversationInParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.members("alice")
	var texts []string
	for range 3 * mostSaid {
		texts = append(texts, "a word")
	}
	w.aliceSays(texts[:2*mostSaid+7]...)
	var c conversation
	w.get("/api/member/alice", &c)
	if len(c.Said) != mostSaid || c.Skipped != mostSaid+7 || c.More {
		t.Errorf("%d said, %d left out, more %v", len(c.Said), c.Skipped, c.More)
	}
	next := c.Next
	w.aliceSays(texts[:mostSaid+3]...)
	w.aliceSays(strings.Repeat("x", 2*mostText))
	total := 0
	for more := true; more; more = c.More {
		c = conversation{}
		w.get("/api/member/alice?after="+fmt.Sprint(uint64(next)), &c)
		total, next = total+len(c.Said), c.Next
	}
	if total != mostSaid+4 || len(c.Said[len(c.Said)-1].Text) > mostText+10 {
		t.Errorf("%d said after the first part", total)
	}
	if res, _ := w.send(w.request(http.MethodGet, "/api/member/nobody", "")); res.StatusCode != http.StatusNotFound {
		t.Errorf("nobody: %s", res.Status)
	}
}

func TestTaskWithDiffAndComment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(2)
	w.members("alice")
	w.aliceAsks("the plan")
	lane := require.Value(w.team.Lanes().Create(t.Context(), team.LaneDraft{Name: "try", Task: 1}))(t)
	gittest.Write(t, lane.Path, map[string]string{"README": "other words, and more\n", "odd \"name\".txt": "x\n"})
	var d details
	w.get("/api/task/1", &d)
	if d.Task.ID != 1 || len(d.Task.Blocks) != 1 || len(d.Requests) != 1 || d.Diff == nil || len(d.Diff.Files) != 2 ||
		!slices.ContainsFunc(d.Diff.Lines, func(l line) bool { return l.New > 0 && l.Text == "other words, and more" }) {
		t.Fatalf("%+v\n%+v", d, d.Diff)
	}
	code, m := w.post("/api/comment", map[string]any{"task": 1, "file": "odd \"name\".txt", "line": 1, "text": "why?"})
	if code != http.StatusOK || m["to"] != "lead" {
		t.Errorf("%d %v", code, m)
	}
	code, m = w.post("/api/comment", map[string]any{"task": 1, "file": "README", "line": 9, "text": "why?"})
	if code != http.StatusBadRequest || m["error"] == "" {
		t.Errorf("%d %v", code, m)
	}
	d = details{}
	w.get("/api/task/2", &d)
	if d.Diff != nil || d.NoDiff == "" {
		t.Errorf("%+v", d)
	}
}

// What models and files say arrives as the text that it is, in documents that no browser takes for a page, and without
// secrets.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Hide = func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("s3cret"), []byte("HIDDEN")) }
	w.add(1)
	w.members("alice")
	const hostile = "</script><script>alert(1)</script>\u2028\x1b[2J\u202e\"'`<img src=x onerror=alert(1)> "
	w.aliceAsks(hostile + "s3cret")
	w.aliceSays(hostile + "s3cret")
	var s state
	var c conversation
	w.get("/api/state", &s)
	w.get("/api/member/alice", &c)
	if len(s.Needs) != 1 || s.Needs[0].Request.Plan != hostile+"HIDDEN" {
		t.Errorf("needs %+v", s.Needs)
	}
	if len(c.Said) != 1 || c.Said[0].Text != hostile+"HIDDEN" {
		t.Errorf("said %+v", c.Said)
	}
	p := new(page)
	p.read(t.Context(), w, func() bool { return len(p.texts) >= 4 })
	if all := strings.Join(p.texts, "\n"); strings.Contains(all, "s3cret") || !strings.Contains(all, "HIDDEN") {
		t.Errorf("events: %s", all)
	}
	for _, path := range []string{"/api/state", "/api/member/alice", "/api/member/%3Cscript%3E", "/api/task/%3Cscript%3E"} {
		res, _ := w.send(w.request(http.MethodGet, path, ""))
		if kind := res.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s is %s", path, kind)
		}
	}
	for _, name := range []string{"app.js", "board.js", "detail.js", "page.js", "index.html"} {
		data := require.Value(files.ReadFile("static/" + name))(t)
		for _, unsafe := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", " style=", " onclick="} {
			if bytes.Contains(data, []byte(unsafe)) && (unsafe != "http://" || !bytes.Contains(data, []byte("http://www.w3.org/2000/svg"))) {
				t.Errorf("%s has %s", name, unsafe)
			}
		}
	}
}

// Two faces answer at once: the first answer stands, and the other one is told which that is.
func TestTwoFacesAnswerAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	for range tier.Amount(2, 10) {
		q := w.aliceAsks("a plan")
		var got [2]map[string]any
		var both sync.WaitGroup
		for i, approve := range []bool{true, false} {
			both.Go(func() {
				_, got[i] = w.post("/api/answer", map[string]any{"id": q.ID, "approve": approve, "text": "because"})
			})
		}
		both.Wait()
		status := func(i int) any { return got[i]["request"].(map[string]any)["status"] }
		want := map[bool]string{true: "approved", false: "rejected"}[got[0]["first"] == true]
		now, err := w.team.Requests().Get(t.Context(), q.ID)
		if err != nil || got[0]["first"] == got[1]["first"] || status(0) != want || status(1) != want || string(now.Status) != want {
			t.Fatalf("answered with %v and %v, and it is %s, %v", got[0], got[1], now.Status, err)
		}
	}
}

// What the page may do, it does, and tells what has come of it.
func TestChangesAreMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	w.change(1, func(t *muster.Task) { t.Status, t.Result = muster.NeedsAttention, "three attempts have failed" })
	var goals []string
	w.server.Launch = func(_ context.Context, goal string) error { goals = append(goals, goal); return nil }
	box := mailbox.New(w.store, w.journal, roster.New(w.store, w.journal, "team").Known)
	letter := require.Value(box.Send(t.Context(), muster.Message{Type: muster.MailMessage, From: muster.Lead, To: muster.User, Content: "Which port?"}))(t)
	var s state
	if w.get("/api/state", &s); s.Can != (can{Stop: true}) {
		t.Errorf("it can %+v", s.Can)
	}
	for _, c := range []struct {
		path string
		body map[string]any
		code int
		says string
	}{
		{"/api/merge", nil, http.StatusBadRequest, "this page cannot do that"},
		{"/api/start", map[string]any{"goal": " count the words "}, http.StatusOK, ""},
		{"/api/resume", nil, http.StatusOK, ""},
		{"/api/take", map[string]any{"shown": []string{}}, http.StatusBadRequest, "more mail has come"},
		{"/api/take", map[string]any{"shown": []muster.MessageID{letter.ID}}, http.StatusOK, "1"},
		{"/api/retry", map[string]any{"task": 1}, http.StatusOK, "pending"},
	} {
		if c.body == nil {
			c.body = map[string]any{}
		}
		if code, said := w.post(c.path, c.body); code != c.code || !strings.Contains(fmt.Sprint(said), c.says) {
			t.Errorf("%s: %d %v", c.path, code, said)
		}
	}
	w.server.Merge = func(context.Context) (string, error) { return "2 commits came to main", nil }
	if _, said := w.post("/api/merge", map[string]any{}); said["text"] != "2 commits came to main" {
		t.Errorf("merge: %v", said)
	}
	if want := []string{"count the words", ""}; !slices.Equal(goals, want) {
		t.Errorf("begun with %q", goals)
	}
}

// TestSaid: the page gets with a call of a file tool what it changes, and of a long difference a part.
func TestSaid(t *testing.T) {
	s := newSaid(team.Said{Kind: team.SaidCall, Tool: "write_file", Input: []byte(`{"path":"a","content":"` + strings.Repeat(`line\n`, 1000) + strings.Repeat("x", 9000) + `"}`)})
	if e := s.Edit; e == nil || e.Added != 1001 || len(e.Preview) != preview || len(e.Lines) != mostEdit || e.More != 601 {
		t.Errorf("the edit is %.300v", e)
	}
	for _, s := range []team.Said{{Kind: team.SaidCall, Tool: "bash", Input: []byte(`{"command":"ls"}`)}, {Kind: team.SaidByIt, Text: "write_file"}} {
		if got := newSaid(s); got.Edit != nil {
			t.Errorf("%+v has the edit %+v", s, got.Edit)
		}
	}
}
