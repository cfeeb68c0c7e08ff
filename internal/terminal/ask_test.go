package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"muster/internal/testing/require"
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

func TestNoTerminal(t *testing.T) {
	null := require.Value(os.Open(os.DevNull))(t)
	defer null.Close()
	for _, name := range []string{"xterm", "dumb"} {
		t.Setenv("TERM", name)
		if _, err := Open(t.Context(), Options{In: null, Out: null}); !errors.Is(err, ErrNoTerminal) || strings.Contains(err.Error(), `"dumb"`) != (name == "dumb") {
			t.Errorf("TERM=%s: %v", name, err)
		}
	}
}
