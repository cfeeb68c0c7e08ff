package teamtools

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/journal"
	"muster/llm"
	"muster/store/mem"
	"muster/tool"
)

// errRefused is what the services of these tests answer everything with.
var errRefused = muster.Errorf(muster.Held, "that is bob's").WithHint("ask bob for it")

// refusing is a member, and the lanes, that refuse everything.
type refusing struct{}

func (refusing) Me() muster.Member                                    { return muster.Member{Name: muster.Lead} }
func (refusing) CurrentTask() (muster.Task, bool)                     { return muster.Task{}, false }
func (refusing) Claim(context.Context, muster.TaskID) (string, error) { return "", errRefused }
func (refusing) Idle(string) error                                    { return errRefused }
func (refusing) Inbox(context.Context) (string, error)                { return "", errRefused }
func (refusing) Asked(muster.Name, string)                            {}
func (refusing) Plan(context.Context, string) (llm.Result, error)     { return llm.Result{}, errRefused }
func (refusing) Wait(context.Context, bool) (llm.Result, error)       { return llm.Result{}, errRefused }
func (refusing) Spawn(context.Context, muster.Member) (muster.Member, error) {
	return muster.Member{}, errRefused
}
func (refusing) List(context.Context) ([]muster.Lane, error)         { return nil, errRefused }
func (refusing) Status(context.Context, muster.Name) (string, error) { return "", errRefused }
func (refusing) Enter(context.Context, muster.Name) (string, error)  { return "", errRefused }
func (refusing) Keep(context.Context, muster.Name) error             { return errRefused }
func (refusing) Remove(context.Context, muster.Name, bool) error     { return errRefused }
func (refusing) Get(context.Context, muster.Name) (muster.Lane, error) {
	return muster.Lane{}, errRefused
}

func (refusing) Complete(context.Context, muster.TaskID, string) (llm.Result, error) {
	return llm.Result{}, errRefused
}

func (refusing) Completed(context.Context, muster.TaskID) (llm.Result, bool) {
	return llm.Result{}, false
}

func (refusing) Release(context.Context, muster.TaskID, string) error { return errRefused }

func (refusing) Leave(context.Context, muster.RequestID, bool, string) error { return errRefused }

func (refusing) Create(context.Context, muster.Name, muster.TaskID, string) (muster.Lane, error) {
	return muster.Lane{}, errRefused
}

// refusingTools are the lead's tools and a teammate's, which refuse everything.
func refusingTools() []llm.Tool {
	store := mem.New()
	log := journal.New(store.Log())
	r := roster.New(store, log, "demo")
	post := mailbox.New(store, log, r.Known)
	services := Services{Board: board.New(store, log), Post: post, Roster: r, Requests: requests.New(store, post, log),
		Lanes: refusing{}, Log: store.Log(),
		Run: func(context.Context) (muster.Run, error) { return muster.Run{}, errRefused }}
	return append(ForLead(refusing{}, services), ForTeammate(refusing{}, services)...)
}

// Whatever a tool of the team is refused for, its model reads what to do instead.
func TestTheModelReadsTheHint(t *testing.T) {
	tools := refusingTools()
	for name, input := range map[string]string{
		"task_create":      `{"subject":"x","blocked_by":[1]}`,
		"task_update":      `{"task_id":1,"add_blocked_by":[1]}`,
		"claim_task":       `{"task_id":1}`,
		"complete_task":    `{"task_id":1,"summary":"x"}`,
		"release_task":     `{"task_id":1,"reason":"x"}`,
		"submit_plan":      `{"plan":"x"}`,
		"wait":             `{}`,
		"read_inbox":       `{}`,
		"respond_shutdown": `{"request_id":"r","approve":true}`,
		"spawn_teammate":   `{"name":"bob","role":"coder","prompt":"x"}`,
		"worktree_create":  `{"name":"x"}`,
		"worktree_list":    `{}`,
		"worktree_status":  `{"name":"x"}`,
		"worktree_run":     `{"name":"x","command":"true"}`,
		"worktree_keep":    `{"name":"x"}`,
		"worktree_remove":  `{"name":"x"}`,
	} {
		res, err := run(t, tools, name, input)
		if err != nil || !res.IsError || res.Text() != "that is bob's: ask bob for it" {
			t.Errorf("%s: the model reads %q, %v", name, res.Text(), err)
		}
	}
	res, err := run(t, tools, "worktree_remove", `{"name":"x","complete_task":true}`)
	if err != nil || !strings.HasSuffix(res.Text(), ": ask bob for it") {
		t.Errorf("worktree_remove with its task: the model reads %q, %v", res.Text(), err)
	}
}

func run(t *testing.T, tools []llm.Tool, name, input string) (llm.Result, error) {
	t.Helper()
	for _, tl := range tools {
		if tl.Spec().Name == name {
			return tl.Run(t.Context(), llm.Call{ID: "c", Name: name, Input: json.RawMessage(input)}, nil)
		}
	}
	t.Fatalf("there is no tool %s", name)
	return llm.Result{}, nil
}

