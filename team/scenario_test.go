package team_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/gittest"
	"muster/journal"
	"muster/team"
)

// Three tasks and two teammates that claim by themselves, each in a lane of its own, with nothing simulated: what is on
// the target, in the user's checkout, and in the files that other programs read.
func TestTeammatesClaimByThemselves(t *testing.T) {
	t.Parallel()
	h := onFiles(t)
	gittest.Write(t, h.root, map[string]string{"dirty": "not part of any lane\n"})
	sum := h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: one}
        - task_create: {subject: two}
        - task_create: {subject: three, blocked_by: [one, two]}
        - spawn_teammate: {name: alice, role: coder, prompt: Work.}
        - spawn_teammate: {name: bob, role: coder, prompt: Work.}
    - do: [{wait: {}}]
    - say: All three are done.
`+writes, func(c *team.Config) { c.Check = "test -f README" }).ends(0, time.Minute)
	if len(sum.Tasks) != 3 || !sum.Verified {
		t.Fatalf("%d tasks, verified %v", len(sum.Tasks), sum.Verified)
	}
	owners := map[muster.Name]bool{}
	for _, task := range sum.Tasks {
		if task.Status != muster.Completed || task.Landed == nil || task.ClaimSource != muster.SourceAuto {
			t.Errorf("task %d is %s, landed %v, claimed by %q", task.ID, task.Status, task.Landed, task.ClaimSource)
			continue
		}
		owners[task.Owner] = true
		h.git("merge-base", "--is-ancestor", task.Landed.Commit, "muster/demo")
	}
	if len(owners) != 2 {
		t.Errorf("only %v worked", owners)
	}
	for _, first := range []muster.TaskID{1, 2} {
		h.ordered("a blocker lands before its dependant is claimed", completed(first), claimed(3))
	}
	h.ordered("both first tasks are at work at once", claimed(2), completed(1))
	if files := h.onTarget(); files != "one.txt three.txt two.txt" {
		t.Errorf("the target has %q", files)
	}
	if got := h.git("status", "--porcelain"); got != "?? dirty" {
		t.Errorf("the user's checkout shows %q", got)
	}
	if got := h.git("log", "--format=%s", "main"); got != "start" {
		t.Errorf("the user's branch has %q", got)
	}
	body := h.git("log", "-1", "--format=%B", "muster/demo")
	for _, trailer := range []string{"Muster-Task: 3", "Muster-Member:", "Muster-Check:"} {
		if !strings.Contains(body, trailer) {
			t.Errorf("the commit says %q, without %q", body, trailer)
		}
	}
	if n := strings.Count(gittest.Read(t, h.root, ".tasks/claim_events.jsonl"), "\n"); n < 6 {
		t.Errorf("claim_events.jsonl has %d lines", n)
	}
	var index struct{ Worktrees map[string]any }
	if err := json.Unmarshal([]byte(gittest.Read(t, h.root, ".worktrees/index.json")), &index); err != nil || len(index.Worktrees) != 0 {
		t.Errorf("lanes left in the index: %v %v", index.Worktrees, err)
	}
	for _, id := range []string{"1", "2", "3"} { // what other programs test
		var task struct {
			BlockedBy, DependsOn []any
			Owner                *string
		}
		text := gittest.Read(t, h.root, ".tasks/task_"+id+".json")
		if err := json.Unmarshal([]byte(text), &task); err != nil || task.BlockedBy == nil || task.DependsOn == nil || task.Owner == nil {
			t.Errorf("%v: %s", err, text)
		}
	}
}

// The chain of four tasks over three roles: each unlocks the next, nobody is told to start.
func TestChainOfRoles(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: analyze, claim_role: analyst}
        - task_create: {subject: design, claim_role: backend, blocked_by: [analyze]}
        - task_create: {subject: resolvers, claim_role: Backend, blocked_by: [design]}
        - task_create: {subject: queries, claim_role: frontend, blocked_by: [resolvers]}
        - spawn_teammate: {name: ana, role: analyst, prompt: Analyze.}
        - spawn_teammate: {name: ben, role: backend, prompt: The backend is yours.}
        - spawn_teammate: {name: fay, role: frontend, prompt: The frontend is yours.}
    - do: [{wait: {}}]
    - say: Migrated.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - wait: 4m
        do: [{write_file: {path: "${what}.txt", content: x}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "did ${what}"}}]
`, nil).ends(0, time.Hour)
		for i, owner := range []muster.Name{"ana", "ben", "ben", "fay"} {
			id := muster.TaskID(i + 1)
			if got := h.task(id).Owner; got != owner {
				t.Errorf("task %d is %s's, want %s", id, got, owner)
			}
			if i > 0 {
				h.ordered("the chain", completed(id-1), claimed(id))
			}
			if !strings.Contains(h.said(owner), "<auto-claimed>") {
				t.Errorf("%s was never given a task", owner)
			}
		}
		if !strings.Contains(h.said("ben"), "did analyze") {
			t.Error("ben was not told what the analysis brought")
		}
		// While tasks at work can still unblock something for it, however far away, an idle member is not timed out.
		if n := h.count(func(e muster.Event) bool {
			return is(journal.MemberShutdown, "fay")(e) && e.Text("reason") == "timeout"
		}); n != 0 {
			t.Errorf("fay was timed out\n%s", h.tail())
		}
	})
}

