package team_test

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/gittest"
	"muster/journal"
	"muster/llm"
	"muster/team"
	"muster/tool"
)

func sayings(r llm.Request) string {
	text := strings.Join(r.System, "\n")
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			if answer, ok := p.(llm.Result); ok {
				text += "\n" + answer.Text()
			}
		}
		text += "\n" + m.Text()
	}
	return text
}

func (h *house) requestsOf(words string) *asked {
	h.Helper()
	q := &asked{Model: h.scripted(words)}
	h.run(h.open(q, func(c *team.Config) { c.Check = "test -e README" })).ends(0, time.Hour)
	return q
}

// firstRequests runs a lead with two teammates of one role, each of which does a task, and returns the first request of
// each member.
func firstRequests(h *house) map[string]llm.Request {
	h.Helper()
	q := h.requestsOf(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: coder, prompt: Take a task.}}, {spawn_teammate: {name: bob, role: coder, prompt: Take a task.}}, {task_create: {subject: one, description: Write one.}}, {task_create: {subject: two, description: Write two.}}]
    - do: [{wait: {}}]
    - say: Done.
` + writes)
	first := map[string]llm.Request{}
	for _, who := range []string{"lead", "amy", "bob"} {
		first[who] = q.of(who)[0]
	}
	return first
}

// The first request of every member has the facts that it would otherwise have to look for.
func TestFactsInTheFirstRequest(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("AGENTS.md", "Indent with tabs.\n"+strings.Repeat("More.\n", 10_000))
		h.commit("CLAUDE.md", "Never read.\n")
		gittest.Write(t, h.root, map[string]string{"draft": "not committed"})
		tip := h.git("rev-parse", "HEAD")
		for who, r := range firstRequests(h) {
			text := sayings(r)
			place := "Working directory: " + h.root + "/.team/scratch/"
			if who == "lead" {
				place = "Your tools run in a git worktree of your own."
			} else if !strings.Contains(text, place) {
				place = "Your lane: " + h.root + "/"
			}
			for _, want := range []string{
				"Repository: " + h.root + "\n", place,
				fmt.Sprintf("Platform: %s/%s\n", runtime.GOOS, runtime.GOARCH),
				"Check command: test -e README\n", "Target branch: muster/demo, now at ",
				"The user's checkout: branch main at " + tip[:7] + ", with uncommitted changes in ",
				"Indent with tabs.\nMore.\n", "[cut: 32768 of 60018 bytes; read_file shows the rest]",
				"Date: " + time.Now().Format(time.DateOnly),
			} {
				if !strings.Contains(text, want) {
					t.Errorf("%s is not told %q", who, want)
				}
			}
			if strings.Contains(text, "Never read") {
				t.Errorf("%s reads CLAUDE.md beside AGENTS.md", who)
			}
		}
	})
}

// A subagent begins with the same facts as its member, and reads what the project says about a directory for itself.
func TestFactsForSubagents(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("AGENTS.md", "Indent with tabs.\n")
		h.commit("sub/AGENTS.md", "Never touch the parser.\n")
		h.commit("sub/a.txt", "a\n")
		q := h.requestsOf(`
speakers:
  lead:
    - do: [{read_file: {path: sub/a.txt}}, {subagent: {prompt: look into it, kind: explore}}]
    - do: [{task_create: {subject: one}}, {claim_task: {task_id: 1}}]
    - do: [{subagent: {prompt: change it, kind: work}}]
    - do: [{complete_task: {task_id: 1, summary: done}}]
    - say: Done.
scenes:
  - {cue: look into it, who: [lead/sub], turns: [{do: [{read_file: {path: sub/a.txt}}]}, {say: I looked.}]}
  - {cue: change it, who: [lead/sub], turns: [{do: [{bash: {command: echo b > sub/a.txt}}]}, {say: I changed it.}]}
`)
		for cue, place := range map[string]string{"look into it": h.root + "/.worktrees/lead-work", "change it": h.root + "/.worktrees/"} {
			last := ""
			for _, all := range q.all {
				for _, r := range all {
					if text := sayings(r); strings.Contains(text, cue) && !strings.Contains(text, "The goal:") {
						last = text
					}
				}
			}
			for _, want := range []string{"Indent with tabs.", "Repository: " + h.root, "Check command: test -e README",
				"Working directory: " + place, "Never touch the parser."} {
				if !strings.Contains(last, want) {
					t.Errorf("the subagent that is to %q is not told %q, but %s", cue, want, last)
				}
			}
		}
	})
}

// The first requests stay within their bounds, with a reserve for what later parts add. They count the system prompt, the
// tools and the messages.
func TestSizeOfTheFirstRequest(t *testing.T) {
	t.Parallel()
	const reserve = 1000
	bubbleOnGit(t, func(h *house) {
		for who, r := range firstRequests(h) {
			size := len(sayings(r))
			for _, s := range r.Tools {
				size += len(fmt.Sprintf("\n{%q:%q,%q:%q,%q:%s}", "name", s.Name, "description", s.Description, "parameters", s.Schema))
			}
			limit := 14_000 - reserve
			if who == "lead" {
				limit = 9_000
			}
			if t.Logf("%s: %d bytes of at most %d", who, size, limit); size > limit {
				t.Errorf("the first request of %s has %d bytes, want at most %d", who, size, limit)
			}
		}
	})
}

// A member whose model takes no images reads so in place of seeing one. Config.NoImages gets the names of Config.Model.
func TestImagesOnlyForModelsThatTakeThem(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("logo.png", "\x89PNG\r\n\x1a\nand so on")
		h.start(`
