package view

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/spend"
	"muster/journal"
)

// What needs the user stands in the order of its kind, each with a command to type.
func TestNeeds(t *testing.T) {
	parked := func(name muster.Name) Member {
		return Member{Member: muster.Member{Name: name, Status: muster.Working, Doing: "parked until 14:32"}, Alive: true}
	}
	o := Overview{
		Run: muster.Run{Budget: "5", StartedAt: 1}, Now: muster.Time(100), Mail: 2, Alive: true,
		Requests: []muster.Request{{ID: "7f2c91aa", Kind: muster.AskPlan, From: "bob", To: muster.Lead, TaskID: 3,
			CreatedAt: 80}, {ID: "7f2c91ab", Kind: muster.AskPermission, From: "bob", To: muster.User, CreatedAt: 80, Deadline: 99}},
		Needy:    []muster.Task{{ID: 9, Subject: "report", Result: "came back 3 times"}},
		Members:  []Member{parked("alice"), parked("carol"), {Member: muster.Member{Name: "dave", Doing: "parked until 9:00"}}},
		Spending: spend.Book{Total: spend.Sum{Dollars: spend.FromFloat(4.2)}},
	}
	check := func(why string, o Overview, want ...string) {
		t.Helper()
		var got []string
		for _, n := range o.Needs() {
			got = append(got, n.Name+" | "+n.What+" | "+n.Command)
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("%s:\n%s\nwant\n%s", why, a, b)
		}
	}
	check("at work", o,
		`7f2c91aa | plan of bob for 3, waits 20 s | muster approve 7f2c91aa | muster reject 7f2c91aa "why"`,
		"task 9 | report: came back 3 times | muster task retry 9",
		"mail | 2 mails for you | muster mail list --take",
		"budget | $4.20 of $5.00 is spent: 84% | muster stop && muster resume --budget 8",
		"alice | and 1 more wait for the model until 14:32 | muster doctor")
	o.Requests, o.Needy, o.Mail, o.Members, o.Alive = nil, nil, 0, nil, false
	check("has stopped", o, "budget | $4.20 of $5.00 is spent: 84% | muster resume --budget 8")
	o.Run.Budget, o.Spending.Total.Input = "200k tokens", 250_000
	check("too many tokens", o,
		`budget | 250.0k of 200k tokens, $4.20 is spent: 125% | muster resume --budget "400k tokens"`)
	o.Run.Budget = "100"
	check("little is spent", o)
	warned := at(journal.BudgetWarned, "alice", 0, "scope", "day", "text", "$9.00 of $10.00 of today is spent: 90% of the budget")
	o.Presence.Apply(warned)
	check("the day", o, "budget | $9.00 of $10.00 of today is spent: 90% of the budget | muster config budget.day")
	o.Presence.Apply(at(journal.RunResumed, "", 0))
	check("after a resume", o)
	o.Run.Budget, o.Run.EndedAt = "5", 50
	check("has ended", o)
}
