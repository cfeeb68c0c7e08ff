package muster_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"muster"
	"muster/internal/testing/require"
)

// Every kind of document keeps, through a reading and a writing, the fields that it does not know.
func TestUnknownFieldsSurvive(t *testing.T) {
	for _, tc := range []struct {
		into any
		doc  string
	}{
		{&muster.Task{}, `{"id":3,"subject":"实现","status":"pending","owner":"","blockedBy":[],"dependsOn":[1],"fence":2,"landed":null,"theirs":{"a":[1,2.50,"<b>"]},"tags":["x"],"big":12345678901234567890}`},
		{&muster.Member{}, `{"name":"alice","role":"coder","status":"working","color":"red"}`},
		{&muster.Request{}, `{"request_id":"7f2c91aa","kind":"shutdown","from":"lead","to":"bob","status":"pending","created_at":1,"updated_at":2,"target":"bob"}`},
		{&muster.Lane{}, `{"name":"auth-refactor","path":"/r/.worktrees/auth-refactor","branch":"wt/auth-refactor","task_id":1,"status":"active","pinned":true}`},
		{&muster.Run{}, `{"team":"api-v2","goal":"g","target":"muster/api-v2","cap":4,"started_at":1,"later":null}`},
	} {
		var want, got map[string]any
		require.NoError(t, json.Unmarshal([]byte(tc.doc), &want))
		if err := json.Unmarshal([]byte(tc.doc), tc.into); err != nil {
			t.Fatalf("%T: %v", tc.into, err)
		}
		data, err := muster.Encode(reflect.ValueOf(tc.into).Elem().Interface())
		if err != nil {
			t.Fatalf("%T: %v", tc.into, err)
		}
		if err := json.Unmarshal(data, &got); err != nil {
			t.Fatalf("%T wrote %s: %v", tc.into, data, err)
		}
		for k, v := range want {
			if d := cmp.Diff(v, got[k]); d != "" {
				t.Errorf("%T: field %q: %s", tc.into, k, d)
			}
		}
		if !strings.HasPrefix(string(data), "{\n  \"") || !strings.HasSuffix(string(data), "\n}\n") || strings.Contains(string(data), `\u003c`) {
			t.Errorf("%T is written as %q", tc.into, data)
		}
		if strings.Contains(tc.doc, "1234567890123456789") && !strings.Contains(string(data), "12345678901234567890") {
			t.Errorf("a number lost its digits: %s", data)
		}
		// Written and read again it is the same.
		again := reflect.New(reflect.TypeOf(tc.into).Elem())
		require.NoError(t, json.Unmarshal(data, again.Interface()))
		if twice, _ := muster.Encode(again.Elem().Interface()); string(twice) != string(data) {
			t.Errorf("%T: %s became %s", tc.into, data, twice)
		}
	}
}

// What the readers of the seeds test: lists are lists, an owner is text.
func TestTaskAsOthersReadIt(t *testing.T) {
	task := muster.Task{ID: 3, Subject: "x", Status: muster.Pending, Blocks: []muster.TaskID{4}, Extra: muster.Extra{"theirs": json.RawMessage("1")}}
	shown, err := muster.Encode(task)
	if err != nil || !strings.Contains(string(shown), `"blocks": [`) {
		t.Errorf("%s, %v", shown, err)
	}
	data, err := muster.Encode(muster.StoredTask(task))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(data, &m))
	if _, stored := m["blocks"]; stored || m["theirs"] != 1.0 {
		t.Errorf("%s", data)
	}
	for _, k := range []string{"blockedBy", "dependsOn"} {
		if l, ok := m[k].([]any); !ok || len(l) != 0 {
			t.Errorf("%s is %v", k, m[k])
		}
	}
	landed, there := m["landed"]
	if m["owner"] != "" || m["worktree"] != "" || m["fence"] != 0.0 || !there || landed != nil {
		t.Errorf("%s", data)
	}
}

