package watch

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"muster"
	"muster/loop"
	"muster/team"
)

func TestAConversationIsFollowedUntilSomebodyReads(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "down")
	s.send(changedMsg{overview: overview()})
	more := func(pos muster.Pos, text string) {
		s.team.said = append(s.team.said, team.Said{Pos: pos, Kind: team.SaidByIt, Text: text})
		s.send(changedMsg{overview: overview()})
	}
	for i := range 20 {
		more(muster.Pos(i+1), fmt.Sprintf("reply %d", i+1))
	}
	s.has("reply 20", "follows")
	s.keys("enter", "up")
	more(30, "the newest")
	s.hasNot("the newest")
	s.has("G follows")
	s.keys("G")
	more(31, "newer still")
	s.has("the newest", "newer still", "follows")
}

// Words are seen while they stream in, and once only when the transcript has them.
func TestWordsAreSeenWhileTheyStreamIn(t *testing.T) {
	s := open(t, 80, 24)
	s.keys("tab", "down")
	w := words{}.follow(loop.TextDelta{Text: "I look at the "}).follow(loop.TextDelta{Text: "tests first,"})
	s.send(wordsMsg{"alice": w, "bob": words{}.follow(loop.TextDelta{Text: "not mine"})})
	s.has("I look at the tests first,")
	s.hasNot("not mine")
	w = w.follow(loop.TextDelta{Text: " because"}).follow(loop.TurnEnded{})
	s.team.said = said[:3]
	s.send(wordsMsg{"alice": w})
	if got := strings.Count(s.picture(), "I look at"); got != 1 {
		t.Errorf("it is there %d times:\n%s", got, s.picture())
	}
	for i := range 20 {
		w = w.follow(loop.ToolProgress{Text: fmt.Sprintf("test %d passed", i+1)})
	}
	s.send(wordsMsg{"alice": w})
	s.has("test 20 passed", "test 13 passed", "> bash go test")
	s.hasNot("test 12 passed")
	s.team.said = said[:4]
	s.send(wordsMsg{"alice": w.follow(loop.TextDelta{Text: "Next."})})
	s.hasNot("test 20 passed")
	s.has("FAIL: TestCountEmpty", "Next.")
	s.send(wordsMsg{"alice": w.follow(loop.ReplyDiscarded{})})
	s.hasNot("Next.")
}

// The whole list of a member's steps stands above its conversation, until all of them are done.
func TestTheTodoListIsShownWhole(t *testing.T) {
	s := open(t, 80, 24)
	list := func(done, of int) (all []team.Step) {
		for i := range of {
			x := team.Step{Text: fmt.Sprintf("step %d", i+1), Status: team.StepPending}
			if i < done {
				x.Status = team.StepCompleted
			} else if i == done {
				x.Status = team.StepInProgress
			}
			all = append(all, x)
		}
		return all
	}
	result := func(pos muster.Pos, steps []team.Step) {
		s.team.said = append(s.team.said, team.Said{Pos: pos, Kind: team.SaidResult, Text: "the list", Steps: steps})
		s.send(changedMsg{overview: overview()})
	}
	s.team.said = said
	s.keys("tab", "down")
	s.hasNot("TODO")
	result(10, list(1, 3))
	s.has("TODO 1 of 3 completed\n", "│ [x] step 1\n", "│ [>] step 2\n", "│ [ ] step 3\n")
	s.golden("todo-80")
	result(11, list(12, 20))
	s.has("TODO 12 of 20 completed", "[x] step 12", "[>] step 13", "[ ] step 20") // what comes next
	s.hasNot("[x] step 10")
	result(12, nil) // of another tool
	s.has("TODO 12 of 20 completed")
	result(13, list(20, 20))
	s.hasNot("TODO")
	result(14, list(1, 3))
	result(15, []team.Step{})
	s.hasNot("TODO")
}

// Thinking is one line until all is wanted.
func TestThinkingIsFolded(t *testing.T) {
	s := open(t, 80, 30)
	s.keys("tab", "down")
	s.team.said = append(s.team.said, team.Said{Pos: 900, Kind: team.SaidThink, Text: "The handler is shared.\nSo both change."})
	s.send(changedMsg{overview: overview()})
	s.has("  thought (o shows all)")
	s.hasNot("The handler is shared.")
	s.keys("o")
	s.has("  The handler is shared.", "  So both change.")
}

// Each result stands below its call, in whatever order the calls end, and what is seen does not move.
func TestResultsStandBelowTheirCalls(t *testing.T) {
	s := open(t, 80, 30)
	s.keys("tab", "down")
	add := func(kind team.SaidKind, call, tool, text string) {
		s.team.said = append(s.team.said, team.Said{Pos: muster.Pos(len(s.team.said) + 1), Kind: kind, Call: call, Tool: tool, Text: text})
		s.send(changedMsg{overview: overview()})
	}
	add(team.SaidCall, "1", "bash", "ls")
	add(team.SaidResult, "1", "", "go.mod")
	add(team.SaidCall, "2", "grep", "old")
	add(team.SaidCall, "3", "grep", "new")
	add(team.SaidCall, "4", "grep", "last")
	add(team.SaidResult, "4", "", "two\nlines")
	add(team.SaidResult, "2", "", "routes.go:12")
	add(team.SaidResult, "3", "", "none")
	check := func() {
		t.Helper()
		text := s.picture()
		for _, part := range []string{"> bash ls", "go.mod", "> grep old", "routes.go:12", "> grep new", "none", "> grep last", "two", "lines"} {
			at := strings.Index(text, part)
			if at < 0 {
				t.Fatalf("%q is not in its place:\n%s", part, s.picture())
			}
			text = text[at+len(part):]
		}
	}
	check()
	s.send(tea.WindowSizeMsg{Width: 90, Height: 30}) // all rows are made anew
	check()
}

// A reader who has gone up stays at their place when the window is resized and all rows are made anew.
func TestResizingKeepsThePlace(t *testing.T) {
	s := open(t, 80, 30)
	s.keys("tab", "down")
	for i := range 60 {
		id := fmt.Sprint(i)
		s.team.said = append(s.team.said,
			team.Said{Pos: muster.Pos(2*i + 1), Kind: team.SaidCall, Call: id, Tool: "grep", Text: "step-" + id},
			team.Said{Pos: muster.Pos(2*i + 2), Kind: team.SaidResult, Call: id, Text: "found"})
		s.send(changedMsg{overview: overview()})
	}
	s.keys("enter", "pgup", "pgup")
	first := regexp.MustCompile(`step-\d+`).FindString(s.picture())
	s.send(tea.WindowSizeMsg{Width: 82, Height: 30})
	if now := regexp.MustCompile(`step-\d+`).FindString(s.picture()); first == "" || first == "step-0" || now != first {
		t.Errorf("%q was the first call that is seen, and %q is:\n%s", first, now, s.picture())
	}
}

// Below a call that edits a file stands what it changes.
func TestAnEditIsShown(t *testing.T) {
	s := open(t, 120, 30)
	s.team.said = []team.Said{{Pos: 1, At: 4901, Kind: team.SaidCall, Tool: "edit_file", Text: "count.go",
		Input: []byte(`{"path":"count.go","old_string":"one\ntwo","new_string":"one\n\tthree\u001b[2J\nfour"}`)}}
	s.keys("tab", "down", "enter")
	s.has("> edit_file count.go +2 -1", "-two", "+    three[2J", "+four")
}
