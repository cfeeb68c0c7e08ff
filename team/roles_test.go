package team_test

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/llm/script"
	"muster/team"
	"muster/tool"
)

// hostileReviewer is a run in which a reviewer tries to change something with every tool that there is.
const hostileReviewer = `
speakers:
  lead:
    - do:
        - spawn_teammate: {name: rev, role: Reviewer, prompt: Review.}
        - task_create: {subject: review the parser, claim_role: reviewer}
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #\d+: review the parser'
    turns:
      - do: [{bash: {command: touch "$OUT/bash"}}, {bash: {command: touch a, background: true}}]
      - do: [{write_file: {path: b, content: x}}, {edit_file: {path: README, old_text: a test, new_text: mine}}]
      - do: [{apply_patch: {patch: "*** Begin Patch\n*** Add File: c\n+x\n*** End Patch\n"}}]
      - do: [{worktree_create: {name: mine}}, {worktree_run: {name: rev, command: touch d}}, {worktree_remove: {name: rev, force: true}}]
      - do: [{subagent: {kind: work, prompt: write the file e}}, {subagent: {kind: explore, prompt: write the file f}}]
      - do: [{my_writer: {path: g}}, {stop_background: {id: "1"}}, {check_background: {}}, {Bash: {command: touch h}}, {Write: {file_path: i, content: x}}]
      - do: [{spawn_teammate: {name: helper, role: coder, prompt: Write j.}}, {task_update: {task_id: 1, status: deleted}}]
      - do: [{read_file: {path: README}}, {task_list: {}}, {send_message: {to: lead, content: I try everything.}}]
      - do: [{complete_task: {task_id: "${task}", summary: "README:1 says nothing of the parser."}}]
      - say: Done.
  - cue: write the file e
    turns: [{do: [{write_file: {path: e, content: x}}]}, {say: Written.}]
  - cue: write the file f
    turns: [{do: [{write_file: {path: f, content: x}}, {bash: {command: touch f}}]}, {say: Not written.}]
`

// TestReaderChangesNothing: a member whose role has no tool for writing is offered none and changes nothing, whatever
// its model calls, and completes its task by its report.
func TestReaderChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s, err := script.Parse([]byte(hostileReviewer))
	if err != nil {
		t.Fatal(err)
	}
	wrote, q := false, &firstAsked{Model: s.Model(), first: map[string]llm.Request{}}
	w.run("speakers: {lead: [say: x]}", 0, func(c *team.Config) {
		type in struct {
			Path string `json:"path"`
		}
		c.ModelName = "openai/gpt-5.5" // such a model is offered apply_patch
		c.Model = func(string) (llm.Model, error) { return q, nil }
		c.Tools = []llm.Tool{tool.Func("my_writer", "Write.", func(context.Context, in) (string, error) { wrote = true; return "ok", nil }),
			tool.Func("my_reader", "Read.", func(context.Context, in) (string, error) { return "ok", nil }, tool.ReadOnly())}
	})
	var offered []string
	for _, spec := range q.first["rev@demo"].Tools {
		offered = append(offered, spec.Name)
		if spec.Name == "subagent" && strings.Contains(string(spec.Schema), `"work"`) {
			t.Errorf("a reviewer may start subagents that write: %s", spec.Schema)
		}
	}
	want := []string{"read_file", "glob", "grep", "todo", "compact", "subagent", "task_create", "task_list", "task_get", "claim_task",
		"complete_task", "release_task", "send_message", "read_inbox", "publish_check", "submit_plan", "respond_shutdown", "idle", "save_memory"}
	if !slices.Equal(offered, want) {
		t.Errorf("the reviewer has the tools %q, want %q", offered, want)
	}
	system := strings.Join(q.first["rev@demo"].System, "\n")
	for _, want := range []string{"Your role is Reviewer.", "<role>\nRead the change", "your report"} {
		if !strings.Contains(system, want) {
			t.Errorf("the reviewer's system prompt has no %q: %s", want, system)
		}
	}
	if text := q.first["lead@demo"].Messages[0].Text(); !strings.Contains(text, "- reviewer (reads only): finds faults") {
		t.Errorf("the lead is not told of the roles: %s", text)
	}
	succeeded := map[string]bool{}
	for _, e := range w.events() {
		if e.Kind == journal.ToolEnded && e.Member == "rev" && e.Text("error") == "" {
			succeeded[e.Text("tool")] = true
		}
	}
	if got := slices.Sorted(maps.Keys(succeeded)); !slices.Equal(got,
		[]string{"complete_task", "read_file", "send_message", "subagent", "task_list"}) {
		t.Errorf("these tools did something: %q", got)
	}
	if wrote {
		t.Error("a tool of the embedder that writes ran")
	}
	if now, was := w.git("rev-parse", "muster/demo^{tree}"), w.git("rev-parse", "main^{tree}"); now != was {
		t.Errorf("something has landed: %s", w.git("diff", "--stat", "main", "muster/demo"))
	}
	if left := w.git("status", "--porcelain"); left != "" {
		t.Errorf("the checkout has %q", left)
	}
	if text := w.said("lead"); !strings.Contains(text, "README:1 says nothing of the parser.") {
		t.Errorf("the lead was not given the report: %s", text)
	}
}

