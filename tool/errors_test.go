package tool

import (
	"testing"

	"muster"
)

// Hints for people are no hints for a model, which cannot type commands of muster.
func TestHintsForPeople(t *testing.T) {
	for hint, want := range map[string]string{
		"":                           "no lane",
		"take another":               "no lane: take another",
		"see all:  muster task list": "no lane: see all:  task_list",
		"muster resume":              "no lane",
		"tell it:  muster mail send bob \"...\"\nor take another": "no lane: or take another",
	} {
		if got := ErrorText(muster.Errorf(muster.NotFound, "no lane").WithHint("%s", hint)); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
	}
}