speakers:
  lead:
    - do: [{spawn_teammate: {name: amy, role: coder, prompt: look, model: eyes}}, {read_file: {path: logo.png}}]
    - do: [{wait: {}}]
    - say: Done.
  amy:
    - do: [{read_file: {path: logo.png}}]
    - say: Seen.
`, func(c *team.Config) {
			c.ModelName = "words"
			c.NoImages = func(name string) bool { return name == "" }
		}).ends(0, time.Hour)
		const note = "logo.png is an image (image/png, 17 bytes), and your model takes no images"
		h.heard("lead", note, 1)
		h.heard("amy", note, 0)
		if said := h.said("amy"); !strings.Contains(said, `"type":"image"`) {
			t.Errorf("amy has not seen the image: %s", said)
		}
	})
}

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
	bubbleOnGit(t, func(h *house) {
		wrote, q := false, &asked{Model: h.scripted(hostileReviewer)}
		h.run(h.open(q, func(c *team.Config) {
			type in struct {
				Path string `json:"path"`
			}
			c.ModelName = "openai/gpt-5.5" // such a model is offered apply_patch
			c.Tools = []llm.Tool{tool.Func("my_writer", "Write.", func(context.Context, in) (string, error) { wrote = true; return "ok", nil }),
				tool.Func("my_reader", "Read.", func(context.Context, in) (string, error) { return "ok", nil }, tool.ReadOnly())}
		})).ends(0, time.Hour)
		var offered []string
		first := q.of("rev")[0]
		for _, spec := range first.Tools {
			offered = append(offered, spec.Name)
			if spec.Name == "subagent" && strings.Contains(string(spec.Schema), `"work"`) {
				t.Errorf("a reviewer may start subagents that write: %s", spec.Schema)
			}
		}
		want := []string{"read_file", "glob", "grep", "todo", "compact", "subagent", "task_create", "task_list", "claim_task",
			"complete_task", "release_task", "send_message", "read_inbox", "submit_plan", "respond_shutdown", "idle", "save_memory"}
		if !slices.Equal(offered, want) {
			t.Errorf("the reviewer has the tools %q, want %q", offered, want)
		}
		system := strings.Join(first.System, "\n")
		for _, want := range []string{"Your role is Reviewer.", "<role>\nRead the change", "your report"} {
			if !strings.Contains(system, want) {
				t.Errorf("the reviewer's system prompt has no %q: %s", want, system)
			}
		}
		isSpawn := func(s llm.Spec) bool { return s.Name == "spawn_teammate" }
		lead := q.of("lead")[0].Tools
		if text := lead[slices.IndexFunc(lead, isSpawn)].Description; !strings.Contains(text, "A reviewer or explorer only reads") {
			t.Errorf("the lead is not told of the roles: %s", text)
		}
		succeeded := map[string]bool{}
		for _, e := range h.events() {
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
		if now, was := h.git("rev-parse", "muster/demo^{tree}"), h.git("rev-parse", "main^{tree}"); now != was {
			t.Errorf("something has landed: %s", h.git("diff", "--stat", "main", "muster/demo"))
		}
		if left := h.git("status", "--porcelain"); left != "" {
			t.Errorf("the checkout has %q", left)
		}
		h.heard("lead", "README:1 says nothing of the parser.", 1)
	})
}

// TestRoleOfAFileAfterARestart: a process reads the files of roles once, so that the system prompt of a member stays the
// same while it lives there. A process that goes on with it reads them again, and a file that did not change gives the
// same bytes.
func TestRoleOfAFileAfterARestart(t *testing.T) {
	t.Parallel()
	role := func(tools, words string) map[string]string {
		return map[string]string{".claude/agents/coder.md": "---\ntools: " + tools + "\n---\nWrite in " + words + ".\n"}
	}
	for _, isChanged := range []bool{false, true} {
		bubble(t, func(h *house) {
			gittest.Write(t, h.root, role("Read, Write", "verse"))
			q, turns, second := &asked{Model: h.scripted(oneTask + writes)}, 0, make(chan struct{}, 1)
			q.on = func(r llm.Request) {
				if !strings.HasPrefix(r.CacheKey, "alice@") {
					return
				}
				if turns++; turns == 1 && isChanged { // what the file says meanwhile is for those who start later
					gittest.Write(t, h.root, role("Read, Write, Grep", "prose"))
				}
				if turns == 2 {
					second <- struct{}{}
					time.Sleep(time.Second)
				}
			}
			r := h.run(h.open(q, nil))
			<-second
			r.interrupt()
			before := len(q.of("alice"))
			h.begin(h.open(q, nil).Resume).ends(0, time.Hour)
			var all []string
			for _, r := range q.of("alice") {
				text := strings.Join(r.System, "\n")
				for _, s := range r.Tools {
					text += "\n" + s.Name + s.Description + string(s.Schema)
				}
				all = append(all, text)
			}
			if before != 2 || len(all) <= before {
				t.Fatalf("%d and %d requests", before, len(all))
			}
			for i, p := range all {
				isNew := isChanged && i >= before
				if (p == all[0]) == isNew || strings.Contains(p, "Write in prose.") != isNew {
					t.Errorf("changed: %v: request %d begins with\n%s", isChanged, i, p)
				}
			}
		})
	}
}
