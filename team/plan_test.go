package team_test

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
)

// pendingPlan waits for a plan to be asked for and returns its request.
func (h *house) pendingPlan() muster.RequestID {
	h.Helper()
	e := h.until("a plan is submitted", func(e muster.Event) bool {
		return e.Kind == journal.RequestCreated && e.Text("kind") == string(muster.AskPlan)
	})
	return muster.RequestID(e.Text("request_id"))
}

// Tools that change something are refused until a plan is approved; a rejected plan is changed; the lead decides.
func TestPlanIsDecidedByTheLead(t *testing.T) {
	t.Parallel()
	for _, task := range []string{"{subject: move, require_plan: true}", "{subject: move}"} {
		member := "{name: alice, role: coder, prompt: Work, require_plan: true}"
		if strings.Contains(task, "require_plan") {
			member = "{name: alice, role: coder, prompt: Work}"
		}
		bubble(t, func(h *house) {
			h.start(`
speakers:
  lead:
    - do: [{task_create: `+task+`}, {spawn_teammate: `+member+`}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice/sub: [{say: I looked.}]
scenes:
  - cue: 'Task #1: move'
    who: [alice]
    turns:
      - do:
          - bash: {command: "touch early"}
          - write_file: {path: early, content: x}
          - edit_file: {path: README, old_text: a, new_text: b}
          - subagent: {prompt: look, kind: work}
          - complete_task: {task_id: 1, summary: early}
          - read_file: {path: README}
          - subagent: {prompt: look, kind: explore}
          - todo: {items: [{id: "1", text: plan, status: pending}]}
      - do: [{submit_plan: {plan: Delete everything.}}]
      - wait: 1s
        do: [{bash: {command: "touch early"}}, {submit_plan: {plan: Move one file.}}]
      - do: [{write_file: {path: moved, content: x}}]
      - do: [{complete_task: {task_id: 1, summary: moved}}]
  - cue: 'Delete everything'
    who: [lead]
    turns: [{do: [{review_plan: {request_id: "${request:alice}", approve: false, feedback: not everything}}]}]
  - cue: 'Move one file'
    who: [lead]
    turns: [{do: [{review_plan: {request_id: "${request:alice}", approve: true}}]}]
`, nil).ends(0, time.Hour)
			h.heard("alice", "needs an approved plan before", 7) // six refusals, and the task itself
			h.heard("alice", "I looked.", 1)
			h.heard("alice", "not everything", 1)
			h.heard("alice", "plan_approval_response", 0)
			if files := h.onTarget(); files != "moved" {
				t.Errorf("the target has %q", files)
			}
			if m := h.member("alice"); m.Doing != "" {
				t.Errorf("alice is shown as %q", m.Doing)
			}
		})
	}
}
