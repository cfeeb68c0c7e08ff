package terminal

import (
	"fmt"
	"strings"
	"testing"
)

// A question stands in the place of the input until one of its keys is pressed, and then the input is as it was.
func TestAsk(t *testing.T) {
	k := newKeyboard(Options{})
	k.screen.resize(30, 10)
	k.press("draft")
	k.screen.Update(askMsg{question{"the team is at work: s stops it, Esc stays", []string{"s", "esc"}}})
	if shown := k.screen.View().Content; !strings.Contains(shown, "the team is at work:") || strings.Contains(shown, "draft") {
		t.Errorf("asked:\n%s", shown)
	}
	k.press("x<enter>s")
	if got, want := fmt.Sprint(k.events), fmt.Sprint([]Event{Answer{"s"}}); got != want {
		t.Errorf("events %v, want %v", got, want)
	}
	if shown := k.screen.View().Content; !strings.Contains(shown, "> draft") {
		t.Errorf("after the answer:\n%s", shown)
	}
}
