package team_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/gittest"
	"muster/llm"
	"muster/team"
)

// sayings returns what a request says to the model, without the tools.
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

// requestsOf runs a script to its end and returns the requests of its members.
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
			if who != "lead" && !strings.Contains(text, place) {
				place = "Your lane: " + h.root + "/"
			}
			for _, want := range []string{
				"Repository: " + h.root + "\n", place,
				fmt.Sprintf("Platform: %s/%s\n", runtime.GOOS, runtime.GOARCH),
				"Check command: test -e README\n", "Work lands on: muster/demo, now at ",
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
		for cue, place := range map[string]string{"look into it": h.root + "/.team/scratch/lead", "change it": h.root + "/.worktrees/"} {
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
				limit = 16_000 - reserve
			}
			if t.Logf("%s: %d bytes of at most %d", who, size, limit); size > limit {
				t.Errorf("the first request of %s has %d bytes, want at most %d", who, size, limit)
			}
		}
	})
}
