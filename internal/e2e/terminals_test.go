//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
)

// waiting is a team whose lead sleeps, and whose only teammate takes what comes.
const waiting = `
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: You write what is asked for.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Nothing is open.
scenes:
  - cue: '>\nplease add (?P<what>\w+)\n'
    who: [lead]
    turns:
      - do: [{task_create: {subject: "${what}", description: "Write ${what}.", require_plan: true}}]
  - cue: 'Task #(?P<id>\d+): (?P<word>quick|risky)\n'
    who: [coder]
    turns:
      - cue: needs a plan|submit_plan|plan
        do: [{submit_plan: {plan: "Write ${word}.txt, nothing else."}}]
      - do: [{write_file: {path: "${word}.txt", content: "${word}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
`

// TestOtherTerminals looks at a running team and steers it from other processes.
func TestOtherTerminals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(waiting)
	// A task in somebody's hand outside of the team keeps the run open.
	w.muster(0, "task", "add", "outside")
	w.muster(0, "task", "claim", "1", "--as", "dora")
	run := w.start("run", "--team", "wide", "--model", model, "wait for work")
	status := func(id muster.TaskID) muster.TaskStatus {
		for _, task := range w.tasks() {
			if task.ID == id {
				return task.Status
			}
		}
		return ""
	}
	lives := func(name string, s muster.MemberStatus) func() bool {
		return func() bool {
			for _, m := range w.config().Members {
				if m.Name == name {
					return m.Status == string(s)
				}
			}
			return false
		}
	}
	w.awaits("alice is idle", lives("alice", muster.Idle))

	// A second run is refused, and changes nothing.
	beside := w.muster(1, "run", "--model", model, "another goal")
	w.has("the second run", beside.stderr, "a lead is at work on this repository in another process", fmt.Sprint(run.cmd.Process.Pid), "muster mail send lead")
	w.muster(1, "resume", "--model", model)
	w.has("archive", w.muster(1, "archive", "--yes").stderr, "alive")

	// A task wakes whom it is for.
	w.muster(0, "task", "add", "quick", "-d", "Write quick.")
	w.awaits("quick has landed", func() bool { return status(2) == muster.Completed })
	if got := w.git("show", "muster/wide:quick.txt"); got != "quick" {
		t.Errorf("quick.txt is %q", got)
	}

	// Mail wakes the lead, which makes a task that needs a plan.
	w.muster(0, "mail", "send", "lead", "please add risky")
	type request struct {
		ID     muster.RequestID     `json:"request_id"`
		Kind   muster.RequestKind   `json:"kind"`
		Status muster.RequestStatus `json:"status"`
		From   muster.Name          `json:"from"`
		TaskID muster.TaskID        `json:"task_id"`
		Plan   string               `json:"plan"`
	}
	var asked request
	w.awaits("a plan waits", func() bool {
		var all []request
		require.NoError(t, json.Unmarshal([]byte(w.muster(0, "requests", "--json").stdout), &all))
		for _, r := range all {
			if r.Kind == muster.AskPlan && r.Status == muster.RequestPending {
				asked = r
			}
		}
		return asked.ID != ""
	})
	if asked.From != "alice" || asked.TaskID != 3 || asked.Plan != "Write risky.txt, nothing else." {
		t.Errorf("the request is %+v", asked)
	}
	glance := w.muster(0, "status").stdout
	w.has("status", glance, "team wide", "goal: wait for work", "NEEDS YOU", string(asked.ID)+"  plan of alice for 3", "muster approve "+string(asked.ID), "1 landed")
	if s := status(3); s != muster.InProgress {
		t.Errorf("task 3 is %s while its plan waits", s)
	}
	w.has("approve", w.muster(0, "approve", string(asked.ID)).stdout, "plan for 3 of alice is approved")
	w.has("approve again", w.muster(1, "reject", string(asked.ID), "too late").stderr, "was approved before")
	w.awaits("risky has landed", func() bool { return status(3) == muster.Completed })

	// What is left is what the outsider has; with it the run ends.
	if running := w.muster(0, "log").stdout; !strings.Contains(running, "risky") || !strings.Contains(running, "please add risky") {
		t.Errorf("the log lacks the task or the mail:\n%s", running)
	}
	w.muster(0, "task", "complete", "1")
	out := run.ends(0)
	w.landedOnce("muster/wide", "2", "3")
	w.untouched()
	w.has("stdout", out.stdout, "2 of 3 tasks landed on muster/wide, 1 done without a change")
	decided := slices.DeleteFunc(w.events(), func(e muster.Event) bool { return e.Kind != "request.decided" || e.Text("by") != "user" })
	if len(decided) != 1 {
		t.Errorf("%d decisions of the user in the events, want 1", len(decided))
	}
	if t.Failed() {
		t.Logf("%s\n%s", out, w.told())
	}
}

// A process that joins takes tasks from the board of the team at work, and leaves when the run is over.
func TestJoin(t *testing.T) {
	w := newWorld(t)
	model := w.words(`
speakers:
  lead:
    - do: [{task_create: {subject: first}}, {task_create: {subject: second}}, {spawn_teammate: {name: bob, role: reader, prompt: You read.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  bob:
    - do: [{bash: {command: "while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done"}}]
    - say: I have read.
scenes:
  - cue: '(?m)^Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{bash: {command: "while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done; echo ${what} > ${what}"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "did ${what}"}}]
`)
	run := w.start("run", "two files", "--model", model)
	w.awaitsEvent("the lead waits", func(e muster.Event) bool { return e.Kind == journal.ToolStarted && e.Text("tool") == "wait" })
	join := w.start("join", "--model", model, "--role", "coder")
	w.awaitsEvent("the worker takes a task", func(e muster.Event) bool { return e.Kind == journal.TaskClaimed && e.Member == "worker-1" })
	w.write(filepath.Join(w.base, "go"), "")
	r := join.ends(0)
	w.has("what the joined process says", r.stdout, "1 worker left: the run is over")
	w.has("the lines of it", r.stderr, "worker-1")
	run.ends(0)
	if w.muster(1, "join").stderr == "" {
		t.Error("nothing is there to join, and nothing is said")
	}
}