func TestTasksOfOthers(t *testing.T) {
	for _, tc := range []struct {
		doc  string
		want muster.Task
	}{
		{`{"id":3,"subject":"实现登录接口","status":"in_progress","owner":"alice","claimed_at":1714567890.123,"claim_source":"auto"}`,
			muster.Task{ID: 3, Subject: "实现登录接口", Status: muster.InProgress, Owner: "alice", ClaimedAt: 1714567890.123, ClaimSource: muster.SourceAuto}},
		{`{"id":1,"subject":"a","owner":null,"blockedBy":[2,4]}`,
			muster.Task{ID: 1, Subject: "a", Status: muster.Pending, BlockedBy: []muster.TaskID{2, 4}, DependsOn: []muster.TaskID{2, 4}}},
		{`{"id":1,"subject":"a","status":"pending","blocked_by":[2],"required_role":"coder"}`,
			muster.Task{ID: 1, Subject: "a", Status: muster.Pending, BlockedBy: []muster.TaskID{2}, DependsOn: []muster.TaskID{2}, ClaimRole: "coder"}},
		{`{"id":1,"subject":"a","status":"pending","claim_role":"tester","required_role":"coder","blocked_by":null}`,
			muster.Task{ID: 1, Subject: "a", Status: muster.Pending, ClaimRole: "tester"}},
		{`{"id":1,"subject":"a","status":"pending","blockedBy":[],"dependsOn":[5]}`,
			muster.Task{ID: 1, Subject: "a", Status: muster.Pending, BlockedBy: []muster.TaskID{}, DependsOn: []muster.TaskID{5}}},
	} {
		var got muster.Task
		if err := json.Unmarshal([]byte(tc.doc), &got); err != nil {
			t.Fatalf("%s: %v", tc.doc, err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.doc, d)
		}
	}
	// The two lists are not one: changing the first leaves the second.
	var got muster.Task
	require.NoError(t, json.Unmarshal([]byte(`{"id":1,"blockedBy":[2,4]}`), &got))
	got.BlockedBy[0] = 9
	if got.DependsOn[0] != 2 {
		t.Error("blockedBy and dependsOn share their memory")
	}
	for _, bad := range []string{`[]`, `"x"`, `{"id":"x"}`, `{"subject":1}`, `{"required_role":1}`, `{"blocked_by":"x"}`, `{"id":1`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as a task", bad)
		}
	}
	if err := got.UnmarshalJSON([]byte(`{"id":1} x`)); err == nil {
		t.Error("text behind a task is ignored")
	}
}

func TestClaimable(t *testing.T) {
	free := muster.Task{Status: muster.Pending}
	gated := muster.Task{Status: muster.Pending, ClaimRole: "Coder"}
	for _, tc := range []struct {
		t    muster.Task
		role string
		want bool
	}{
		{free, "", true}, {free, "coder", true}, {gated, "coder", true}, {gated, "", false}, {gated, "tester", false},
		{muster.Task{Status: muster.Pending, Owner: "bob"}, "", false}, {muster.Task{Status: muster.InProgress}, "", false},
		{muster.Task{Status: muster.Pending, BlockedBy: []muster.TaskID{1}}, "", false},
	} {
		if got := tc.t.Claimable(tc.role); got != tc.want {
			t.Errorf("%+v for %q: %v", tc.t, tc.role, got)
		}
	}
	for s, open := range map[muster.TaskStatus]bool{muster.Pending: true, muster.InProgress: true, muster.Landing: true, muster.Completed: false, muster.NeedsAttention: false} {
		if got := (muster.Task{Status: s}).Open(); got != open {
			t.Errorf("%s: open %v", s, got)
		}
	}
}

