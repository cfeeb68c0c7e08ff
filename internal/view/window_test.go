package view

import (
	"strings"
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	now := time.Date(2026, 11, 23, 15, 0, 0, 0, time.Local)
	w := Window{Member: "ada", Role: "coder", Model: "anthropic/claude-opus-5", Tokens: 31_200, Counted: 30_900,
		Window: 200_000, Limit: 170_000, Parts: []WindowPart{
			{Name: "results", Tool: "grep", Count: 1, Tokens: 100}, {Name: "images", Count: 2, Tokens: 3200},
			{Name: "results", Tool: "bash", Count: 14, Tokens: 18_000}, {Name: "tools", Count: 21, Tokens: 9900},
			{Name: "system prompt"}},
		Shortened: &Shortening{At: float64(now.Add(-time.Hour).Unix()), Why: "a new\ttask", Before: 51_000, After: 9000,
			Dropped: []WindowPart{{Name: "results", Tool: "bash", Tokens: 30_000}, {Name: "own words", Tokens: 4000},
				{Name: "mail", Tokens: 9}, {Name: "a", Tokens: 8}, {Name: "b", Tokens: 7}, {Name: "c", Tokens: 6},
				{Name: "d", Tokens: 5}}}}
	SortWindow(w.Parts)
	want := `ada   coder   anthropic/claude-opus-5
31.2k of 200.0k tokens, 16%; summarised from 170.0k on

PART             COUNT  TOKENS  SHARE
system prompt                0     0%
tools               21    9.9k    32%  ======
results of bash     14   18.0k    58%  ============
results of grep      1     100    <1%
images               2    3.2k    10%  ==

the provider counted 30.9k in the last request and its reply; the parts are estimated
made shorter at 14:00: a new task: 51.0k before, 9.0k after
left out: results of bash 30.0k, own words 4.0k, mail 9, a 8, b 7, c 6, 1 smaller part
`
	if got := w.Draw(Screen{}, now); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.Counted, w.Assumed, w.Model, w.Shortened.Dropped = 0, true, "", nil
	got := w.Draw(Screen{}, now)
	for _, part := range []string{"no model yet\n", " tokens that are assumed, 16%", "no reply has come yet", "9.0k after\n"} {
		if !strings.Contains(got, part) {
			t.Errorf("no %q in\n%s", part, got)
		}
	}
	if strings.Contains(got, "left out") {
		t.Errorf("nothing was left out:\n%s", got)
	}
}
