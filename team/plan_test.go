package team_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/journal"
)

// pendingPlan waits for the n-th plan to be asked for and returns its request.
func (h *house) pendingPlan(n int) muster.RequestID {
	h.Helper()
	seen := 0
	e := h.until("a plan is submitted", func(e muster.Event) bool {
		if e.Kind == journal.RequestCreated && e.Text("kind") == string(muster.AskPlan) {
			seen++
		}
		return seen == n
	})
	return muster.RequestID(e.Text("request_id"))
}

const planned = `
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
`

// Tools that change something are refused until a plan is approved; a rejected plan is changed; the lead decides.
func TestPlanIsDecidedByTheLead(t *testing.T) {
	t.Parallel()
	for _, how := range []string{`task_create: {subject: move, require_plan: true}`, `task_create: {subject: move}`} {
		member := ""
		if !strings.Contains(how, "require_plan") {
			member = ", require_plan: true"
		}
		bubble(t, func(h *house) {
			h.start(`
speakers:
  lead:
    - do: [{`+how+`}, {spawn_teammate: {name: alice, role: coder, prompt: Work`+member+`}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice/sub: [{say: I looked.}]
`+planned[1:]+`  - cue: 'Delete everything'
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
			if files := h.w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nmoved" {
				t.Errorf("the target has %q", files)
			}
			if m := h.member("alice"); m.Doing != "" {
				t.Errorf("alice is shown as %q", m.Doing)
			}
		})
	}
}

// The user decides in the lead's place while it sleeps; a lead that leaves the plan is reminded, and not burnt.
func TestPlanIsDecidedByTheUser(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: move, require_plan: true}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
  alice/sub: [{say: I looked.}]
`+planned[1:], nil)
		first := h.pendingPlan(1)
		synctest.Wait()
		if turns := h.turns("lead"); turns > 5 {
			t.Errorf("a plan that waits cost the lead %d turns", turns)
		}
		if m := h.member("alice"); m.Status != muster.Working || !strings.Contains(m.Doing, string(first)) {
			t.Errorf("alice is %s: %q", m.Status, m.Doing)
		}
		h.heard("lead", "wait again to leave it to the user", 1)
		asked := h.turns("alice")
		time.Sleep(time.Hour)
		synctest.Wait()
		if h.turns("alice") != asked || h.turns("lead") > 15 {
			t.Errorf("an hour of waiting cost alice %d and the lead %d turns", h.turns("alice")-asked, h.turns("lead"))
		}
		if _, _, err := h.requests.Decide(h.Context(), first, "alice", true, ""); err == nil {
			t.Error("alice approved her own plan")
		}
		if _, now, err := h.requests.Decide(h.Context(), first, muster.User, false, "not everything"); err != nil || !now {
			t.Fatalf("%v, %v", now, err)
		}
		second := h.pendingPlan(2)
		if second == first {
			t.Fatal("the changed plan is the same request")
		}
		if _, _, err := h.requests.Decide(h.Context(), second, muster.User, true, "go"); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Hour)
		h.heard("alice", "Approved by user", 1)
	})
}

// A task that is taken away while its owner is parked on a plan: the plan is void, and the owner goes on with other work.
func TestTaskTakenWhileParkedOnAPlan(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: move, require_plan: true, claim_role: coder}
        - task_create: {subject: other, claim_role: coder}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: move'
    who: [alice]
    turns: [{do: [{submit_plan: {plan: Move.}}]}]
  - cue: 'Task #2: other'
    who: [alice]
    turns: [{do: [{complete_task: {task_id: 2, summary: other}}]}]
`, nil)
		id := h.pendingPlan(1)
		synctest.Wait()
		if err := h.board.Delete(h.Context(), 1, true); err != nil {
			t.Fatal(err)
		}
		r.ends(0, time.Hour)
		h.heard("alice", "task 1 was deleted", 1)
		if q, _ := h.requests.Get(h.Context(), id); q.Status != muster.RequestCancelled {
			t.Errorf("the plan is %s", q.Status)
		}
	})
}
