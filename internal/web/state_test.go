package web

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/team"
)

// addrOnly is a listener of which only the address is used.
type addrOnly struct{ addr string }

func (a addrOnly) Accept() (net.Conn, error) { return nil, net.ErrClosed }
func (a addrOnly) Close() error              { return nil }
func (a addrOnly) Addr() net.Addr            { t, _ := net.ResolveTCPAddr("tcp", a.addr); return t }

func TestNoTeamYet(t *testing.T) {
	w := newWorld(t)
	entries := func() (names []string) {
		all, err := os.ReadDir(w.dir)
		if err != nil {
			t.Fatal(err)
		}
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
	w.get("/api/state", &s)
	if !s.HasTeam || len(s.Tasks) != 3 || s.Tasks[1].Label != "waiting" || s.Tasks[1].BlockedBy[0] != 1 {
		t.Errorf("%+v", s)
	}
}

// What models and files say arrives as the text that it is, in documents that no browser takes for a page.
func TestHostileTexts(t *testing.T) {
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	hostile := "</script><script>alert(1)</script>\u2028\x1b[2J\u202e\"'`<img src=x onerror=alert(1)>"
	w.aliceAsks(hostile)
	w.aliceSays(hostile)
	var s state
	var c conversation
	w.get("/api/state", &s)
	w.get("/api/member/alice", &c)
	if len(s.Needs) != 1 || s.Needs[0].Request.Plan != hostile {
		t.Errorf("needs %+v", s.Needs)
	}
	if len(c.Said) != 1 || c.Said[0].Text != hostile {
		t.Errorf("said %+v", c.Said)
	}
	for _, path := range []string{"/api/state", "/api/member/alice", "/api/member/%3Cscript%3E", "/api/task/%3Cscript%3E"} {
		res, _ := w.send(w.request(http.MethodGet, path, ""))
		if kind := res.Header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s is %s", path, kind)
		}
	}
	for _, name := range []string{"app.js", "board.js", "detail.js", "page.js", "index.html"} {
		data, err := files.ReadFile("static/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, unsafe := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "http://", "https://", " style=", " onclick="} {
			if bytes.Contains(data, []byte(unsafe)) && (unsafe != "http://" || !bytes.Contains(data, []byte("http://www.w3.org/2000/svg"))) {
				t.Errorf("%s has %s", name, unsafe)
			}
		}
	}
}

func TestSecretsAreHidden(t *testing.T) {
	w := newWorld(t)
	w.server.Hide = func(data []byte) []byte { return bytes.ReplaceAll(data, []byte("s3cret"), []byte("HIDDEN")) }
	w.add(1)
	w.members("alice")
	w.aliceSays("the key is s3cret")
	w.aliceAsks("use s3cret")
	for _, path := range []string{"/api/state", "/api/member/alice"} {
		if _, body := w.send(w.request(http.MethodGet, path, "")); strings.Contains(body, "s3cret") || !strings.Contains(body, "HIDDEN") {
			t.Errorf("%s: %s", path, body)
		}
	}
	p := new(page)
	p.read(t.Context(), w, func() bool { return len(p.texts) >= 4 })
	if all := strings.Join(p.texts, "\n"); strings.Contains(all, "s3cret") || !strings.Contains(all, "HIDDEN") {
		t.Errorf("events: %s", all)
	}
}

// Two faces answer at once: the first answer stands, and the other one is told which that is.
func TestTwoFacesAnswerAtOnce(t *testing.T) {
	w := newWorld(t)
	w.add(1)
	w.members("alice")
	for range 10 {
		q := w.aliceAsks("a plan")
		var got [2]map[string]any
		var both sync.WaitGroup
		for i, approve := range []bool{true, false} {
			both.Go(func() {
				_, got[i] = w.post("/api/answer", map[string]any{"id": q.ID, "approve": approve, "text": "because"})
			})
		}
		both.Wait()
		first, second := got[0], got[1]
		if first["first"] == second["first"] {
			t.Fatalf("both or none was first: %v %v", first, second)
		}
		status := func(m map[string]any) any { return m["request"].(map[string]any)["status"] }
		now, err := w.team.Requests().Get(t.Context(), q.ID)
		if err != nil || status(first) != status(second) || string(now.Status) != status(first) {
			t.Fatalf("%v and %v, and it is %s, %v", status(first), status(second), now.Status, err)
		}
		if want := map[bool]any{true: "approved", false: "rejected"}[first["first"] == true]; status(first) != want {
			t.Fatalf("the first one wanted %v: %v", want, first)
		}
	}
}

func TestConversationInParts(t *testing.T) {
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
	w := newWorld(t)
	w.add(2)
	w.members("alice")
	w.aliceAsks("the plan")
	lane, err := w.team.Lanes().Create(t.Context(), team.LaneDraft{Name: "try", Task: 1})
	if err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, lane.Path, map[string]string{"README": "other words, and more\n", "odd \"name\".txt": "x\n"})
	var d details
	w.get("/api/task/1", &d)
	if d.Task.ID != 1 || len(d.Task.Blocks) != 1 || len(d.Requests) != 1 || d.Diff == nil || len(d.Diff.Files) != 2 ||
		!strings.Contains(d.Diff.Text, "+other words, and more") {
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

func TestThousandTasks(t *testing.T) {
	w := newWorld(t)
	w.add(1000)
	var names []muster.Name
	for i := range 29 {
		names = append(names, muster.Name("member-"+string(rune('a'+i/10))+string(rune('0'+i%10))))
	}
	w.members(names...)
	var s state
	best := time.Hour
	for range 5 {
		start := time.Now()
		w.get("/api/state", &s)
		best = min(best, time.Since(start))
	}
	if len(s.Tasks) != 1000 || len(s.Members) != 30 || s.Board["ready"] != 100 {
		t.Errorf("%d tasks, %d members, %v", len(s.Tasks), len(s.Members), s.Board)
	}
	t.Logf("the state of 1,000 tasks and 30 members takes %v", best)
	if best > time.Second { // ten times what it takes here without the race detector
		t.Errorf("the state takes %v", best)
	}
}
