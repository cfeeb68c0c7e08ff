package watch

import (
	"fmt"
	"strings"
	"testing"

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
