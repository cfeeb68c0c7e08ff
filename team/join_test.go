package team_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/tier"
	"muster/journal"
	"muster/team"
)

// joining is a process that has joined.
type joining struct {
	*house
	stop context.CancelCauseFunc
	done chan struct{}
	why  team.Ending
	err  error
}

func (h *house) join(words string, w team.Workers) *joining {
	h.Helper()
	t := h.open(h.scripted(words), nil)
	ctx, stop := context.WithCancelCause(h.Context())
	j := &joining{house: h, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(j.done)
		j.why, j.err = t.Join(ctx, &w)
	}()
	return j
}

func (j *joining) ends(why team.Ending, within time.Duration) {
	j.Helper()
	select {
	case <-j.done:
	case <-time.After(within):
		j.Fatalf("it goes on after %v\n%s", within, j.tail())
	}
	if j.err != nil || j.why != why {
		j.Fatalf("it ended with %q, %v; want %q\n%s", j.why, j.err, why, j.tail())
	}
}

const crowded = `
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two}}, {task_create: {subject: three}}]
    - wait: 30s
      do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: '(?m)^Task #(?P<id>\d+): (?P<what>\w+)'
    turns:
      - wait: 1m
        do: [{bash: {command: "echo ${what} > ${what}"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "did ${what}"}}]
`

func TestJoinWorksAndLeavesWithTheRun(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		if _, err := h.open(cast{}.model(), nil).Join(h.Context(), &team.Workers{}); !errors.Is(err, muster.ErrNotFound) {
			t.Errorf("without a run: %v", err)
		}
		r := h.start(crowded, nil)
		h.until("the lead waits", is(journal.TaskCreated, "lead"))
		j := h.join(crowded, team.Workers{N: 2, Role: "coder"})
		r.ends(0, time.Hour)
		j.ends(team.RunOver, time.Minute)
		owners := map[muster.Name]int{}
		for id := range 3 {
			owners[h.task(muster.TaskID(id+1)).Owner]++
		}
		if owners["worker-1"]+owners["worker-2"] != 3 || len(owners) != 2 {
			t.Errorf("the owners are %v", owners)
		}
		for _, name := range []muster.Name{"worker-1", "worker-2"} {
			if m := h.member(name); m.Status != muster.Shutdown || m.Role != "coder" {
				t.Errorf("%s is %s, %s", name, m.Status, m.Role)
			}
		}
	})
}

// The members of a process that leaves are taken over by one that lives, with their claims and conversations.
func TestJoinIsTakenOver(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(crowded, nil)
		h.until("the lead plans", is(journal.TaskCreated, "lead"))
		j := h.join(crowded, team.Workers{N: 1})
		h.until("it works", is(journal.TaskClaimed, "worker-1"))
		j.stop(muster.CauseUser)
		<-j.done
		if !errors.Is(j.err, muster.CauseUser) {
			t.Fatalf("interrupted: %v", j.err)
		}
		h.until("it is taken over", is(journal.MemberResumed, "worker-1"))
		r.ends(0, 2*time.Hour)
		for id := range 3 {
			if got := h.task(muster.TaskID(id + 1)); got.Owner != "worker-1" || got.Attempts != 0 {
				t.Errorf("task %d: %s, %d attempts", got.ID, got.Owner, got.Attempts)
			}
		}
	})
}

// A process that has joined goes on when the lead's dies, and takes its teammates over.
func TestJoinOutlivesTheLead(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(strings.Replace(crowded, "{task_create: {subject: three}}]", "{task_create: {subject: three}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]", 1), nil)
		h.until("alice works", is(journal.TaskClaimed, "alice"))
		j := h.join(crowded, team.Workers{N: 1})
		h.until("the worker works", is(journal.TaskClaimed, "worker-1"))
		r.interrupt()
		h.until("alice is taken over", is(journal.MemberResumed, "alice"))
		j.ends(team.NoWork, 3*time.Hour)
		for id := range 3 {
			if got := h.task(muster.TaskID(id + 1)); got.Status != muster.Completed {
				t.Errorf("task %d is %s", got.ID, got.Status)
			}
		}
	})
}

// The stop of a team is for the process of its lead. One that has joined must not take it away.
func TestStopOfATeamThatOthersHaveJoined(t *testing.T) {
	// On one core, whoever wakes first has decided before the other looks.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	for range tier.Amount(3, 8) { // who wakes first is left to chance
		bubbleOnGit(t, func(h *house) {
			r := h.start(crowded, nil)
			h.until("three tasks", func(e muster.Event) bool { return e.Kind == journal.TaskCreated && e.Task == 3 })
			j := h.join(crowded, team.Workers{N: 1})
			time.Sleep(10 * time.Second)
			if _, err := team.Halt(h.Context(), h.open(h.scripted(crowded), nil)); err != nil {
				t.Fatal(err)
			}
			if err := r.fails(); !errors.Is(err, muster.CauseUser) {
				t.Error(err)
			}
			j.stop(muster.CauseUser)
			<-j.done
		})
	}
}