func TestMailOfOthers(t *testing.T) {
	yes := true
	for _, tc := range []struct {
		line string
		want muster.Message
	}{
		{`{"type":"message","from":"alice","to":"bob","content":"请处理登录模块","timestamp":1714567890.123}`,
			muster.Message{Type: muster.MailMessage, From: "alice", To: "bob", Content: "请处理登录模块", At: 1714567890.123}},
		{`{"sender":"alice","content":"hi","ts":5}`, muster.Message{Type: muster.MailMessage, From: "alice", Content: "hi", At: 5}},
		{`{"type":"plan_request","from":"bob","to":"lead","content":"Plan for approval:\nx","request_id":"7f2c91aa"}`,
			muster.Message{Type: muster.MailPlan, From: "bob", To: "lead", Content: "Plan for approval:\nx", RequestID: "7f2c91aa"}},
		{`{"type":"plan_approval","from":"bob"}`, muster.Message{Type: muster.MailPlan, From: "bob"}},
		{`{"type":"plan_approval_response","from":"lead","approved":true}`, muster.Message{Type: muster.MailPlanAnswer, From: "lead", Approve: &yes}},
		{`{"type":"shutdown_request","from":"lead","approve":true,"approved":false}`, muster.Message{Type: muster.MailShutdown, From: "lead", Approve: &yes}},
	} {
		var got muster.Message
		if err := json.Unmarshal([]byte(tc.line), &got); err != nil {
			t.Fatalf("%s: %v", tc.line, err)
		}
		if d := cmp.Diff(tc.want, got); d != "" {
			t.Errorf("%s: %s", tc.line, d)
		}
	}
	for _, bad := range []string{`{}`, `{"event":"task.claimed","ts":1}`} {
		var m muster.Message
		if err := json.Unmarshal([]byte(bad), &m); !errors.Is(err, muster.ErrCorrupt) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	for _, bad := range []string{`[]`, `7`, `{"content":7}`} {
		var m muster.Message
		if err := json.Unmarshal([]byte(bad), &m); err == nil {
			t.Errorf("%s was read as a mail", bad)
		}
	}
	var back muster.Message
	in := muster.Message{ID: "m1", Type: muster.MailPlanAnswer, From: "lead", To: "bob", Content: "a <b> & c", At: 1714567890.123, RequestID: "7f2c91aa", Approve: new(bool), Feedback: "no", Plan: "p", TaskID: 4}
	line, err := muster.MarshalLine(in)
	if err != nil || strings.Contains(string(line), "\n") || !strings.Contains(string(line), "<b> &") {
		t.Fatalf("%s, %v", line, err)
	}
	require.NoError(t, json.Unmarshal(line, &back))
	if d := cmp.Diff(in, back); d != "" {
		t.Error(d)
	}
}

func TestMembersOfOthers(t *testing.T) {
	var m muster.Member
	if err := json.Unmarshal([]byte(`{"name":"alice","role":"coder","status":"active"}`), &m); err != nil || m.Status != muster.Working {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestEventIsOneFlatLine(t *testing.T) {
	in := muster.Event{Kind: "task.claimed", At: 1714567890.123456, Member: "alice", Task: 3, Fields: map[string]any{"role": "coder", "fence": 2, "text": "a\nb <c>"}}
	line, err := muster.MarshalLine(in)
	if err != nil || strings.Contains(string(line), "\n") {
		t.Fatalf("%s, %v", line, err)
	}
	var flat map[string]any
	require.NoError(t, json.Unmarshal(line, &flat))
	want := map[string]any{"event": "task.claimed", "ts": 1714567890.123456, "member": "alice", "task_id": 3.0, "role": "coder", "fence": 2.0, "text": "a\nb <c>"}
	if d := cmp.Diff(want, flat); d != "" {
		t.Error(d)
	}
	var out muster.Event
	require.NoError(t, json.Unmarshal(line, &out))
	if out.Kind != in.Kind || out.At != in.At || out.Member != "alice" || out.Task != 3 || out.Text("role") != "coder" || out.Number("fence") != 2 || len(out.Fields) != 3 {
		t.Errorf("%+v", out)
	}
	if in.Number("fence") != 2 || in.Number("role") != 0 || in.Text("fence") != "" || len(in.Fields) != 3 {
		t.Errorf("%+v", in)
	}
	bare, _ := muster.MarshalLine(muster.Event{Kind: "run.ended"})
	if string(bare) != `{"event":"run.ended","ts":0}` {
		t.Errorf("%s", bare)
	}
}

func TestStamps(t *testing.T) {
	if muster.UnixTime(time.Time{}) != 0 || !muster.Time(0).IsZero() {
		t.Error("no time has a stamp")
	}
	rapid.Check(t, func(r *rapid.T) {
		at := time.UnixMicro(rapid.Int64Range(1, 4e15).Draw(r, "µs"))
		if got := muster.Time(muster.UnixTime(at)); got.Sub(at).Abs() > time.Microsecond {
			r.Fatalf("%v became %v", at, got)
		}
	})
}
