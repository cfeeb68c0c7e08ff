package recording

import (
	"context"
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

// A member that is cancelled takes no step any more, and what it still did when it was recorded holds nobody up.
func TestWhoIsCancelledHoldsNobodyUp(t *testing.T) {
	tier.All(t)
	synctest.Test(t, func(t *testing.T) {
		turns := playTurns([]Step{{Who: "a"}, {Who: "a 7"}, {Who: "b"}, {Who: "a leaves"}, {Who: "b"}}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := turns.Step(ctx, "a", func() error { t.Error("it took a step"); return nil }); err == nil {
			t.Error("no error")
		}
		var order []string
		var all sync.WaitGroup
		for _, who := range []string{"b", Leaving("a")} {
			all.Go(func() {
				_ = turns.Step(t.Context(), who, func() error { order = append(order, who); return nil })
				if who == "b" {
					_ = turns.Step(t.Context(), who, func() error { order = append(order, who); return nil })
				}
			})
		}
		all.Wait()
		if !slices.Equal(order, []string{"b", "a leaves", "b"}) {
			t.Errorf("the order is %q", order)
		}
	})
}

// Where the recording of a run that was cut off ends, its replay ends.
func TestTheEndOfARunThatWasCutOff(t *testing.T) {
	tier.All(t)
	ended := 0
	turns := playTurns([]Step{{Who: "a"}}, func() { ended++ })
	nothing := func() error { return nil }
	if err := turns.Step(t.Context(), "a", nothing); err != nil || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := turns.Step(ctx, "a", nothing); err == nil || ended != 1 {
		t.Errorf("%v, ended %d times", err, ended)
	}
}
