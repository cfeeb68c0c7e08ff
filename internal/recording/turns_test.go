package recording

import (
	"errors"
	"testing"
)

// Without an order everything is done at once, and waits are waits.
func TestNoOrder(t *testing.T) {
	var turns *Turns
	errDone := errors.New("done")
	if err := turns.Step(t.Context(), "a", func() error { return errDone }); !errors.Is(err, errDone) {
		t.Error(err)
	}
	done := 0
	turns.Outside(t.Context(), func() { done++ })
	turns.Exclusive(t.Context(), func() { done++ })
	why, waited := turns.Pause(t.Context(), func() string { return "why" })
	fact, played := turns.Note("fact")
	if done != 2 || why != "why" || !waited || fact != "fact" || played || turns.Plays() {
		t.Errorf("%d were done, %q, %v, %q, %v", done, why, waited, fact, played)
	}
}
