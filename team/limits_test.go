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

// The turn limit: a reminder, as many turns again, then the task goes back and counts; the third time it needs attention.
func TestTurnLimitOfATeammate(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		s := h.scripted(`
speakers:
  lead:
    - do: [{task_create: {subject: endless}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Left.
`)
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
				return s.Reply(ctx, r, func(llm.Delta) {})
			},
			"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				return calls(fmt.Sprint("c", n), "write_file", in{"path": "f", "content": fmt.Sprint(n)})
			},
		}}
		tm := h.open(m, func(c *team.Config) { c.Limits.Turns = 4 })
		r := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
		r.ends(3, time.Hour)
		if h.turns("alice") != 24 { // three times twice four
			t.Errorf("alice had %d turns", h.turns("alice"))
		}
		h.heard("alice", "You have used 4 turns", 3)
		h.heard("lead", "given back 3 times, last: the turn limit of this phase. Try it again", 1) // the mail; its wait may say so too
		if got := h.task(1); got.Attempts != 3 || got.Status != muster.NeedsAttention || got.Worktree == "" {
			t.Errorf("%+v", got)
		}
		if mail := h.waiting(muster.User); len(mail) != 1 {
			t.Errorf("the user's mail: %+v", mail)
		}
	})
}

// Without a setting, a member that only reads is reminded, its lead is told, and its task goes back; one that writes in its
// lane, with another tool in between, goes on.
func TestStandstillOfATeammate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ turns, reminders, code int }{"reads": {3 * 100, 3, 3}, "writes": {121, 0, 0}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(h *house) {
				m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
					"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: endless}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Left.
    - say: Left.
`),
					"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
						switch {
						case name == "writes" && n == 120:
							return calls("done", "complete_task", in{"task_id": 1, "summary": "written"})
						case name == "writes" && n%5 == 0:
							return calls(fmt.Sprint("c", n), "bash", in{"command": fmt.Sprint("echo ", n, " > f")})
						case name == "writes" && n > 120:
							return says("That is all.")
						}
						return calls(fmt.Sprint("c", n), "glob", in{"pattern": fmt.Sprint("f", n)})
					},
				}}
				tm := h.open(m, nil)
				h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(c.code, time.Hour)
				if n := h.turns("alice"); n < c.turns || n > c.turns+1 {
					t.Errorf("alice had %d turns", n)
				}
				h.heard("alice", "had 10 rounds of tools without a change in files, board or mail. If you have", c.reminders)
				h.heard("alice", "had 50 rounds of tools without a change in files, board or mail. You get as many", c.reminders)
				h.heard("lead", "alice has had 30 rounds of tools without a change", c.reminders)
			})
		})
	}
}

// Two calls in turn with the same results are a loop like one.
func TestTwoCallsInTurnAreALoop(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				return calls(fmt.Sprint("c", n), []string{"read_file", "glob"}[n%2], []in{{"path": "README"}, {"pattern": "*"}}[n%2])
			},
		}}
		tm := h.open(m, nil)
		sum := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(3, time.Hour)
		if !strings.Contains(sum.Text, "a loop: the same calls") || h.turns("lead") != 12 {
			t.Errorf("%d turns, %q", h.turns("lead"), sum.Text)
		}
		h.heard("lead", "the same 2 calls in turn three times", 1)
	})
}

// The same call with the same result: a reminder at three, the end of the phase at six; wait and its like do not count.
func TestLoopGuard(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		s := h.scripted(`
speakers:
  lead:
    - do: [{task_create: {subject: round}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Left.
`)
		m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
			"lead": func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
				return s.Reply(ctx, r, func(llm.Delta) {})
			},
			"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				if n < 8 {
					return calls(fmt.Sprint("c", n), "task_list", in{})
				}
				return calls(fmt.Sprint("c", n), "read_file", in{"path": "README"})
			},
		}}
		tm := h.open(m, nil)
		h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(3, time.Hour)
		if h.turns("alice") != 8+3*6 {
			t.Errorf("alice had %d turns", h.turns("alice"))
		}
		h.heard("alice", "You made the same call three times", 3)
		// Once by mail; its wait may name the reason as well, if it ends before the mail is there.
		h.heard("lead", "same results six times in a row. Try it again with task_update", 1)
	})
}

// The lead's own limits stop the team with exit 3 and its state as it is, and resume goes on.
func TestLimitsOfTheLead(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, tool, why string }{
		{"turns", "task_create", "turn limit"},
		{"loop", "read_file", "a loop"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(h *house) {
				m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
					"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
						if c.tool == "read_file" {
							return calls(fmt.Sprint("c", n), c.tool, in{"path": "README"})
						}
						return calls(fmt.Sprint("c", n), c.tool, in{"subject": fmt.Sprint("t", n)})
					},
				}}
				tm := h.open(m, func(k *team.Config) { k.Limits.Turns = 5 })
				sum := h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(3, time.Hour)
				if !strings.Contains(sum.Text, c.why) || sum.Run.EndedAt != 0 {
					t.Errorf("%q, ended at %v", sum.Text, sum.Run.EndedAt)
				}
				done := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
					"lead": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
						if len(r.Messages) < 8 {
							t.Errorf("the lead goes on with %d messages", len(r.Messages))
						}
						return says("Enough.")
					}}}
				want := 3
				if c.tool == "read_file" {
					want = 0 // no task was ever made
				}
				tm = h.open(done, nil)
				h.begin(tm.Resume).ends(want, time.Hour)
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
	t.Run("overloaded once", func(t *testing.T) {
		bubble(t, func(h *house) {
			h.start(work+"{kind: overloaded, after: 5s, times: 2}", nil).ends(0, time.Hour)
			if n := h.count(is(journal.ModelRetry, "alice")); n != 1 {
				t.Errorf("%d waits were shown", n)
			}
			if m := h.member("alice"); m.Doing != "" {
				t.Errorf("alice is shown as %q", m.Doing)
			}
		})
	})
	t.Run("overloaded for long, incomplete in between", func(t *testing.T) {
		bubble(t, func(h *house) {
			r := h.start(work+"{kind: incomplete, times: 20}", nil)
			h.until("parked", is(journal.ModelRetry, "alice"))
			if m := h.member("alice"); m.Status != muster.Working || !strings.HasPrefix(m.Doing, "parked until ") {
				t.Errorf("alice is shown as %s %q", m.Status, m.Doing)
			}
			r.ends(0, 5*time.Hour)
			h.heard("alice", `"name":"complete_task"`, 1)
		})
	})
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
	t.Run("a spend limit in the lead's first turn", func(t *testing.T) {
		bubble(t, func(h *house) {
			h.start("speakers: {lead: [{say: The answer., error: {kind: spent}}]}", nil).ends(3, time.Hour)
			sum := h.resume("speakers: {lead: [{say: The answer.}]}", nil).ends(0, time.Hour)
			if sum.Text != "The answer." {
				t.Errorf("%q", sum.Text)
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
			m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
				"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Left.
    - say: Left.
`),
				"alice": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
					if n < 10 {
						return calls(fmt.Sprint(n), "write_file", in{"path": "f", "content": fmt.Sprint(n)})
					}
					return llm.Reply{}, llm.Errorf(llm.ContextFull, "too long")
				}}}
			tm := h.open(m, nil)
			h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(3, time.Hour)
			if h.turns("alice") != 14 || h.member("alice").Status != muster.Shutdown {
				t.Errorf("%d turns; %s", h.turns("alice"), h.member("alice").Status)
			}
		})
	})
	t.Run("a bad request", func(t *testing.T) {
		bubble(t, func(h *house) {
			r := h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{spawn_teammate: {name: bob, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
  alice: [{say: x, error: {kind: bad_request}}]
`+strings.Replace(writes[1:], "    turns:", "    who: [bob]\n    turns:", 1), nil)
			r.ends(0, time.Hour)
			h.heard("lead", "alice is shut down: ", 1)
			if got := h.task(1); got.Owner != "bob" {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("a lost member", func(t *testing.T) {
		bubble(t, func(h *house) {
			m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
				"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - do: [{spawn_teammate: {name: bob, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Done.
`), "bob": h.reads(writes),
				"alice": func(context.Context, int, llm.Request) (llm.Reply, error) { return llm.Reply{}, errors.New("a bug") }}}
			tm := h.open(m, nil)
			h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(0, time.Hour)
			h.heard("lead", "Teammate alice is lost: a bug", 1)
			if got := h.task(1); got.Owner != "bob" {
				t.Errorf("%+v", got)
			}
		})
	})
	t.Run("cut at max_tokens", func(t *testing.T) {
		bubble(t, func(h *house) {
			m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
				"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
					if n == 0 {
						r, err := calls("c", "task_create", in{"subject": "never"})
						r.Stop = llm.StopMax
						return r, err
					}
					return says("Small steps.")
				}}}
			tm := h.open(m, nil)
			h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) }).ends(0, time.Hour)
			if h.turns("lead") != 2 || h.count(is(journal.ToolStarted, "")) != 0 {
				t.Errorf("%d turns\n%s", h.turns("lead"), h.tail())
			}
			h.heard("lead", "none of its calls was run", 1)
		})
	})
}

// reads plays a script for one speaker.
func (h *house) reads(words string) func(context.Context, int, llm.Request) (llm.Reply, error) {
	h.Helper()
	s := h.scripted(words)
	return func(ctx context.Context, _ int, r llm.Request) (llm.Reply, error) {
		return s.Reply(ctx, r, func(llm.Delta) {})
	}
}
