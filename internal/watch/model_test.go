package watch

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// Each view has its picture at 80 columns; two of them are drawn on a narrow and on a wide screen too.
func TestPictures(t *testing.T) {
	for _, size := range []struct{ width, height int }{{80, 24}, {30, 20}, {200, 30}} {
		s := open(t, size.width, size.height)
		s.team.said, s.team.diff = said, diff
		s.golden(fmt.Sprintf("opens-%d", size.width)) // on the plan that waits
		s.keys("tab", "down", "enter")
		s.golden(fmt.Sprintf("conversation-%d", size.width))
	}
	s := open(t, 80, 24)
	s.team.said, s.team.diff = said, diff
	s.keys("enter")
	s.golden("plan-80")
	s.keys("r", "too much at once")
	s.golden("reject-80")
	s.keys("esc", "esc", "tab", "tab", "G", "up", "up", "up", "up", "d", "enter", "pgup")
	s.keys("esc", "home", "down", "down", "enter", "end")
	s.golden("diff-80")
	s.keys("esc", "g")
	s.golden("tree-80")
	s.keys("?")
	s.golden("keys-80")
}

// What is selected stays selected when the board changes around it.
func TestARefreshMovesNothing(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "tab", "down", "down") // 2 counter
	s.has("TASK 2 counter")
	o := overview()
	o.Tasks[5].Status = muster.NeedsAttention
	o.Tasks[3].Status = muster.Completed
	s.send(changedMsg{overview: o})
	s.has("TASK 2 counter", ">  2 working   counter")
}

// n goes to what waits for the user, one after the other; d on a member shows what its task has changed.
func TestKeysThatGoElsewhere(t *testing.T) {
	s := open(t, 120, 30)
	s.team.diff = diff
	s.keys("tab", "down", "down")
	s.keys("n")
	s.has("PLAN for 4 reader")
	s.keys("n")
	s.has("TASK 7")
	s.keys("n", "n")
	s.has("PLAN for 4 reader")
	s.keys("tab", "down") // a member with a task
	s.keys("d")
	s.has("TASK 4 reader", "return 0")
}

// A question that comes is shown at once while the user has chosen nothing, and what was answered gives way.
func TestQuestionsComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quiet := func() view.Overview {
			o := overview()
			o.Requests, o.Needy, o.Mail = nil, nil, 0
			return o
		}
		s := openWith(t, 120, 30, quiet())
		s.hasNot("PLAN")
		s.send(changedMsg{overview: overview()})
		s.has("PLAN for 4 reader")
		time.Sleep(time.Minute)
		s.keys("a")
		o := overview()
		o.Requests = nil
		s.send(changedMsg{overview: o})
		s.hasNot("PLAN for 4 reader")
		s.has("TASK 7")
		s.send(changedMsg{overview: quiet()})
		s.send(changedMsg{overview: overview()})
		s.hasNot("PLAN for 4") // the user has chosen something
	})
}

func TestTheMouseSelectsAndScrolls(t *testing.T) {
	s := open(t, 80, 12)
	s.send(tea.MouseClickMsg{X: 5, Y: 2})
	s.has("PLAN for 4 reader")
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelDown})
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelDown})
	s.hasNot("Rewrite the reader")
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelUp})
	s.send(tea.MouseWheelMsg{X: 60, Y: 5, Button: tea.MouseWheelUp})
	s.has("Rewrite the reader")
	s.send(tea.MouseClickMsg{X: 5, Y: 5})
	s.has("> lead", "nothing was said yet")
	if s.keys("M"); s.m.View().MouseMode != tea.MouseModeNone {
		t.Error("the terminal has not got its mouse back")
	}
}

func TestNoTeamYet(t *testing.T) {
	s := &screen{t, newModel(view.Paint{}, muster.Time(5000)), &fake{}}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 10})
	s.has("no team has worked here yet", "muster run")
	s.keys("a", "m", "d", "enter", "down", "g", "/", "esc", "tab", "?", "e", "c", "esc") // none of them needs a team
	s.has("no team has worked here yet")
}

// An error is in sight until the next reading succeeds, and what was read before stays.
func TestAnErrorHidesNothing(t *testing.T) {
	s := open(t, 80, 24)
	s.send(changedMsg{err: muster.Errorf(muster.Corrupt, "the board cannot be read").WithHint("muster doctor")})
	s.has("the board cannot be read: muster doctor", "NEEDS YOU 3", "MEMBERS 5")
	s.send(changedMsg{overview: overview()})
	s.hasNot("cannot be read")
}

// No text of a model steers the terminal, and no secret is seen.
func TestTextsAreMadeSafe(t *testing.T) {
	s := open(t, 80, 24)
	s.m.hide = func(text string) string { return strings.ReplaceAll(text, "hunter2", "[hidden]") }
	s.team.said = []team.Said{{Pos: 1, Kind: team.SaidByIt, Text: "hunter2\x1b]0;title\a \u202egnirts\tend"}}
	o := overview()
	o.Tasks[1].Subject, o.Members[1].Doing = "a\x1b[2J\nb hunter2", "\x1b[31mred\r\nline"
	s.send(changedMsg{overview: o})
	s.keys("tab", "down")
	s.has("[hidden]]0;title gnirts    end")
	s.keys("tab", "down", "down")
	text := s.m.View().Content
	if strings.ContainsAny(text, "\x1b\a\r\t\u202e") || strings.Contains(text, "hunter2") {
		t.Errorf("the screen is\n%q", text)
	}
}

// With colour the same words stand in the same places.
func TestColoursTakeNoRoom(t *testing.T) {
	plain, coloured := open(t, 80, 24), open(t, 80, 24)
	coloured.m.paint = view.Colours(nil)
	coloured.team.said, plain.team.said = said, said
	for _, k := range []string{"tab", "down", "enter", "esc", "tab", "down", "down", "enter", "e", "c", "?"} {
		plain.keys(k)
		coloured.keys(k)
		if a, b := plain.picture(), ansi.Strip(coloured.picture()); strings.ReplaceAll(a, " ", "") != strings.ReplaceAll(b, " ", "") {
			t.Errorf("after %s:\n%s\n%s", k, a, b)
		}
	}
	if !strings.Contains(coloured.picture(), "\x1b[") {
		t.Error("there is no colour")
	}
}
