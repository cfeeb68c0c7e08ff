package view

import (
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

func TestOverview(t *testing.T) {
	o := Overview{
		Team: "api-v2", Run: muster.Run{Goal: "move the API to v2 " + strings.Repeat("and on ", 20), StartedAt: 1000},
		Now: muster.Time(5000), Lived: 12 * time.Minute,
		Members: []Member{
			{Member: muster.Member{Name: "lead", Role: "lead", Status: muster.Idle, IdleReason: muster.IdleMessages,
				Since: 4960, Turns: 14}, Alive: true},
			{Member: muster.Member{Name: "alice", Role: "coder", Status: muster.Working, Task: 4, Since: 4000,
				Turns: 31}, Alive: true},
			{Member: muster.Member{Name: "bob", Role: "tester", Status: muster.Working, Task: 9}},
		},
		Alive: true, Tasks: []muster.Task{{ID: 4, Subject: "handlers"}, {ID: 9, Subject: "report"}},
		Needy: []muster.Task{{ID: 9, Subject: "report", Result: "came back 3 times"}},
		Board: map[string]int{"landed": 4, "landing": 1, "in_progress": 1, "waiting": 2, "needs_attention": 1},
		Lanes: map[muster.LaneStatus]int{muster.LaneActive: 2, muster.LaneFailed: 1},
		Requests: []muster.Request{{ID: "7f2c91aa", Kind: muster.AskPlan, From: "carol", To: "lead", TaskID: 9,
			CreatedAt: 4820}, {ID: "1", To: "carol"}},
		Mail: 1,
	}
	e := at(journal.ToolStarted, "alice", 4, "tool", "bash", "text", "go test")
	e.At = 4997
	o.Presence.Apply(e)
	drawn := o.Draw(Screen{Width: 110})
	for _, want := range []string{
		"\nalice   coder   4 handlers: bash go test   3s     31\n",
		"\nlead    lead    waiting for the team      40s     14\n",
		"\nbob     tester  dead: 9 report                     0\n",
		"\nBOARD   4 landed, 1 landing, 1 working, 2 waiting, 1 needs you\nLANES   2 active, 1 failed\nNEEDS YOU\n",
		"  7f2c91aa  plan of carol for 9, waits 3 min  muster approve 7f2c91aa | muster reject 7f2c91aa \"why\"\n",
		"  task 9    report: came back 3 times         muster task retry 9\n",
		"  mail      1 mail for you                    muster mail list --take\n",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("lacks %q:\n%s", want, drawn)
		}
	}
	first, _, _ := strings.Cut(drawn, "\n")
	if !strings.HasSuffix(first, "...    12 min") || text.Columns(first) >= 110 {
		t.Errorf("%q", first)
	}
}
