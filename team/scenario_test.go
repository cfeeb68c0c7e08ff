package team_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// Two teammates are spawned, one mails the other, a broadcast reaches both, and the lead's inbox shows what came.
func TestMailBetweenTeammates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(`
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
`, 0, nil)
	sent := func(from, to muster.Name, typ muster.MessageType) int {
		return w.index(string(from)+" writes to "+string(to), func(e muster.Event) bool {
			return e.Kind == journal.MailSent && e.Member == from && e.Text("to") == string(to) && e.Text("type") == string(typ)
		})
	}
	w.before("alice greets bob, then bob writes to the lead", sent("alice", "bob", muster.MailMessage), sent("bob", "lead", muster.MailMessage))
	sent("lead", "alice", muster.MailBroadcast)
	sent("lead", "bob", muster.MailBroadcast)
	for name, want := range map[string]string{"alice": "phase 1 complete", "bob": "hello bob", "lead": "alice greeted me"} {
		if n := strings.Count(w.said(name), want); n == 0 {
			t.Errorf("%s was never given %q", name, want)
		}
	}
	if n := strings.Count(w.said("bob"), `phase 1 complete`); n != 1 {
		t.Errorf("bob was given the broadcast %d times", n)
	}
	if !strings.Contains(w.said("lead"), "Delivered last") {
		t.Error("the lead's read_inbox did not show what was delivered")
	}
	for _, box := range []string{"alice", "bob"} {
		if left := w.lines(".team/inbox/" + box + ".jsonl"); left != nil {
			t.Errorf("the inbox of %s still has %q", box, left)
		}
	}
}

// Three tasks and two teammates that claim by themselves, each in a lane of its own.
const three = `
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
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{write_file: {path: "${what}.txt", content: "${what}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what} is written"}}]
`

func TestTeammatesClaimByThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write("dirty", "not part of any lane\n")
	sum := w.run(three, 0, func(c *team.Config) { c.Check = "test -f README" })
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
		if on := w.git("branch", "--contains", task.Landed.Commit, "--format=%(refname:short)"); !strings.Contains(on, "muster/demo") {
			t.Errorf("the commit of task %d is on %q", task.ID, on)
		}
	}
	if len(owners) != 2 {
		t.Errorf("only %v worked", owners)
	}
	for _, first := range []muster.TaskID{1, 2} {
		w.before("a blocker lands before its dependant is claimed", w.index("landed", completed(first)), w.index("claimed", claimed(3)))
	}
	w.before("both first tasks are at work at once", w.index("claimed", claimed(2)), w.index("landed", completed(1)))
	if files := w.git("ls-tree", "--name-only", "muster/demo"); files != "README\none.txt\nthree.txt\ntwo.txt" {
		t.Errorf("the target has %q", files)
	}
	if got := w.git("status", "--porcelain"); got != "?? dirty" {
		t.Errorf("the user's checkout shows %q", got)
	}
	if got := w.git("log", "--format=%s", "main"); got != "start" {
		t.Errorf("the user's branch has %q", got)
	}
	body := w.git("log", "-1", "--format=%B", "muster/demo")
	for _, trailer := range []string{"Muster-Task: 3", "Muster-Member:", "Muster-Check:", "three is written"} {
		if !strings.Contains(body, trailer) {
			t.Errorf("the commit says %q, without %q", body, trailer)
		}
	}
	if n := len(w.lines(".tasks/claim_events.jsonl")); n < 6 {
		t.Errorf("claim_events.jsonl has %d lines", n)
	}
	var index struct{ Worktrees map[string]any }
	data, _ := os.ReadFile(filepath.Join(w.root, ".worktrees/index.json"))
	if err := json.Unmarshal(data, &index); err != nil || len(index.Worktrees) != 0 {
		t.Errorf("lanes left in the index: %v %v", index.Worktrees, err)
	}
	w.predicates()
}

// predicates holds our task files against what other programs test.
func (w *world) predicates() {
	w.t.Helper()
	names, _ := filepath.Glob(filepath.Join(w.root, ".tasks", "task_*.json"))
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			w.t.Fatal(err)
		}
		var task map[string]any
		if err := json.Unmarshal(data, &task); err != nil {
			w.t.Fatal(err)
		}
		for _, list := range []string{"blockedBy", "dependsOn"} {
			if _, ok := task[list].([]any); !ok {
				w.t.Errorf("%s: %s is %v, readers expect a list", filepath.Base(name), list, task[list])
			}
		}
		if _, ok := task["owner"].(string); !ok {
			w.t.Errorf("%s: owner is %v", filepath.Base(name), task["owner"])
		}
	}
}

