package recording

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"muster/internal/testing/tier"
)

// work has members take steps that others see, with pauses of any length in between, and returns what they saw.
func work(t *testing.T, turns *Turns, seed uint64) (seen []string) {
	t.Helper()
	var all sync.WaitGroup
	for m := range 5 {
		pause := rand.New(rand.NewPCG(seed, uint64(m)))
		sleep := func() { <-time.After(time.Duration(pause.IntN(1000)) * time.Millisecond) }
		who := fmt.Sprintf("m%d", m)
		all.Go(func() {
			for i := range 20 {
				sleep()
				err := turns.Step(t.Context(), who, func() error {
					seen = append(seen, fmt.Sprintf("%s %d", who, i))
					turns.Outside(t.Context(), sleep)
					seen = append(seen, who+" is back")
					why, _ := turns.Pause(t.Context(), func() string { sleep(); return fmt.Sprint(pause.IntN(9)) })
					fact, _ := turns.Note(fmt.Sprint(pause.IntN(9)))
					seen = append(seen, who+" "+why+fact)
					return turns.Step(t.Context(), who, func() error { return nil }) // a part of this one
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	return seen
}

// Whatever the members' own pauses are, a run that is played takes the recorded path.
func TestTurnsAreTakenInTheRecordedOrder(t *testing.T) {
	tier.All(t)
	synctest.Test(t, func(t *testing.T) {
		var plan []Step
		want := work(t, recordTurns(func(s Step) { plan = append(plan, s) }), 1)
		if len(plan) < 300 {
			t.Fatalf("only %d steps", len(plan))
		}
		for seed := range uint64(20) {
			if got := work(t, playTurns(slices.Clone(plan), nil), seed); !slices.Equal(got, want) {
				t.Fatalf("with the pauses %d: %q", seed, got)
			}
		}
		if got := work(t, recordTurns(func(Step) {}), 2); slices.Equal(got, want) {
			t.Error("without an order the path is the same, so this test shows nothing")
		}
	})
}

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
