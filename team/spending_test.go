package team_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/compact"
	"muster/internal/spend"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

func tenCents(string) func(llm.Reply, time.Time) (float64, bool) {
	return func(llm.Reply, time.Time) (float64, bool) { return 0.1, true }
}

// payroll is a model of a lead with n teammates, who work until they are stopped. A call takes a time of its own, and
// each that is answered is counted.
type payroll struct {
	n  int
	mu sync.Mutex
	// answered is how many calls of a member were answered, and spent how many tokens these had.
	answered map[muster.Name]int
}

func (p *payroll) Reply(ctx context.Context, r llm.Request, _ func(llm.Delta)) (llm.Reply, error) {
	who, _, _ := strings.Cut(r.CacheKey, "@")
	select {
	case <-ctx.Done():
		return llm.Reply{}, context.Cause(ctx)
	case <-time.After(time.Duration(700+100*len(who)+37*int(who[len(who)-1])) * time.Millisecond):
	}
	p.mu.Lock()
	if p.answered == nil {
		p.answered = map[muster.Name]int{}
	}
	p.answered[muster.Name(who)]++
	n := p.answered[muster.Name(who)]
	p.mu.Unlock()
	reply, err := calls(fmt.Sprint("c", n), "write_file", in{"path": "f", "content": fmt.Sprint(n)})
	switch {
	case who == "lead" && n <= p.n:
		reply, err = calls(fmt.Sprint("c", n), "task_create", in{"subject": fmt.Sprint("task ", n)})
	case who == "lead" && n <= 2*p.n:
		reply, err = calls(fmt.Sprint("c", n), "spawn_teammate", in{"name": fmt.Sprint("t", n-p.n), "role": "coder",
			"prompt": "Work."})
	case who == "lead":
		reply, err = calls(fmt.Sprint("c", n), "wait", in{})
	}
	reply.Usage = llm.Usage{Input: 90, Output: 10}
	return reply, err
}

func (p *payroll) total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.answered {
		n += x
	}
	return n
}

func (h *house) spent(t *team.Team) *spend.Book {
	h.Helper()
	return require.Value(team.ReadSpending(h.Context(), t))(h)
}

// With eight agents on a budget, at most one call of each goes over it; what was paid for is used, the state is kept,
// and a larger budget goes on.
func TestTheBudgetOfATeam(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		p := &payroll{n: 7}
		budget := func(text string) func(*team.Config) {
			return func(c *team.Config) {
				c.Teammates, c.Price, c.Budgets.Team, c.Limits.Turns = 7, tenCents, text, 1000
			}
		}
		tm := h.open(p, budget("5"))
		sum := h.run(tm).ends(3, time.Hour)
		if sum.Text != "the budget of $5.00 is spent" || sum.GoOn != "--budget 8" || sum.Run.EndedAt != 0 {
			t.Errorf("%q, %q, %+v", sum.Text, sum.GoOn, sum.Run)
		}
		b, calls := h.spent(tm), p.total()
		if b.Total.Calls != calls || b.Total.Dollars != spend.FromFloat(0.1*float64(calls)) {
			t.Errorf("the ledger has %+v, and %d calls were answered", b.Total, calls)
		}
		if calls < 50 || calls > 50+8 {
			t.Errorf("%d calls of 10 cents on a budget of $5", calls)
		}
		// Every reply that was paid for is in its member's conversation.
		for name, n := range p.answered {
			if got := strings.Count(h.said(name), `"kind":"reply"`); got != n {
				t.Errorf("%s: %d replies were paid for, %d are kept", name, n, got)
			}
		}
		if n := h.count(is(journal.BudgetWarned, "")); n != 1 {
			t.Errorf("warned %d times", n)
		}
		if n := h.count(is(journal.BudgetSpent, "")); n != 1 {
			t.Errorf("%d times spent", n)
		}
		// The same budget stops it at once.
		tm = h.open(p, budget(""))
		h.begin(tm.Resume).ends(3, time.Hour)
		if p.total() != calls {
			t.Errorf("%d calls were made without a budget", p.total()-calls)
		}
		tm = h.open(p, budget("$8"))
		h.begin(tm.Resume).ends(3, time.Hour)
		if n := p.total(); n < 80 || n > 80+8 || h.spent(tm).Total.Calls != n {
			t.Errorf("%d calls on a budget of $8, %+v", n, h.spent(tm).Total)
		}
	})
}

// A member whose budget is spent leaves, and a task whose budget is spent is set aside; the others go on.
func TestTheBudgetsOfMembersAndTasks(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		p := &payroll{n: 2}
		tm := h.open(p, func(c *team.Config) {
			c.Price, c.Budgets.Task, c.Limits.Turns = tenCents, "0.5", 1000
		})
		h.run(tm)
		h.until("both tasks are set aside", func(e muster.Event) bool {
			return e.Kind == journal.TaskAttention && h.task(1).Status == h.task(2).Status
		})
		b := h.spent(tm)
		for id := muster.TaskID(1); id <= 2; id++ {
			x := h.task(id)
			if x.Status != muster.NeedsAttention || x.Result != "the budget of $0.50 for task "+fmt.Sprint(id)+
				" is spent; raise budget.task, then retry it" || b.Tasks[id].Calls != 5 {
				t.Errorf("%+v, %+v", x, b.Tasks[id])
			}
		}
	})
	bubble(t, func(h *house) {
		p := &payroll{n: 1}
		tm := h.open(p, func(c *team.Config) {
			c.Price, c.Budgets.Member, c.Limits.Turns = tenCents, "400 tokens", 1000
		})
		sum := h.run(tm).ends(3, time.Hour)
		if sum.Text != "the budget of 400 tokens for the member lead is spent; raise budget.member" {
			t.Error(sum.Text)
		}
		if b := h.spent(tm); b.Members["t1"].Calls != 4 || b.Members["lead"].Calls != 4 {
			t.Errorf("%+v", b.Members)
		}
		if x := h.task(1); x.Status != muster.Pending || x.Attempts != 0 {
			t.Errorf("%+v", x)
		}
	})
}

