//go:build linux

package e2e

import (
	"path/filepath"
	"testing"

	"muster/internal/testing/tier"
	"muster/journal"
)

// From the full screen alone a team is started, stopped, resumed, and its work is taken. The screen is left between two of
// them, and the team goes on.
func TestWatchStartsStopsAndTakes(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.screen(eager(patient))
	s.Keys("muster watch", "Enter")
	s.Wait(`(?s)press N to start one.*N new run`)
	s.Keys("N")
	s.Wait(`goal of a new run:`)
	s.Keys("greet them", "Enter")
	s.Wait(`(?s)goal: greet them.*alice +working.*S stop`)
	s.Keys("q")
	s.Wait(`(?s)the team goes on.*stop it: muster stop.*\$ $`)
	s.Keys("clear; muster watch", "Enter")
	s.Wait(`(?s)goal: greet them.*alice +working.*S stop`)
	w.awaitsEvent("alice works", aliceWorks)
	s.Keys("S")
	s.Wait(`stop the team\? y: yes`)
	s.Keys("y")
	s.Wait(`(?s)the team has stopped; its state is kept.*R resume`)
	s.Keys("R")
	s.Wait(`(?s)alice +working.*the team goes on, in the background.*S stop`)
	w.write(filepath.Join(w.base, "go"), "")
	w.awaitsEvent("the end of the run", kind(journal.RunEnded))
	s.Wait(`(?s)1 finished.*N new run.*T take`)
	s.Keys("T")
	s.Wait(`take 1 commit of muster/repo to main\? y: yes`)
	s.Keys("y")
	s.Wait(`(?s)came to main by fast-forward.*greet`)
	if got := w.read("greeting"); got != "hello\n" {
		t.Errorf("the greeting is %q", got)
	}
	s.Keys("q")
	s.Wait(`\$ $`)
	s.Cooked()
	w.awaits("nothing of it runs", w.alone)
}