// Two lanes by hand, one removed with its task completed; a restart finds the other with what lies in it.
func TestLanesByHandAndRestart(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		alone := func(c *team.Config) { c.Teammates = 0 }
		h.start(`
speakers:
  lead:
    - do:
        - task_create: {subject: auth}
        - task_create: {subject: login}
        - worktree_create: {name: auth-refactor, task_id: 1}
        - worktree_create: {name: ui-login, task_id: 2}
        - worktree_run: {name: auth-refactor, command: "echo auth > auth.txt"}
        - worktree_run: {name: ui-login, command: "echo login > login.txt"}
        - worktree_list: {}
        - worktree_remove: {name: auth-refactor, complete_task: true}
        - worktree_keep: {name: ui-login}
        - worktree_events: {}
    - say: One is left.
    - say: One is left.
`, alone).ends(3, time.Hour)
		if a, l := h.task(1), h.task(2); a.Status != muster.Completed || a.Landed == nil || l.Status != muster.Pending || l.Worktree != "ui-login" {
			t.Errorf("auth is %s (%v), login is %s in %q", a.Status, a.Landed, l.Status, l.Worktree)
		}
		if files := h.onTarget(); files != "auth.txt" {
			t.Errorf("the target has %q", files)
		}
		h.resume(`
speakers:
  lead:
    - say: ignored
scenes:
  - cue: One is left|end again
    turns:
      - do: [{claim_task: {task_id: 2}}]
      - do: [{complete_task: {task_id: 2, summary: login}}]
      - say: Now all is done.
`, alone).ends(0, time.Hour)
		if files := h.onTarget(); files != "auth.txt login.txt" {
			t.Errorf("the target has %q after the restart", files)
		}
	})
}

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

// twoLanded is a lead that lands two tasks.
const twoLanded = `
speakers:
  lead:
    - do: [{task_create: {subject: make a}}, {task_create: {subject: make b}}]
    - do: [{claim_task: {task_id: 1}}]
    - do: [{write_file: {path: a, content: "a\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Makes a.}}]
    - do: [{claim_task: {task_id: 2}}]
    - do: [{write_file: {path: b, content: "b\n"}}]
    - do: [{complete_task: {task_id: 2, summary: Makes b.}}]
    - say: Done.
`

// leftUndo lands the tasks, and puts another on the board as a killed process leaves it that was taking the first one back.
// It runs in a bubble of synctest.
func leftUndo(h *house) muster.Task {
	h.Helper()
	h.start(twoLanded, nil).ends(0, time.Hour)
	time.Sleep(time.Second)
	left, err := h.board.Create(h.Context(), board.Draft{Subject: "Undo #1: make a", CreatedBy: muster.User,
		Undoes: []muster.TaskID{1}, Description: "Take it back."})
	if err != nil || left.Status != muster.InProgress || left.Owner != muster.User || left.Fence != 1 {
		h.Fatalf("%+v, %v", left, err)
	}
	return left
}

// Undo goes on with what a killed process has left, in place of a second task.
func TestUndoGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		left := leftUndo(h)
		tm := h.open(nil, func(c *team.Config) { c.Model = nil }) // none is asked
		u, err := tm.Tasks().Undo(h.Context(), []muster.TaskID{1}, false)
		if err != nil || u.Task.ID != left.ID || u.Task.Landed == nil || u.Task.Status != muster.Completed {
			t.Fatalf("%+v, %v", u, err)
		}
		if files := h.onTarget(); files != "b" {
			t.Errorf("the target has %q", files)
		}
		if all, _, _ := tm.Tasks().List(h.Context()); len(all) != 3 {
			t.Errorf("the board has %d tasks", len(all))
		}
		// Once more there is nothing to do, and nothing is made.
		if _, err := tm.Tasks().Undo(h.Context(), []muster.TaskID{1}, false); err == nil {
			t.Error("it was taken back twice")
		}
		if lanes, err := tm.Lanes().List(h.Context()); err != nil || len(lanes) != 0 {
			t.Errorf("lanes are left: %v, %v", lanes, err)
		}
	})
}

// Nobody calls Undo again: the next team gives the task to a teammate.
func TestATeamTakesOverALeftUndo(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		left := leftUndo(h)
		h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: ann, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #\d+: Undo #1'
    turns:
      - do: [{bash: {command: rm a}}]
      - do: [{complete_task: {task_id: "${task}", summary: Takes a back.}}]
`, nil).ends(0, time.Hour)
		if got := h.task(left.ID); got.Status != muster.Completed || got.Owner != "ann" || got.Landed == nil {
			t.Errorf("%+v", got)
		}
		if files := h.onTarget(); files != "b" {
			t.Errorf("the target has %q", files)
		}
	})
}
