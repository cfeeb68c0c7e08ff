package view

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/spend"
	"muster/journal"
	"muster/llm"
)

// bookOf is a book of calls of 1,000 tokens, each "member task dollars"; "?" is a price that is not known.
func bookOf(calls ...string) spend.Book {
	b := spend.NewBook()
	for i, c := range calls {
		f := strings.Fields(c)
		call := spend.Call{State: spend.Ended, ID: string(rune('a' + i)), Member: muster.Name(f[0]), Model: "p/m",
			Task: muster.TaskID(f[1][0] - '0'), Usage: llm.Usage{Input: 800, CacheRead: 150, Output: 50}}
		if f[2] != "?" {
			d, err := spend.ParseBudget(f[2])
			if err != nil {
				panic(err)
			}
			call.Dollars = &d.Dollars
		}
		b.Add(call)
	}
	return *b
}

func TestSummarySaysWhatWasSpent(t *testing.T) {
	tasks := []muster.Task{landedTask(1, "tokenizer", "alice", "9c01d3eff", "ok"),
		landedTask(2, "counter", "bob", "3f2a91cff", "ok"),
		{ID: 3, Subject: "look", Status: muster.Completed, Owner: "bob", CompletedBy: "bob", UpdatedAt: 1011},
		{ID: 5, Subject: "docs", Status: muster.Pending, CreatedAt: 1001}}
	run := muster.Run{Check: "go test ./...", Budget: "5", StartedAt: 1000}
	book := bookOf("lead 0 0.11", "alice 1 0.2", "bob 2 0.05", "bob 3 0.01", "bob 5 0.07", "bob 7 0.02")
	end := Summary{Run: run, Code: 3, Text: "the budget of $5.00 is spent", GoOn: "--budget 8",
		Spending: NewSpending(run, "demo", book, tasks), Tasks: tasks}
	same(t, summaryOf(t, end), `2 of 4 tasks landed on muster/demo, 1 done without a change, each checked with go test ./...; 1 is left: the budget of $5.00 is spent
 5  docs       ready      nobody has taken it

#  TASK       OWNER  COMMIT   TRIES  CHECK       TIME  TOKENS   COST
1  tokenizer  alice  9c01d3e      1  ok 0.7s                   $0.20
2  counter    bob    3f2a91c      1  ok 0.7s                   $0.05
3  look       bob    -               no change                 $0.01
                                                14.2s          $0.46

spent:      $0.46 of $5.00, $0.23 for each task that landed, $0.09 on work that did not land
see them:   git log --oneline muster/demo
take them:  muster merge
go on:      muster resume --budget 8
`)
	// A run without a task says it, too, and one whose model has no price says nothing of money.
	end.Tasks, end.Spending = nil, NewSpending(run, "demo", bookOf("lead 0 5"), nil)
	same(t, summaryOf(t, end), `the budget of $5.00 is spent

spent:      $5.00 of $5.00
go on:      muster resume --budget 8
`)
	end = Summary{Run: muster.Run{StartedAt: 1000}, Tasks: tasks[:1], Spending: NewSpending(muster.Run{}, "demo",
		bookOf("alice 1 none"), tasks[:1])}
	if got := summaryOf(t, end); strings.Contains(got, "$") || strings.Contains(got, "spent") || strings.Contains(got, "COST") {
		t.Error(got)
	}
	end.Spending = NewSpending(muster.Run{}, "demo", bookOf("alice 1 ?", "alice 1 0.02"), tasks[:1])
	if got := summaryOf(t, end); !strings.Contains(got, "spent:      at least $0.02 (the price of 1 call is not known)\n") {
		t.Error(got)
	}
	end.Spending = NewSpending(muster.Run{}, "demo", bookOf("alice 1 ?"), tasks[:1])
	if got := summaryOf(t, end); !strings.Contains(got, "spent:      price unknown\n") || strings.Contains(got, "COST") {
		t.Error(got)
	}
}

func TestSpendingByMemberTaskAndModel(t *testing.T) {
	tasks := []muster.Task{landedTask(1, "tokenizer\n", "alice", "9c01d3eff", "ok")}
	s := NewSpending(muster.Run{Budget: "20k tokens"}, "demo", bookOf("lead 0 0.11", "alice 1 0.2", "alice 1 ?"), tasks)
	same(t, s.Draw(Screen{}), `team demo   3.0k of 20k tokens, at least $0.31, 3 calls

MEMBER  CALLS  INPUT  CACHED  OUTPUT            COST
alice       2   1.6k     300     100  at least $0.20
lead        1    800     150      50           $0.11

TASK         CALLS  INPUT  CACHED  OUTPUT            COST
1 tokenizer      2   1.6k     300     100  at least $0.20
no task          1    800     150      50           $0.11

MODEL  CALLS  INPUT  CACHED  OUTPUT            COST
p/m        3   2.4k     450     150  at least $0.31
the price of 1 call is not known; say it: models: in your own config.yaml
`)
}

func TestStatusSaysWhatWasSpent(t *testing.T) {
	o := Overview{Team: "demo", Run: muster.Run{Goal: "go", StartedAt: 1000, Budget: "5"}, Now: muster.Time(1030), Alive: true,
		Spending: bookOf("lead 0 0.11", "alice 1 0.2"), Members: []Member{
			{Member: muster.Member{Name: "lead", Role: "lead", Status: muster.Idle}, Alive: true},
			{Member: muster.Member{Name: "bob", Role: "coder", Status: muster.Idle}, Alive: true}}}
	got := o.Draw(Screen{})
	for _, want := range []string{"goal: go    $0.31 of $5.00    0 s\n", "TURNS   COST\n", "    0  $0.11\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("it lacks %q:\n%s", want, got)
		}
	}
	o.Spending, o.Run.Budget = bookOf("lead 0 ?"), ""
	if got := o.Draw(Screen{}); !strings.Contains(got, "goal: go    price unknown    0 s\n") || strings.Contains(got, "COST") {
		t.Error(got)
	}
}

func TestLivingMembersSayWhatTheyHaveSpent(t *testing.T) {
	p := NewProgress(Options{OnlyLines: true, Print: func(string) {},
		Task: func(muster.TaskID) (muster.Task, error) { return muster.Task{}, nil }})
	p.SetSpent("5", bookOf("alice 1 0.2", "lead 0 1"))
	for _, e := range []muster.Event{at(journal.MemberWorking, "alice", 0), at(journal.TurnEnded, "alice", 0, "dollars", 0.25),
		at(journal.TurnEnded, "alice", 0, "dollars", 0.5, "subagent", true), at(journal.MemberWorking, "bob", 0),
		at(journal.TurnEnded, "bob", 0)} {
		p.Event(e)
	}
	got := strings.Join(p.Rows(muster.Time(1000), 60, 0), "\n")
	if !strings.Contains(got, "alice     working  $0.95") || !strings.HasSuffix(got, "\nteam      $1.95 of $5.00") {
		t.Error(got)
	}
	e := at(journal.TurnEnded, "bob", 0)
	e.Fields = map[string]any{"dollars": nil}
	p.Event(e)
	if got := strings.Join(p.Rows(muster.Time(1000), 60, 0), "\n"); !strings.Contains(got, "bob       working  unknown") ||
		!strings.HasSuffix(got, "\nteam      at least $1.95 of $5.00") {
		t.Error(got)
	}
}