// What the runtime acts on is said by each tool of itself.
func TestToolsSayWhatTheRuntimeMustKnow(t *testing.T) {
	plan := map[string]bool{"complete_task": true}
	polls := map[string]bool{"wait": true, "idle": true, "read_inbox": true, "task_list": true}
	recovered := map[string]bool{"complete_task": true, "submit_plan": true, "wait": true}
	for _, tl := range refusingTools() {
		s := tl.Spec()
		if s.NeedsPlan != plan[s.Name] || s.Polls != polls[s.Name] {
			t.Errorf("%s: NeedsPlan %v, Polls %v", s.Name, s.NeedsPlan, s.Polls)
		}
		r, ok := tl.(tool.Recoverer)
		if ok != recovered[s.Name] {
			t.Errorf("%s: recoverable is %v", s.Name, ok)
		}
		if !ok {
			continue
		}
		// The records know nothing of the call, and nothing is taken up: only that may be said without resuming.
		call := llm.Call{ID: "c", Name: s.Name, Input: json.RawMessage(`{"task_id":1}`)}
		if res, known, err := r.Recover(t.Context(), call, false); known || err != nil {
			t.Errorf("%s: recovered %q, %v", s.Name, res.Text(), err)
		}
		if _, known, err := r.Recover(t.Context(), call, true); known != (err != nil) {
			t.Errorf("%s: resumed %v, %v", s.Name, known, err)
		}
	}
}

func TestCheckTexts(t *testing.T) {
	long := strings.Repeat("x", 5000)
	for name, c := range map[string]struct {
		in   any
		says string
	}{
		"fits": {struct {
			Content string `json:"content"`
		}{long}, ""},
		"a name": {struct {
			To string `json:"to"`
		}{long}, "to has 5000 bytes, and may have 1000"},
		"a reason": {struct {
			Reason string `json:"reason,omitempty"`
		}{long}, "reason has 5000 bytes, and may have 4096"},
		"a pointer": {struct {
			Role *string `json:"claim_role"`
		}{&long}, "claim_role has 5000 bytes"},
		"no text": {struct {
			Role *string `json:"claim_role"`
		}{nil}, ""},
		"a list": {struct {
			IDs []any `json:"blocked_by"`
		}{make([]any, 101)}, "blocked_by has 101 items, and may have 100"},
	} {
		err := checkTexts(c.in)
		if (err != nil) != (c.says != "") || err != nil && !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// member is a caller that only sends mail.
type member struct {
	refusing
	name muster.Name
}

func (m member) Me() muster.Member { return muster.Member{Name: m.name} }

// TestRecipients: mail reaches the member that a model means, or the error names the members that there are.
func TestRecipients(t *testing.T) {
	store := mem.New()
	log := journal.New(store.Log())
	r := roster.New(store, log, "demo")
	for _, m := range []muster.Member{{Name: muster.Lead, Role: "lead"}, {Name: "alice", Role: "Docs Writer"}, {Name: "bob", Role: "coder"},
		{Name: "eve", Role: "coder"}, {Name: "gone", Role: "tester", Status: muster.Shutdown}, {Name: "manager", Role: "x"}} {
		if _, err := r.Add(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	services := Services{Post: mailbox.New(store, log, r.Known), Roster: r}
	const others = ": the others: lead, "
	for _, c := range []struct {
		from     muster.Name
		to, want string
	}{
		{"bob", "lead", "Sent to lead."},
		{"bob", "team-lead", "Sent to lead."},
		{"bob", "Team Lead", "Sent to lead."},
		{"bob", "@lead", "Sent to lead."},
		{"bob", "lead@demo", "Sent to lead."},
		{"bob", "leader", "Sent to lead."},
		{"bob", "main", "Sent to lead."},
		{"bob", "coordinator", "Sent to lead."},
		{"bob", "manager", "Sent to manager."}, // a member has the name
		{"bob", "human", "Sent to user."},
		{"bob", "docs-writer", "Sent to alice."},
		{"bob", "@Alice", "Sent to alice."},
		{"bob", "coder", `no mail sent: there is no member "coder"` + others + "alice, eve, manager, user"},
		{"alice", "docs writer", "no mail sent: that is you (alice), name another member" + others + "bob, eve, manager, user"},
		{"bob", "tester", `no mail sent: there is no member "tester"` + others + "alice, eve, manager, user"},
		{"bob", "carol", `no mail sent: there is no member "carol"` + others + "alice, eve, manager, user"},
		{"lead", "team-lead", "no mail sent: that is you (lead), name another member: the others: alice, bob, eve, manager, user"},
	} {
		input, _ := json.Marshal(map[string]string{"to": c.to, "content": "hi"})
		res, err := run(t, ForTeammate(member{name: c.from}, services), "send_message", string(input))
		if err != nil || res.Text() != c.want {
			t.Errorf("from %s to %s: %q, %v; want %q", c.from, c.to, res.Text(), err, c.want)
		}
	}
}
