package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/roster"
	"muster/internal/spend"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/transcript"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// plan is what a member of the scene asks to be approved.
const plan = `1. Write the new routes beside the old ones in routes.go.
2. Answer the old routes with 308 and the header Deprecation.
3. Test both: each old path has one new path.

Not touched: the webhooks, which clients cannot follow with a redirect.`

// reply has all of Markdown that members use.
const reply = "## What I found\n\nThe old routes are in **three** places, and `routes.go` has the table:\n\n" +
	"- `GET /v1/users` and its filters\n- the webhooks, which *cannot* move\n  - they are signed over the path\n- the export\n\n" +
	"| route | calls a day | moves |\n|---|---:|---|\n| /v1/users | 120,331 | yes |\n| /v1/hooks | 88 | no |\n\n" +
	"```go\nfunc old(w http.ResponseWriter, r *http.Request) {\n\thttp.Redirect(w, r, \"/v2\"+r.URL.Path, http.StatusPermanentRedirect)\n}\n```\n\n" +
	"```diff\n-\tmux.Handle(\"/v1/users\", users)\n+\tmux.Handle(\"/v1/users\", old)\n```\n\n" +
	"```\nplain if\n```\n\n" +
	"> A redirect keeps the method only with 307 and 308.\n\n1. First the table.\n2. Then [the tests](https://example.org/tests \"x\").\n"

// sceneTasks are a board as one has it in the middle of a run.
var sceneTasks = []struct {
	subject       string
	after         []muster.TaskID
	owner         muster.Name
	label         string
	from, minutes float64 // when its owner takes it, and works on it for how long
}{
	{"list the routes of version 1", nil, "alice", "landed", 2, 6},
	{"write the table of new routes", []muster.TaskID{1}, "alice", "landed", 7, 6},
	{"move the readers of users", []muster.TaskID{2}, "bob", "landed", 13, 6},
	{"answer old routes with a redirect", []muster.TaskID{2}, "alice", "in_progress", 15, 25},
	{"sign webhooks over the body", []muster.TaskID{2}, "carol", "in_progress", 16, 24},
	{"page the export by cursor", []muster.TaskID{3}, "bob", "landing", 22, 15},
	{"keep the rate limits per route", []muster.TaskID{3}, "dave", "in_progress", 24, 16},
	{"move the client library", []muster.TaskID{4, 5}, "", "waiting", 0, 0},
	{"tell clients with a Deprecation header", []muster.TaskID{4}, "", "waiting", 0, 0},
	{"load test the new export", []muster.TaskID{6, 7}, "", "waiting", 0, 0},
	{"measure p99 before and after", []muster.TaskID{6}, "", "waiting", 0, 0},
	{"write the guide for moving", []muster.TaskID{8, 9}, "", "waiting", 0, 0},
	{"remove the flag v2_beta", nil, "erin", "needs_attention", 3, 10},
	{"update the changelog", nil, "", "ready", 0, 0},
}

// scene fills the world with a team in the middle of its work: 6 members, 14 tasks, 40 minutes of events, a plan and a
// mail that wait for the user, conversations and spending.
func scene(w *world) {
	w.Helper()
	now := time.Now()
	began := muster.UnixTime(now.Add(-40 * time.Minute))
	w.put(muster.TableTeam, "run", muster.Run{Team: "api-v2", Goal: "move the public API to version 2 and keep the old routes alive for a year",
		Check: "go test ./...", Target: "muster/api-v2", Budget: "$5.00", StartedAt: began, Cap: 6, Model: "sonnet"})
	w.sceneTasks(began)
	w.sceneEvents(began)
	w.members("alice", "bob", "carol", "dave", "erin") // it writes events of now
	gittest.Write(w, w.dir, map[string]string{"routes.go": "package api\n\nfunc old() {}\n"})
	gittest.Git(w, w.dir, "add", "routes.go")
	gittest.Git(w, w.dir, "commit", "-qm", "routes")
	lane := require.Value(w.team.Lanes().Create(w.Context(), team.LaneDraft{Name: "task-4-redirect", Task: 4}))(w)
	// A lane is bound to a task that nobody has yet.
	w.change(4, func(t *muster.Task) {
		t.Status, t.Owner, t.ClaimedAt, t.Fence = muster.InProgress, "alice", began+900, 1
	})
	gittest.Write(w, lane.Path, map[string]string{"routes.go": "package api\n\n// old answers a route of version 1.\nfunc old(path string) string {\n\treturn \"/v2\" + path\n}\n"})
	r := roster.New(w.store, w.journal, "api-v2")
	box := mailbox.New(w.store, w.journal, r.Known)
	require.Value(w.requests().Ask(w.Context(), muster.Request{Kind: muster.AskPlan, From: "carol",
		To: muster.Lead, Plan: plan, TaskID: 5}))(w)
	require.Value(box.Send(w.Context(), muster.Message{Type: muster.MailMessage, From: muster.Lead, To: muster.User,
		Content: "The export has 40 million rows in the largest account. May it answer in pages of 1,000?"}))(w)
	w.sceneWords()
}

