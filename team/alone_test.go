package team_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// teamTools are tools that only a lead with a team is offered.
var teamTools = []string{"wait", "broadcast", "list_teammates", "task_update", "review_plan"}

func offered(r llm.Request) (names []string) {
	for _, s := range r.Tools {
		names = append(names, s.Name)
	}
	return names
}

// TestALeadAlone: one bug by the lead alone is one task and one lane, in which the first command runs too.
func TestALeadAlone(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("greet.sh", "echo helo\n")
		q := h.requestsOf(`
speakers:
  lead:
    - do: [{read_file: {path: greet.sh}}, {glob: {pattern: "*.sh"}}]
    - do: [{bash: {command: "sh greet.sh; touch built.o"}}]
    - do: [{edit_file: {path: greet.sh, old: helo, new: hello}}]
    - do: [{bash: {command: "sh greet.sh; ls"}}]
    - do: [{complete_task: {summary: "Greets."}}]
    - say: Done.
`)
		all := q.of("lead")
		if len(all) != 6 {
			t.Errorf("%d requests", len(all))
		}
		for i, r := range all {
			for _, name := range teamTools {
				if slices.Contains(offered(r), name) {
					t.Errorf("request %d offers %s", i, name)
				}
			}
			if d := len(r.Tools) - len(all[0].Tools); d != 0 || !slices.Equal(r.System, all[0].System) {
				t.Errorf("request %d begins with %d more tools, or another prompt", i, d)
			}
		}
		heard := sayings(all[len(all)-1])
		if strings.Contains(heard, "task_landed") {
			t.Errorf("the lead gets mail about what the result of its call has told: %s", heard)
		}
		for _, want := range []string{"helo\n", "[Task #1 (the goal) was made for your changes and is yours.", "hello\nREADME\nbuilt.o\ngreet.sh",
			"Task #1 landed as "} {
			if !strings.Contains(heard, want) {
				t.Errorf("the lead does not read %q: %s", want, heard)
			}
		}
		if task := h.task(1); task.Owner != muster.Lead || task.Subject != "the goal" || h.onTarget() != "greet.sh built.o" && h.onTarget() != "built.o greet.sh" {
			t.Errorf("%+v; landed: %s", task, h.onTarget())
		}
		if n := h.count(is(journal.LaneCreated, "")); n != 1 {
			t.Errorf("%d lanes were made\n%s", n, h.tail())
		}
	})
}

// TestALeadGetsATeam: with the first teammate, or the second open task, come the rules for a team in the answer, and its
// tools with the next request, for as long as the run lasts. A lead without teammates never gets them.
func TestALeadGetsATeam(t *testing.T) {
	t.Parallel()
	const second = "{task_create: {subject: one}}, {task_create: {subject: two}}"
	for name, c := range map[string]struct {
		calls string
		cap   int
		want  bool
	}{
		"a teammate":            {"{spawn_teammate: {name: amy, role: coder, prompt: Take a task.}}", 4, true},
		"a second task":         {second, 4, true},
		"one task":              {"{task_create: {subject: one}}", 4, false},
		"two without teammates": {second, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(h *house) {
				q := &asked{Model: h.scripted(fmt.Sprintf(`
speakers:
  lead:
    - do: [{read_inbox: {}}]
    - do: [%s]
    - say: What now?
    - say: That is all.
  amy:
    - say: Nothing to do.
`, c.calls))}
				r := h.run(h.open(q, func(k *team.Config) { k.Teammates = c.cap }))
				<-r.done // tasks may be left
				all := q.of("lead")
				if n := strings.Count(sayings(all[len(all)-1]), prompt.TeamRules()); n > 1 || (n == 1) != c.want {
					t.Errorf("the rules for a team are told %d times", n)
				}
				for i, r := range all {
					has := slices.Contains(offered(r), "wait")
					if has != (c.want && i > 1) {
						t.Errorf("request %d of %d: wait is offered: %v", i, len(all), has)
					}
				}
			})
		})
	}
}

// TestWhatALeadAloneLeaves: what commands have changed lands with complete_task. Without it the lead is reminded of
// tracked files, once, and the run does not count as done; untracked files are no work.
func TestWhatALeadAloneLeaves(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		words     string
		code      int
		landed    string
		reminders int
	}{
		"by a command": {`
    - do: [{bash: {command: "echo more >> notes"}}]
    - do: [{complete_task: {summary: "More."}}]
    - say: Done.
`, 0, "notes", 0},
		"reminded": {`
    - do: [{bash: {command: "echo more >> notes"}}]
    - say: Done.
    - do: [{complete_task: {summary: "More."}}]
    - say: Done.
`, 0, "notes", 1},
		"kept": {`
    - do: [{bash: {command: "echo more >> notes"}}]
    - say: Done.
    - say: Done, I said.
`, 3, "", 1},
		"untracked": {`
    - do: [{bash: {command: "echo x > coverage.out"}}]
    - say: The answer is 42.
`, 0, "", 0},
		"nothing": {`
    - do: [{bash: {command: "cat README"}}]
    - do: [{complete_task: {summary: "Read it."}}]
    - say: The answer is 42.
`, 0, "", 0},
		"one task after the other": {`
    - do: [{write_file: {path: a, content: a}}]
    - do: [{complete_task: {summary: "a"}}]
    - do: [{write_file: {path: b, content: b}}]
    - do: [{complete_task: {summary: "b"}}]
    - do: [{task_create: {subject: c, claim: true}}]
    - do: [{write_file: {path: c, content: c}}]
    - do: [{complete_task: {summary: "c"}}]
    - say: Done.
`, 0, "a b c", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				h.commit("notes", "few\n")
				sum := h.start("speakers:\n  lead:"+c.words, nil).ends(c.code, time.Hour)
				if got := strings.Join(strings.Fields(h.git("diff", "--name-only", "main", "muster/demo")), " "); got != c.landed {
					t.Errorf("landed: %q, want %q; %s\n%s", got, c.landed, sum.Text, h.said(muster.Lead))
				}
				if n := strings.Count(h.said(muster.Lead), "this has not landed"); n != c.reminders {
					t.Errorf("%d reminders\n%s", n, h.said(muster.Lead))
				}
				lanes := h.git("worktree", "list")
				if kept := strings.Contains(lanes, "lead-work"); kept != (c.code == 3) {
					t.Errorf("the worktrees afterwards: %s", lanes)
				}
			})
		})
	}
}

// TestALeadAloneIsInterrupted: the next process goes on in the lane in which the lead has changed something.
func TestALeadAloneIsInterrupted(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit("notes", "few\n")
		const words = `
speakers:
  lead:
    - do: [{bash: {command: "echo more >> notes"}}]
    - do: [{bash: {command: "sleep 1000"}}]
    - do: [{complete_task: {summary: "More."}}]
    - say: Done.
`
		r := h.start(words, nil)
		h.until("the second command", func(e muster.Event) bool { return e.Kind == journal.ToolStarted && e.Text("text") == "sleep 1000" })
		r.interrupt()
		h.resume(words, nil).ends(0, time.Hour)
		if got := h.git("show", "muster/demo:notes"); got != "few\nmore" {
			t.Errorf("the target has %q", got)
		}
		if n := h.count(is(journal.LaneCreated, "")); n != 1 {
			t.Errorf("%d lanes were made\n%s", n, h.tail())
		}
	})
}
