package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// The lead's own limits stop the team with exit 3 and its state as it is, and resume goes on.
func TestLimitsOfTheLead(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		calls  func(n int) (llm.Reply, error)
		resume int // the code with which it then ends
	}{
		"turn limit": {func(n int) (llm.Reply, error) {
			return calls(fmt.Sprint("c", n), "task_create", in{"subject": fmt.Sprint("t", n)})
		}, 3},
		"a loop": {func(n int) (llm.Reply, error) { return calls(fmt.Sprint("c", n), "read_file", in{"path": "README"}) }, 0}, // no task was made
	} {
		t.Run(why, func(t *testing.T) {
			bubble(t, func(h *house) {
				loops := cast{"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) { return c.calls(n) }}.model()
				sum := h.run(h.open(loops, func(k *team.Config) { k.Limits.Turns = 5 })).ends(3, time.Hour)
				if !strings.Contains(sum.Text, why) || sum.Run.EndedAt != 0 {
					t.Errorf("%q, ended at %v", sum.Text, sum.Run.EndedAt)
				}
				done := cast{"lead": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
					if len(r.Messages) < 8 {
						t.Errorf("the lead goes on with %d messages", len(r.Messages))
					}
					return says("Enough.")
				}}.model()
				h.begin(h.open(done, nil).Resume).ends(c.resume, time.Hour)
			})
		})
	}
}

// What the model's provider says, and what the team makes of it.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	const work = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
  alice:
    - do: [{write_file: {path: one.txt, content: one}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
      error: `
	t.Run("a spend limit", func(t *testing.T) {
		bubble(t, func(h *house) {
			sum := h.start(work+"{kind: spent, times: 1}", nil).ends(3, time.Hour)
			if got := h.task(1); got.Owner != "alice" || got.Status != muster.InProgress || sum.Run.EndedAt != 0 {
				t.Errorf("%+v, ended %v", got, sum.Run.EndedAt)
			}
			h.resume(strings.TrimSuffix(work, "      error: "), nil).ends(0, time.Hour)
			if got := h.task(1); got.Fence != 1 || got.Landed == nil {
				t.Errorf("%+v", got)
			}
			if n := h.count(is(journal.TaskClaimed, "")); n != 1 {
				t.Errorf("claimed %d times", n)
			}
		})
	})
	t.Run("denied", func(t *testing.T) {
		bubble(t, func(h *house) {
			r := h.start("speakers: {lead: [{say: x, error: {kind: denied}}]}", nil)
			err := r.fails()
			var e *muster.Error
			if !errors.As(err, &e) || e.Hint == "" || !strings.Contains(e.Message, "the model cannot be used") || r.sum.Code != 1 {
				t.Errorf("%v, code %d", err, r.sum.Code)
			}
			h.resume("speakers: {lead: [{say: The answer.}]}", nil).ends(0, time.Hour)
		})
	})
	t.Run("a full context", func(t *testing.T) {
		bubble(t, func(h *house) {
			r := h.start(work+`{kind: context_full, times: 1}
    - do: [{complete_task: {task_id: 1, summary: again}}]
scenes:
  - cue: 'There is no summary'
    who: [alice]
    turns: [{do: [{complete_task: {task_id: 1, summary: afresh}}]}]
`, nil)
			r.ends(0, time.Hour)
			said := h.said("alice")
			_, after, _ := strings.Cut(said, "There is no summary")
			if !strings.Contains(after, "Task #1: one") || !strings.Contains(after, "one.txt") || !strings.Contains(said, `"kind":"compressed"`) {
				t.Errorf("the fresh conversation lacks something\n%s", said)
			}
			if h.task(1).Result != "afresh" {
				t.Errorf("%+v", h.task(1))
			}
		})
	})
	t.Run("a context that stays full", func(t *testing.T) {
		bubble(t, func(h *house) {
			m := cast{"lead": h.reads(waitingLead),
				"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
					if n < 10 {
						return calls(fmt.Sprint(n), "write_file", in{"path": "f", "content": fmt.Sprint(n)})
					}
					return llm.Reply{}, llm.Errorf(llm.ContextFull, "too long")
				}}.model()
			h.run(h.open(m, nil)).ends(3, time.Hour)
			if h.turns("alice") != 14 || h.member("alice").Status != muster.Shutdown {
				t.Errorf("%d turns; %s", h.turns("alice"), h.member("alice").Status)
			}
		})
	})
	t.Run("a bad request", func(t *testing.T) {
		bubble(t, func(h *house) {
			h.start(replacing+"  alice: [{say: x, error: {kind: bad_request}}]\n"+
				strings.Replace(writes, "    turns:", "    who: [bob]\n    turns:", 1), nil).ends(0, time.Hour)
			h.heard("lead", "alice is shut down: ", 1)
			if got := h.task(1); got.Owner != "bob" {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("a lost member", func(t *testing.T) {
		bubble(t, func(h *house) {
			m := cast{"lead": h.reads(replacing), "bob": h.reads(writes),
				"alice": func(context.Context, int, llm.Request) (llm.Reply, error) { return llm.Reply{}, errors.New("a bug") }}.model()
			h.run(h.open(m, nil)).ends(0, time.Hour)
			h.heard("lead", "Teammate alice is lost: a bug", 1)
			if got := h.task(1); got.Owner != "bob" {
				t.Errorf("%+v", got)
			}
		})
	})
}

// replacing is a lead who spawns bob when alice is lost.
const replacing = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{spawn_teammate: {name: bob, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
`