func (w *world) sceneTasks(began float64) {
	w.Helper()
	var all []muster.Task
	landed := map[muster.TaskID]bool{}
	for i, s := range sceneTasks {
		t := muster.Task{ID: muster.TaskID(i + 1), Subject: s.subject, Status: muster.Pending, DependsOn: s.after, Owner: s.owner,
			Description: "As the goal says. Keep the tests green, and say in the result what clients will see.", CreatedAt: began, UpdatedAt: began}
		switch s.label {
		case "landed":
			t.Status, landed[t.ID] = muster.Completed, true
			t.Landed = &muster.Landed{Commit: fmt.Sprintf("%07x", 0x9c01d3e+i*7919)}
		case "in_progress", "landing":
			if t.ID == 4 { // it is bound to its lane first
				t.Owner = ""
				break
			}
			t.Status, t.ClaimedAt, t.Fence = muster.InProgress, began+600, 1
		case "needs_attention":
			t.Status, t.Result, t.Attempts = muster.NeedsAttention, "the flag is read in a file that no test covers", 3
			t.Owner = ""
		}
		for _, d := range s.after {
			if !landed[d] {
				t.BlockedBy = append(t.BlockedBy, d)
			}
		}
		all = append(all, t)
	}
	w.putTasks(all)
}

func (w *world) change(id muster.TaskID, f func(*muster.Task)) {
	w.Helper()
	table := w.store.Table(muster.TableTasks)
	d, err := table.Get(w.Context(), fmt.Sprint(id))
	var t muster.StoredTask
	if err == nil {
		err = json.Unmarshal(d.Data, &t)
	}
	f((*muster.Task)(&t))
	data, errData := json.Marshal(t)
	require.NoError(w, errors.Join(err, errData))
	require.Value(table.Put(w.Context(), fmt.Sprint(id), data, d.Rev))(w)
}

func (w *world) sceneEvents(began float64) {
	w.Helper()
	var all []muster.Event
	emit := func(minute float64, kind string, who muster.Name, task muster.TaskID, fields map[string]any) {
		all = append(all, muster.Event{Kind: kind, At: began + 60*minute, Member: who, Task: task, Fields: fields})
	}
	emit(0, journal.RunStarted, muster.System, 0, map[string]any{"goal": "move the public API to version 2", "target": "muster/api-v2"})
	for i, name := range []muster.Name{muster.Lead, "alice", "bob", "carol", "dave", "erin"} {
		emit(0.2+0.1*float64(i), journal.MemberSpawned, name, 0, map[string]any{"role": "coder"})
	}
	for i, s := range sceneTasks {
		id, commit := muster.TaskID(i+1), fmt.Sprintf("%07x", 0x9c01d3e+i*7919)
		emit(0.9+0.01*float64(i), journal.TaskCreated, muster.Lead, id, map[string]any{"subject": s.subject})
		if s.minutes == 0 {
			continue
		}
		emit(s.from, journal.TaskClaimed, s.owner, id, map[string]any{"subject": s.subject, "lane": fmt.Sprint("task-", id)})
		for turn := 0.0; turn < s.minutes; turn++ {
			all = append(all, w.sceneTurn(began, s.from+turn, turn, s.owner, id)...)
		}
		end := s.from + s.minutes - 1
		switch s.label {
		case "landed":
			emit(end-.4, journal.TaskReturned, s.owner, id, map[string]any{"reason": "check", "text": "TestRoutes fails on the merged tree", "failed": "TestRoutes", "seconds": 0.6})
			emit(end+.6, journal.TaskLanding, s.owner, id, map[string]any{"head": commit})
			emit(end+.9, journal.TaskCompleted, s.owner, id, map[string]any{"subject": s.subject, "commit": commit, "check": "go test ./...", "receipt": "ok", "seconds": 0.7})
		case "landing":
			emit(end+.6, journal.TaskLanding, s.owner, id, map[string]any{"head": commit})
		case "needs_attention":
			emit(end+.6, journal.TaskAttention, s.owner, id, map[string]any{"reason": "the flag is read in a file that no test covers"})
			emit(end+.7, journal.MemberIdle, s.owner, 0, map[string]any{"reason": "no_task"})
		}
	}
	emit(39.7, journal.MemberSteps, "alice", 4, map[string]any{"done": 2, "of": 5, "text": "redirect the readers"})
	emit(39.8, journal.ToolStarted, "alice", 4, map[string]any{"tool": "bash", "text": "go test ./api -run Redirect"})
	slices.SortStableFunc(all, func(a, b muster.Event) int { return cmp.Compare(a.At, b.At) })
	for _, e := range all {
		require.NoError(w, w.journal.Emit(w.Context(), e))
	}
}

