package team_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// tenCents is the price of every reply in these tests.
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

// total is how many calls were answered.
func (p *payroll) total() (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, x := range p.answered {
		n += x
	}
	return n
}

// spent is what the ledger says of the last run.
func (h *house) spent(t *team.Team) *spend.Book {
	h.Helper()
	run, err := team.ReadSpending(h.Context(), t)
	if err != nil {
		h.Fatal(err)
	}
	return run
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