// A coder is spawned without a task and finds its work by role; the task for a tester waits for one.
func TestWorkIsFoundByRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(`
speakers:
  lead:
    - do:
        - spawn_teammate: {name: carl, role: coder, prompt: Find work on the board.}
        - spawn_teammate: {name: tess, role: tester, prompt: Find work on the board.}
        - task_create: {subject: probe, claim_role: tester}
        - task_create: {subject: build, claim_role: coder}
    - do: [{wait: {}}]
    - say: Done.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{write_file: {path: "${what}.txt", content: "${me}\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "${what}"}}]
`, 0, nil)
	if a, b := w.task(1).Owner, w.task(2).Owner; a != "tess" || b != "carl" {
		t.Errorf("probe is %s's and build is %s's", a, b)
	}
}

// The chain of four tasks over three roles: each unlocks the next, nobody is told to start.
func TestChainOfRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(`
speakers:
  lead:
    - do:
        - task_create: {subject: analyze, claim_role: analyst}
        - task_create: {subject: design, claim_role: backend, blocked_by: [analyze]}
        - task_create: {subject: resolvers, claim_role: backend, blocked_by: [design]}
        - task_create: {subject: queries, claim_role: frontend, blocked_by: [resolvers]}
        - spawn_teammate: {name: ana, role: analyst, prompt: Analyze.}
        - spawn_teammate: {name: ben, role: backend, prompt: The backend is yours.}
        - spawn_teammate: {name: fay, role: frontend, prompt: The frontend is yours.}
    - do: [{wait: {}}]
    - say: Migrated.
scenes:
  - cue: 'Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - do: [{bash: {command: "cat *.txt; echo ${what} >> ${what}.txt"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "did ${what}"}}]
`, 0, nil)
	owners := []muster.Name{"ana", "ben", "ben", "fay"}
	for i, owner := range owners {
		id := muster.TaskID(i + 1)
		if got := w.task(id).Owner; got != owner {
			t.Errorf("task %d is %s's, want %s", id, got, owner)
		}
		if i > 0 {
			w.before("the chain", w.index("landed", completed(id-1)), w.index("claimed", claimed(id)))
		}
	}
	if !strings.Contains(w.said("ben"), "did analyze") {
		t.Error("ben was not told what the analysis brought")
	}
	for _, line := range []string{"lead", "ana", "ben", "fay"} {
		if line != "lead" && strings.Count(w.said(line), `\u003cauto-claimed\u003e`)+strings.Count(w.said(line), "<auto-claimed>") == 0 {
			t.Errorf("%s was never given a task", line)
		}
	}
}

// Two lanes by hand, one removed with its task completed; a restart finds the other.
func TestLanesByHandAndRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(`
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
`, 3, func(c *team.Config) { c.Teammates = 0 })
	if a, l := w.task(1), w.task(2); a.Status != muster.Completed || a.Landed == nil || l.Status != muster.Pending || l.Worktree != "ui-login" {
		t.Errorf("auth is %s (%v), login is %s in %q", a.Status, a.Landed, l.Status, l.Worktree)
	}
	if files := w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nauth.txt" {
		t.Errorf("the target has %q", files)
	}
	var order []string
	for _, line := range w.lines(".worktrees/events.jsonl") {
		var e struct {
			Event    string
			Worktree struct{ Name string }
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		order = append(order, e.Event+" "+e.Worktree.Name)
	}
	got := strings.Join(order, ", ")
	for _, want := range []string{"worktree.create.before auth-refactor", "worktree.create.after ui-login", "worktree.remove.after auth-refactor", "worktree.keep ui-login"} {
		if !strings.Contains(got, want) {
			t.Errorf("lane events are %s, without %s", got, want)
		}
	}

	// The restart: another process, another script; the lane is inherited with what lies in it.
	resumed, _ := w.open(`
speakers:
  lead:
    - say: ignored
scenes:
  - cue: One is left|end again
    turns:
      - do: [{claim_task: {task_id: 2}}]
      - do: [{complete_task: {task_id: 2, summary: login}}]
      - say: Now all is done.
`, func(c *team.Config) { c.Teammates = 0 })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	sum, err := resumed.Resume(ctx)
	if err != nil || sum.Code != 0 {
		t.Fatalf("resumed: code %d, %v\n%s", sum.Code, err, w.tail())
	}
	if files := w.git("ls-tree", "--name-only", "muster/demo"); files != "README\nauth.txt\nlogin.txt" {
		t.Errorf("the target has %q after the restart", files)
	}
}
