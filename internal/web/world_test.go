package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/transcript"
	"muster/internal/trust"
	"muster/journal"
	"muster/llm"
	"muster/store/file"
	"muster/team"
)

func TestMain(m *testing.M) { gittest.Main(m) }

// world is a team on files with a server of its page. The requests of a test go over a real connection.
type world struct {
	testing.TB
	dir     string
	team    *team.Team
	store   muster.Store
	journal *journal.Journal
	server  *Server
	addr    string
	stop    func()

	isReplay bool
}

func newWorld(t testing.TB) *world { return makeWorld(t, false) }

func makeWorld(t testing.TB, isReplay bool) *world {
	w := &world{TB: t, isReplay: isReplay, dir: gittest.Repo(t, map[string]string{"README": "a few words\n"})}
	s := require.Value(file.Open(w.dir))(t)
	t.Cleanup(func() { s.Close() })
	w.store, w.journal = s, journal.New(s.Log())
	// The tests make state with a store, beside the program.
	require.Value(trust.Open(os.Getenv).Mark(t.Context(), filepath.Join(w.dir, ".git"), w.dir))(t)
	w.start("127.0.0.1:0", "")
	t.Cleanup(func() { w.stop() })
	return w
}

// start opens the team and serves it at an address, with a token or, without one, with a new one.
func (w *world) start(addr, token string) {
	w.Helper()
	t := require.Value(team.Open(w.Context(), team.Config{Dir: w.dir, OpenStore: func(root string) (muster.Store, error) {
		return file.Open(root)
	}}))(w)
	l := require.Value(Listen(w.Context(), addr))(w)
	w.team, w.server, w.addr = t, New(t), l.Addr().String()
	w.server.Replay = w.isReplay
	if token != "" {
		w.server.token = token
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.Context()))
	over := make(chan error, 1)
	go func() { over <- w.server.Serve(ctx, l) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			w.Error(err)
		}
		t.Close()
	})
}

// restart ends the server, and starts it again with the same token. Its port is another one, because the old one may be
// taken by then.
func (w *world) restart() {
	w.Helper()
	token := w.server.token
	w.stop()
	w.start("127.0.0.1:0", token)
}

func (w *world) request(method, path, body string) *http.Request {
	w.Helper()
	r := require.Value(http.NewRequestWithContext(w.Context(), method, "http://"+w.addr+path, strings.NewReader(body)))(w)
	_, port, _ := net.SplitHostPort(w.addr)
	r.AddCookie(&http.Cookie{Name: "muster-" + port, Value: w.server.token})
	if method == http.MethodPost {
		r.Header.Set("Origin", "http://"+w.addr)
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

// send sends a request, and returns the answer and its body. It follows no redirection.
func (w *world) send(r *http.Request) (*http.Response, string) {
	w.Helper()
	res := require.Value(http.DefaultTransport.RoundTrip(r))(w)
	defer res.Body.Close()
	if res.Header.Get("Content-Type") == "text/event-stream" { // it has no end
		return res, "a stream"
	}
	body := require.Value(io.ReadAll(res.Body))(w)
	return res, string(body)
}

func (w *world) get(path string, v any) {
	w.Helper()
	res, body := w.send(w.request(http.MethodGet, path, ""))
	if err := json.Unmarshal([]byte(body), v); err != nil || res.StatusCode != http.StatusOK {
		w.Fatalf("%s: %s, %v\n%.300s", path, res.Status, err, body)
	}
}

func (w *world) post(path string, v any) (int, map[string]any) {
	w.Helper()
	data := require.Value(json.Marshal(v))(w)
	res, body := w.send(w.request(http.MethodPost, path, string(data)))
	var out map[string]any
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		w.Fatalf("%s: %s, %v\n%s", path, res.Status, err, body)
	}
	return res.StatusCode, out
}

func (w *world) members(names ...muster.Name) {
	w.Helper()
	r := roster.New(w.store, w.journal, "team")
	h := require.Value(r.Join(w.Context(), "the test"))(w)
	w.Cleanup(func() { _ = h.Release() })
	for _, name := range append([]muster.Name{muster.Lead}, names...) {
		role := "coder"
		if name == muster.Lead {
			role = "lead"
		}
		require.Value(r.Add(w.Context(), muster.Member{Name: name, Role: role, Host: h.ID()}))(w)
	}
}

func (w *world) aliceAsks(plan string) muster.Request {
	w.Helper()
	return require.Value(w.requests().Ask(w.Context(), muster.Request{Kind: muster.AskPlan, From: "alice", To: muster.Lead, Plan: plan, TaskID: 1}))(w)
}

func (w *world) aliceSays(texts ...string) {
	w.Helper()
	t := require.Value(transcript.Open(w.Context(), w.store.Log(), "alice"))(w)
	for _, text := range texts {
		m := llm.Message{Role: llm.Assistant, Parts: llm.Parts{llm.Text{Text: text}}}
		require.NoError(w, t.Reply(w.Context(), llm.Reply{Message: m}))
	}
}

// add puts tasks on the board: chains of ten.
func (w *world) add(n int) {
	w.Helper()
	var all []muster.Task
	for i := 1; i <= n; i++ {
		t := muster.Task{ID: muster.TaskID(i), Subject: fmt.Sprintf("part %d of the work", i), Status: muster.Pending,
			Description: strings.Repeat("what is to be done. ", 20)}
		if i%10 != 1 {
			t.DependsOn = []muster.TaskID{muster.TaskID(i - 1)}
		}
		all = append(all, t)
	}
	w.putTasks(all)
}

func (w *world) emit(from, to int) {
	w.Helper()
	for i := from; i <= to; i++ {
		e := muster.Event{Kind: journal.TaskCreated, Member: muster.Lead, Task: muster.TaskID(i),
			Fields: map[string]any{"subject": fmt.Sprintf("task %d", i)}}
		require.NoError(w, w.journal.Emit(w.Context(), e))
	}
}

func (w *world) put(table, key string, v any) {
	w.Helper()
	data, err := json.Marshal(v)
	if err == nil {
		_, err = w.store.Table(table).Put(w.Context(), key, data, muster.None)
	}
	require.NoError(w, err)
}

func (w *world) putTasks(all []muster.Task) {
	w.Helper()
	for _, t := range all {
		w.put(muster.TableTasks, strconv.Itoa(int(t.ID)), t)
	}
}

func (w *world) requests() *requests.Requests {
	box := mailbox.New(w.store, w.journal, roster.New(w.store, w.journal, "team").Known)
	return requests.New(w.store, box, w.journal)
}
