package team_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/journal"
	"muster/team"
)

// Two teammates are spawned, one mails the other, a broadcast reaches both, and the lead's inbox shows what came.
func TestMailBetweenTeammates(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.start(`
speakers:
  lead:
    - do:
        - spawn_teammate: {name: bob, role: tester, prompt: Wait for mail.}
        - spawn_teammate: {name: alice, role: coder, prompt: Greet bob.}
        - broadcast: {content: "status update: phase 1 complete"}
    - do: [{wait: {}}]
    - do: [{read_inbox: {}}]
    - say: Everybody was greeted.
  alice:
    - do: [{send_message: {to: bob, content: hello bob}}]
    - say: Done.
  bob:
    - say: Waiting.
scenes:
  - cue: hello bob
    who: [bob]
    turns:
      - do: [{send_message: {to: lead, content: alice greeted me}}]
      - say: Answered.
`, nil).ends(0, time.Hour)
		sent := func(from, to muster.Name, kind muster.MessageType) func(muster.Event) bool {
			return func(e muster.Event) bool {
				return e.Kind == journal.MailSent && e.Member == from && e.Text("to") == string(to) && e.Text("type") == string(kind)
			}
		}
		h.ordered("alice greets bob, then bob writes to the lead", sent("alice", "bob", muster.MailMessage), sent("bob", "lead", muster.MailMessage))
		for _, to := range []muster.Name{"alice", "bob"} {
			if h.count(sent("lead", to, muster.MailBroadcast)) != 1 || len(h.waiting(to)) > 0 {
				t.Errorf("the broadcast to %s; left are %v", to, h.waiting(to))
			}
		}
		h.heard("bob", "phase 1 complete", 1)
		for name, want := range map[muster.Name]string{"alice": "phase 1 complete", "bob": "hello bob", "lead": "alice greeted me"} {
			if !strings.Contains(h.said(name), want) {
				t.Errorf("%s was never given %q", name, want)
			}
		}
		h.heard("lead", "Delivered last", 1)
	})
}

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
