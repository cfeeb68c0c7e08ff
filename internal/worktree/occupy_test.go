package worktree_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"muster"
	"muster/internal/worktree"
)

func TestOccupy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	nobody := worktree.Occupant{}
	alice, bob := worktree.Occupant{Member: "alice", Host: "host-1.1"}, worktree.Occupant{Member: "bob", Host: "host-2.1"}
	again := worktree.Occupant{Member: "alice", Host: "host-1.2"}
	for _, step := range []struct {
		was, who, then worktree.Occupant
		err            error
	}{
		{nobody, alice, alice, nil},
		{nobody, bob, alice, muster.ErrHeld},
		{bob, nobody, alice, muster.ErrHeld}, // who leaves is not in it
		{alice, again, again, nil},           // taken over by another life of the process
		{alice, nobody, again, muster.ErrHeld},
		{again, nobody, nobody, nil},
		{nobody, bob, bob, nil},
	} {
		if err := w.Occupy(w.ctx(), "one", step.was, step.who); !errors.Is(err, step.err) {
			t.Errorf("%v in the place of %v: %v, want %v", step.who, step.was, err, step.err)
		}
		lane, err := w.Get(w.ctx(), "one")
		if now := worktree.OccupantOf(lane); err != nil || now != step.then {
			t.Errorf("%v in the place of %v: it is %v, %v", step.who, step.was, now, err)
		}
	}
	check(t, w.Release(w.ctx(), "one"))
	if lane, _ := w.Get(w.ctx(), "one"); worktree.OccupantOf(lane) != bob {
		t.Errorf("another change of the row lost its occupant: %v", lane)
	}
	wants(t, w.Occupy(w.ctx(), "none", nobody, bob), muster.ErrNotFound, "")
}

// Several processes, none of which knows of the others, find a lane empty at one moment.
func TestOccupyHasOneWinner(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.create("one")
	var wg sync.WaitGroup
	won := make(chan worktree.Occupant, 8)
	for n := range cap(won) {
		other := openWorld(t, w.root, worktree.Options{})
		wg.Go(func() {
			me := worktree.Occupant{Member: "alice", Host: muster.HostID(fmt.Sprintf("host-%d.1", n))}
			switch err := other.Occupy(other.ctx(), "one", worktree.Occupant{}, me); {
			case err == nil:
				won <- me
			case !errors.Is(err, muster.ErrHeld):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	lane, err := w.Get(w.ctx(), "one")
	if err != nil || len(won) != 1 || worktree.OccupantOf(lane) != <-won {
		t.Errorf("%d won, and it is %v, %v", len(won), worktree.OccupantOf(lane), err)
	}
}