// sceneTurn returns the events of a turn of a member in a minute of the scene, and writes its cost into the ledger.
func (w *world) sceneTurn(began, minute, turn float64, who muster.Name, task muster.TaskID) []muster.Event {
	w.Helper()
	input := 6000 + int(turn)*5200
	if input > 90_000 {
		input -= 70_000
	}
	u := llm.Usage{Input: input / 10, CacheRead: input - input/10, Output: 700 + 31*int(minute)}
	dollars := 0.004 + float64(input)*6e-7
	price := spend.FromFloat(dollars)
	line, err := json.Marshal(spend.Call{State: spend.Ended, ID: fmt.Sprint(who, task, "-", minute), At: began + 60*minute, Run: began,
		Member: who, Task: task, Turn: int(minute), Kind: spend.Turn, Model: "sonnet", Usage: u, Dollars: &price})
	if err == nil {
		_, err = w.store.Log().Append(w.Context(), muster.StreamSpend, muster.Anywhere, line)
	}
	require.NoError(w, err)
	event := func(after float64, kind string, fields map[string]any) muster.Event {
		return muster.Event{Kind: kind, At: began + 60*(minute+after), Member: who, Task: task, Fields: fields}
	}
	return []muster.Event{
		event(.1, journal.TurnStarted, map[string]any{"turn": turn + 1, "turns": minute}),
		event(.3, journal.ToolStarted, map[string]any{"tool": "read", "text": "api/routes.go"}),
		event(.35, journal.ToolEnded, map[string]any{"tool": "read", "seconds": 0.01}),
		event(.5, journal.TurnEnded, map[string]any{"stop": "tool_use", "model": "sonnet", "seconds": 9.5, "dollars": dollars,
			"input": u.Input, "output": u.Output, "cache_read": u.CacheRead}),
	}
}

func (w *world) sceneWords() {
	w.Helper()
	t := require.Value(transcript.Open(w.Context(), w.store.Log(), "alice"))(w)
	say := func(parts ...llm.Part) {
		require.NoError(w, t.Reply(w.Context(), llm.Reply{Message: llm.Message{Role: llm.Assistant, Parts: parts}}))
	}
	call := func(id, name, input, result string) {
		say(llm.Call{ID: id, Name: name, Input: json.RawMessage(input)})
		require.NoError(w, t.Result(w.Context(), llm.Result{ID: id, Parts: llm.Parts{llm.Text{Text: result}}, IsError: strings.HasPrefix(result, "FAIL")}))
	}
	require.NoError(w, t.User(w.Context(), []llm.Part{llm.Text{Text: "Your task is 4: answer old routes with a redirect.\nAs the goal says."}}, nil))
	say(llm.Text{Text: "I look where the old routes are."})
	call("c1", "grep", `{"pattern":"/v1/","path":"api"}`, "api/routes.go:12: mux.Handle(\"/v1/users\", users)\napi/routes.go:13: mux.Handle(\"/v1/hooks\", hooks)\n")
	say(llm.Text{Text: reply})
	call("t1", "todo", `{"items":[{"id":"1","text":"list the old routes","status":"completed"},{"id":"2","text":"write the redirect","status":"completed"},
		{"id":"3","text":"redirect the readers","status":"in_progress"},{"id":"4","text":"test each route","status":"pending"},{"id":"5","text":"say it in the docs","status":"pending"}]}`, "[x] 1 list the old routes\n[x] 2 write the redirect\n[>] 3 redirect the readers\n[ ] 4 test each route\n[ ] 5 say it in the docs\n2 of 5 completed")
	call("e1", "edit_file", `{"path":"routes.go","old_text":"func routes(mux *http.ServeMux) {\n\tmux.Handle(\"/v1/users\", users)\n\tmux.Handle(\"/v1/export\", export)\n}","new_text":"func routes(mux *http.ServeMux) {\n\tmux.Handle(\"/v1/users\", old)\n\tmux.Handle(\"/v2/users\", users)\n\tmux.Handle(\"/v1/export\", export)\n}"}`, "Edited routes.go:\n...")
	call("e2", "write_file", `{"path":"old.go","content":"package api\n\nimport \"net/http\"\n\n// old answers a route of version 1.\nfunc old(w http.ResponseWriter, r *http.Request) {\n\tw.Header().Set(\"Deprecation\", \"true\")\n\thttp.Redirect(w, r, \"/v2\"+r.URL.Path, http.StatusPermanentRedirect)\n}\n"}`, "Made old.go: 9 lines.")
	call("e3", "edit_file", `{"path":"hooks.go","old_text":"gone","new_text":"new"}`, "FAIL old_text is not in hooks.go")
	call("c2", "bash", `{"command":"go test ./api"}`, "FAIL\n--- FAIL: TestRedirect (0.00s)\n    routes_test.go:31: got 301, want 308\n")
}
