package team_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

func (h *house) play(words, book string, change func(*team.Config)) *running {
	h.Helper()
	t := h.open(h.scripted(words), change)
	return h.begin(func(ctx context.Context) (team.Summary, error) {
		return t.Run(ctx, "", team.Start{Playbook: &team.Playbook{File: "week.yaml", Data: []byte(book)}})
	})
}

func (h *house) spawned() (names []string) {
	for _, e := range h.events() {
		if e.Kind == journal.MemberSpawned && e.Member != muster.Lead {
			names = append(names, string(e.Member))
		}
	}
	return names
}

const week = `
name: the week
description: What comes every week.
tasks:
  - {id: last, subject: last, blocked_by: [part, text]}
  - {id: part, subject: "{{item}}", for_each: [one, two, three]}
  - {id: text, subject: text, role: writer, blocked_by: part}
`

// silent is a lead that must not be asked.
const silent = `
speakers:
  lead: [{say: Nobody should have asked me.}]
` + writes

// A run in which nothing needs the lead makes no request as the lead, and ends by itself.
func TestAPlaybookNeedsNoLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		sum := h.play(silent, week, func(c *team.Config) { c.Teammates = 8 }).ends(0, time.Hour)
		if n := h.turns(muster.Lead); n != 0 {
			h.Errorf("the lead had %d turns", n)
		}
		if n := h.count(is(journal.TaskCompleted, "")); n != 5 || sum.Text != "" {
			h.Errorf("%d tasks completed, %q\n%s", n, sum.Text, h.tail())
		}
		// As many as the graph is wide, and one of the role when its task is ready.
		if got := strings.Join(h.spawned(), " "); got != "coder-1 coder-2 coder-3 writer-1" {
			h.Errorf("spawned: %s", got)
		}
		if m := h.member("writer-1"); m.Role != "writer" || m.StartedBy != muster.Lead || m.Status != muster.Shutdown {
			h.Errorf("%+v", m)
		}
		writes := 1 // "last" is for any role
		if h.task(5).CompletedBy == "writer-1" {
			writes = 2
		}
		h.heard("writer-1", "What comes every week.", writes)
		run := sum.Run
		if p := run.Playbook; p == nil || p.Name != "the week" || len(p.Hash) != 64 || p.Tasks != nil || run.EndedAt == 0 {
			h.Errorf("%+v", run)
		}
		if run.Goal != "the week:\nWhat comes every week." {
			h.Errorf("the goal %q", run.Goal)
		}
		if task := h.task(5); task.Subject != "last" || len(task.DependsOn) != 4 || task.CreatedBy != muster.System {
			h.Errorf("%+v", task)
		}
		// The next run has a lead as ever, and a goal that nobody said to the last one.
		h.start("speakers:\n  lead: [{say: Hello.}]\n", nil).ends(0, time.Minute)
		h.heard(muster.Lead, "the week", 0)
	})
}

// Without room for all roles, somebody who has nothing to do makes room.
func TestAPlaybookWithOneTeammate(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		h.play(silent, week, func(c *team.Config) { c.Teammates = 1 }).ends(0, time.Hour)
		if got := strings.Join(h.spawned(), " "); h.turns(muster.Lead) != 0 || got != "coder-1 writer-1" {
			h.Errorf("%d turns; spawned: %s\n%s", h.turns(muster.Lead), got, h.tail())
		}
	})
}

// A teammate that was timed out lives again for a task that comes later.
func TestAPlaybookSpawnsAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		book := "tasks:\n- {id: a, subject: one, role: coder}\n- {id: b, subject: slow, role: slow}\n"
		words := strings.Replace(silent, "scenes:", `scenes:
  - cue: 'Task #(?P<id>\d+): slow'
    turns:
      - wait: 4m
        do: [{complete_task: {task_id: "${number:id}", summary: slow}}]`, 1)
		r := h.play(words, book, nil)
		h.until("coder-1 has left", is(journal.MemberShutdown, "coder-1"))
		h.create("later")
		r.ends(0, time.Hour)
		if got := strings.Join(h.spawned(), " "); h.turns(muster.Lead) != 0 || got != "coder-1 slow-1 coder-1" {
			h.Errorf("%d turns; spawned: %s\n%s", h.turns(muster.Lead), got, h.tail())
		}
	})
}

