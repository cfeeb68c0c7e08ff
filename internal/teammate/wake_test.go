package teammate

import (
	"strings"
	"testing"

	"muster"
)

// What wakes the lead, from the most to the least urgent; a lead that nothing needs sleeps on.
func TestWakeReason(t *testing.T) {
	request := muster.Request{ID: "0000beef", From: "alice", Kind: muster.AskPlan, TaskID: 3}
	forTester := muster.Task{ID: 4, Status: muster.Pending, ClaimRole: "tester"}
	for _, c := range []struct {
		name string
		f    wakeFacts
		want string
	}{
		{"all goes on", wakeFacts{progress: canGoOn}, ""},
		{"mail", wakeFacts{mail: true, landing: "landed"}, mailWaits},
		{"all done", wakeFacts{progress: TeamProgress{HadTasks: true, Landed: 2}},
			"All done: 2 tasks landed, nothing is open."},
		{"all done but one",
			wakeFacts{progress: TeamProgress{Landed: 1, NeedsAttention: []muster.Task{{ID: 2, Subject: "b",
				Result: "red"}}}}, "All done: 1 task landed, nothing is open. Task #2 (b) needs attention: red."},
		{"a landing that it waits for", wakeFacts{progress: canGoOn, landing: "Task #1 landed."}, "Task #1 landed."},
		{"nothing can move", wakeFacts{progress: isStuck}, "Nothing can wake you: " + isStuck.Stuck + "."},
		{"a request waits", wakeFacts{progress: canGoOn, requests: []muster.Request{request}},
			"Request 0000beef of alice (plan_approval, task #3) waits for your decision."},
		{"nobody may take a task", wakeFacts{progress: canGoOn, unclaimable: []muster.Task{forTester}},
			"Nobody may take what is ready: task #4 is for a tester and there is none"},
	} {
		got, about := wakeReason(c.f)
		if (got == "") != (c.want == "") || !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if len(about) != len(c.f.requests)+len(c.f.unclaimable) {
			t.Errorf("%s: told of %q", c.name, about)
		}
	}
}