// A budget in dollars needs a price, one in tokens does not.
func TestABudgetOfAModelWithoutAPrice(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		p := &payroll{n: 1}
		tm := h.open(p, func(c *team.Config) { c.Budgets.Team, c.ModelName = "5", "openai/qwen3" })
		_, err := tm.Run(t.Context(), "g", team.Start{})
		if err == nil || !strings.Contains(err.Error(), "the price of the model openai/qwen3 is not known") || p.total() != 0 {
			t.Error(err)
		}
		tm = h.open(p, func(c *team.Config) { c.Budgets.Team, c.Limits.Turns = "1k tokens", 1000 })
		sum := h.run(tm).ends(3, time.Hour)
		if b := h.spent(tm).Total; sum.GoOn != `--budget "2k tokens"` || b.Unpriced != b.Calls || b.Calls > 12 {
			t.Errorf("%q, %+v", sum.GoOn, b)
		}
	})
}

// Once three tasks have landed whose cost is known, a run begins with what one has cost.
func TestARunSaysWhatTasksHaveCost(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		words := "speakers:\n  lead:\n"
		for i := 1; i <= 3; i++ {
			words += fmt.Sprintf("    - do: [{task_create: {subject: part %[1]d}}, {claim_task: {task_id: %[1]d}}]\n"+
				"    - do: [{write_file: {path: f%[1]d, content: a}}]\n"+
				"    - do: [{complete_task: {task_id: %[1]d, summary: done}}]\n", i)
		}
		words += "    - say: Done.\n"
		priced := func(c *team.Config) { c.Price = tenCents }
		h.start(words, priced).ends(0, time.Hour)
		h.start("speakers:\n  lead:\n    - say: Hello.\n", priced).ends(0, time.Hour)
		said := func(e muster.Event) bool { return strings.HasPrefix(e.Text("text"), "a task that landed here") }
		if e := h.until("it is said", said); e.Text("text") != "a task that landed here has cost $0.20 (the median of 3)" ||
			h.count(said) != 1 {
			t.Error(e)
		}
	})
}

// The lead's own limit stops the team with exit 3 and its state as it is, and resume goes on.
func TestALimitOfTheLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		creates := cast{"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
			return calls(fmt.Sprint("c", n), "task_create", in{"subject": fmt.Sprint("t", n)})
		}}.model()
		sum := h.run(h.open(creates, func(k *team.Config) { k.Limits.Turns = 5 })).ends(3, time.Hour)
		if !strings.Contains(sum.Text, "turn limit") || sum.Run.EndedAt != 0 {
			t.Errorf("%q, ended at %v", sum.Text, sum.Run.EndedAt)
		}
		done := cast{"lead": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
			if len(r.Messages) < 8 {
				t.Errorf("the lead goes on with %d messages", len(r.Messages))
			}
			return says("Enough.")
		}}.model()
		h.begin(h.open(done, nil).Resume).ends(3, time.Hour) // with open tasks
	})
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
}

// TestFiftyTasksInARow has a teammate do 50 tasks (12 in the first tier), each with mail, files and a report. What its
// model is sent for a task does not grow from the fifth to the last by more than a tenth.
func TestFiftyTasksInARow(t *testing.T) {
	t.Parallel()
	tasks, rounds := tier.Amount(12, 50), 6
	bubble(t, func(h *house) {
		sent, task, round := map[int]int{}, 0, 0
		m := cast{
			"lead": func(_ context.Context, n int, _ llm.Request) (llm.Reply, error) {
				switch {
				case n < tasks:
					return calls(fmt.Sprint("l", n), "task_create", in{"subject": fmt.Sprintf("part %d", n+1),
						"description": strings.Repeat("It must do what the chapter says. ", 20)})
				case n == tasks:
					return calls("s", "spawn_teammate", in{"name": "alice", "role": "coder", "prompt": "Work."})
				}
				return calls(fmt.Sprint("w", n), "wait", in{})
			},
			"alice": func(_ context.Context, n int, r llm.Request) (llm.Reply, error) {
				if last := r.Messages[len(r.Messages)-1].Parts.Text(); strings.Contains(last, fmt.Sprintf("Task #%d: ", task+1)) {
					task, round = task+1, 0
				}
				sent[task] += compact.PrefixTokens(r.System, r.Tools) + compact.Estimate(r.Messages)
				id := fmt.Sprint("a", n)
				switch round++; {
				case round < rounds:
					return calls(id, "write_file", in{"path": fmt.Sprintf("part%d/file%d.go", task, round),
						"content": strings.Repeat(fmt.Sprintf("line %d of round %d\n", task, round), 30)})
				case round == rounds:
					return calls(id, "complete_task", in{"task_id": task, "summary": strings.Repeat("I made it so. ", 30)})
				}
				return says("Done with it.")
			}}.model()
		r := h.run(h.open(m, func(c *team.Config) { c.Teammates = 1 }))
		h.until("the last one", completed(muster.TaskID(tasks)))
		r.abandon()
		least, most := sent[5], sent[5]
		for i := 5; i <= tasks; i++ {
			least, most = min(least, sent[i]), max(most, sent[i])
		}
		t.Logf("tokens sent for a task: the first %d, the second %d, from the fifth to the last %d to %d", sent[1], sent[2],
			least, most)
		if sent[5] == 0 || float64(most) > 1.1*float64(least) {
			t.Errorf("from the fifth task to the last %d to %d tokens: %v", least, most, sent)
		}
	})
}