// TestReaderLeavesOtherTasks: a reviewer is not given a task that asks for no role, and the lead is told that nobody
// takes it.
func TestReaderLeavesOtherTasks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sum := w.run(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: rev, role: reviewer, prompt: Review.}}, {task_create: {subject: write a file}}]
    - do: [{wait: {}}]
      until: there is no teammate to take it
    - do: [{spawn_teammate: {name: cody, role: coder, prompt: Write.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #\d+: write a file'
    turns:
      - do: [{write_file: {path: a, content: x}}]
      - do: [{complete_task: {task_id: "${task}", summary: Written.}}]
      - say: Done.
`, 0, nil)
	if len(sum.Tasks) != 1 || sum.Tasks[0].CompletedBy != "cody" {
		t.Errorf("the task was done by %+v", sum.Tasks)
	}
}

// TestRoleOfAFileAfterARestart: a process reads the files of roles once, so that the system prompt of a member stays the
// same while it lives there. A process that goes on with it reads them again, and a file that did not change gives the
// same bytes.
func TestRoleOfAFileAfterARestart(t *testing.T) {
	t.Parallel()
	for _, changed := range []bool{false, true} {
		w := newWorld(t)
		w.write(".claude/agents/writer.md", "---\ntools: Read, Write\n---\nWrite in verse.\n")
		const words = `
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: writer, prompt: Write.}}, {task_create: {subject: a poem}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #\d+: a poem'
    turns:
      - do: [{write_file: {path: poem, content: x}}]
      - do: [{read_file: {path: poem}}]
      - do: [{complete_task: {task_id: "${task}", summary: Written.}}]
      - say: Done.
`
		s, err := script.Parse([]byte(words))
		if err != nil {
			t.Fatal(err)
		}
		interrupted := context.CancelCauseFunc(nil)
		turns := 0
		q := &everyAsked{Model: s.Model(), onReply: func(r llm.Request) {
			if strings.HasPrefix(r.CacheKey, "amy@") {
				if turns++; turns == 1 { // what the file says meanwhile is for those who start later
					w.write(".claude/agents/writer.md", map[bool]string{false: "---\ntools: Read, Write\n---\nWrite in verse.\n",
						true: "---\ntools: Read, Write, Grep\n---\nWrite in prose.\n"}[changed])
				}
				if turns == 2 && interrupted != nil {
					interrupted(muster.CauseUser)
				}
			}
		}}
		open := func() *team.Team {
			tm, _ := w.open("speakers: {lead: [say: x]}", func(c *team.Config) {
				c.Model = func(string) (llm.Model, error) { return q, nil }
			})
			return tm
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		interrupted = cancel
		first := open()
		if _, err := first.Run(ctx, "the goal", team.Start{}); err == nil {
			t.Fatal("the run was not interrupted")
		}
		before := q.prefixes("amy@demo")
		interrupted = nil
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		again, stop := context.WithTimeout(t.Context(), time.Minute)
		if sum, err := open().Resume(again); err != nil || sum.Code != 0 {
			t.Fatalf("the run ended with %d, %v\n%s", sum.Code, err, w.tail())
		}
		stop()
		after := q.prefixes("amy@demo")[len(before):]
		if len(before) == 0 || len(after) == 0 {
			t.Fatalf("%d and %d requests", len(before), len(after))
		}
		for i, p := range append(before, after...) {
			isNew := changed && i >= len(before)
			if (p == before[0]) == isNew || !strings.Contains(p, map[bool]string{false: "in verse", true: "in prose"}[isNew]) {
				t.Errorf("changed: %v: request %d begins with\n%s", changed, i, p)
			}
		}
	}
}

// everyAsked keeps the system prompt and the tools of each request.
type everyAsked struct {
	llm.Model
	onReply func(llm.Request)

	mu  sync.Mutex
	all []llm.Request
}

func (q *everyAsked) Reply(ctx context.Context, r llm.Request, emit func(llm.Delta)) (llm.Reply, error) {
	q.mu.Lock()
	q.all = append(q.all, r)
	q.onReply(r)
	q.mu.Unlock()
	return q.Model.Reply(ctx, r, emit)
}

// prefixes returns what the requests of a member began with.
func (q *everyAsked) prefixes(key string) (all []string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.all {
		if r.CacheKey == key {
			text := strings.Join(r.System, "\n")
			for _, s := range r.Tools {
				text += "\n" + s.Name + s.Description + string(s.Schema)
			}
			all = append(all, text)
		}
	}
	return all
}