// The lead is started when something needs it, and is told what it is about.
func TestAPlaybookThatNeedsTheLead(t *testing.T) {
	t.Parallel()
	const done = "\n    - do: [{wait: {}}]\n      until: All done\n    - say: Done.\n"
	for _, c := range []struct {
		name, book, words string
		code              int
		cap               int
		heard             string
	}{
		{"a question", "name: the week\ntasks:\n- {id: a, subject: one}\n", `
speakers:
  lead:
    - wait: 1s # so that the member waits when the answer comes
      do: [{send_message: {to: coder-1, content: Small.}}]` + done + `
scenes:
  - cue: 'Task #(?P<id>\d+): one'
    turns:
      - do: [{send_message: {to: lead, content: How large?}}]
      - say: I wait.
      - cue: Small
        do: [{complete_task: {task_id: "${number:id}", summary: one}}]
`, 0, 4, "How large?"},
		{"a task that needs attention", "name: the week\ntasks:\n- {id: a, subject: one}\n", `
speakers:
  lead:
    - say: It cannot be done.
scenes:
  - cue: 'Task #(?P<id>\d+): one'
    turns:
      - do: [{release_task: {task_id: "${number:id}", reason: I cannot.}}]
`, 3, 1, "needs attention"},
		{"no teammate is allowed", "name: the week\ntasks:\n- {id: a, subject: one}\n", `
speakers:
  lead:
    - do: [{claim_task: {task_id: 1}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
    - say: Done.
`, 0, 0, "there is no teammate to take it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(h *house) {
				h.play(c.words, c.book, func(k *team.Config) { k.Teammates = c.cap }).ends(c.code, 5*time.Hour)
				h.heard(muster.Lead, "The goal:\\nthe week\\n", 1)
				h.heard(muster.Lead, "spawned by the runtime", 1)
				if said := h.said(muster.Lead); !strings.Contains(said, c.heard) && len(h.waiting(muster.Lead)) == 0 {
					h.Errorf("the lead did not hear %q\n%s", c.heard, said)
				}
			})
		})
	}
}

// A process that stops while it puts the tasks on the board leaves a run whose resume makes each of them once.
func TestHalfAPlaybookIsCompleted(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		tm := h.open(h.scripted(silent), nil)
		planned, err := tm.Tasks().Planned(h.Context(), team.Start{Playbook: &team.Playbook{File: "week.yaml", Data: []byte(week)}})
		if err != nil || len(planned) != 5 || planned[4].Subject != "last" || len(planned[4].BlockedBy) != 4 {
			h.Fatalf("%+v, %v", planned, err)
		}
		if all, _ := h.board.List(h.Context()); len(all) != 0 {
			h.Fatalf("a look has made tasks: %v", all)
		}
		left := 2 // that are written before the disk is full
		r := h.play(silent, week, func(c *team.Config) {
			c.Store = refusing(c.Store, muster.TableTasks, func([]byte) error {
				if left--; left < 0 {
					return noRoom()
				}
				return nil
			})
		})
		if err := r.fails(); err == nil {
			h.Fatal("it ended")
		}
		if all, _ := h.board.List(h.Context()); len(all) != 2 {
			h.Fatalf("%d tasks", len(all))
		}
		h.resume(silent, nil).ends(0, time.Hour)
		all, err := h.board.List(h.Context())
		var subjects []string
		for _, x := range all {
			subjects = append(subjects, x.Subject)
		}
		slices.Sort(subjects)
		if got := strings.Join(subjects, " "); err != nil || got != "last one text three two" {
			h.Errorf("%s, %v", got, err)
		}
	})
}
