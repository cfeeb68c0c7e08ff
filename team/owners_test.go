package team_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/testing/require"
	"muster/internal/testing/tapped"
	"muster/internal/testing/tier"
	"muster/internal/transcript"
	"muster/journal"
	"muster/loop"
	"muster/team"
)

// slowAlice is a team whose alice has something in her lane and then thinks for minutes, while bob, of whatever process,
// does the same task at once.
const slowAlice = oneTask + `scenes:
  - cue: 'Task #1: one'
    who: [alice]
    turns:
      - do: [{write_file: {path: first.txt, content: x}}]
      - wait: 4m
        do: [{complete_task: {task_id: 1, summary: late}}]
  - cue: 'Task #1: one'
    turns:
      - do: [{write_file: {path: bob.txt, content: x}}]
      - wait: 1m
        do: [{complete_task: {task_id: 1, summary: bob}}]
`

func (h *house) written(who muster.Name) muster.Name {
	h.Helper()
	h.until(string(who)+" has written", func(e muster.Event) bool {
		return e.Kind == journal.ToolEnded && e.Member == who && e.Text("tool") == "write_file"
	})
	return h.task(1).Worktree
}

// lateWrite is what a command still writes that the lane's last owner had started.
func (h *house) lateWrite(lane muster.Name, file string) {
	h.Helper()
	require.NoError(h, os.WriteFile(filepath.Join(h.root, ".worktrees", string(lane), file), []byte("late\n"), 0o644))
}

func (h *house) revokeFirst() {
	h.Helper()
	require.Value(h.board.Revoke(h.Context(), 1, h.task(1).Fence, muster.User, "enough"))(h)
}

func (h *house) putAside(lane muster.Name) {
	h.Helper()
	h.until(string(lane)+" is put aside", func(e muster.Event) bool { return e.Kind == journal.LaneArchived && e.Text("lane") == string(lane) })
}

func (h *house) archived(lane muster.Name) string {
	h.Helper()
	ref := "refs/muster/archive/" + string(lane) + "-1" // of its first archive
	if h.meadow != nil {
		h.meadow.mu.Lock()
		defer h.meadow.mu.Unlock()
		return names(slices.Sorted(maps.Keys(h.meadow.kept[ref])))
	}
	if h.git("for-each-ref", ref) == "" {
		return ""
	}
	return names(strings.Fields(h.git("ls-tree", "--name-only", ref)))
}

// A task is taken from an owner whose process lives on, and claimed in another one: what the first owner's commands still
// write is not in what lands. The same holds when that process has taken the owner over from one that died.
func TestLaneOfALivingProcessIsLeftAlone(t *testing.T) {
	t.Parallel()
	for what, again := range map[string]bool{"its first": false, "its next": true} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				r := h.start(slowAlice, nil)
				old := h.written("alice")
				if synctest.Wait(); again {
					r.interrupt()
					r = h.resume(slowAlice, nil)
					h.until("alice goes on", is(journal.MemberResumed, "alice"))
				}
				j := h.join(slowAlice, team.Workers{N: 1, Role: "coder"})
				synctest.Wait()
				h.revokeFirst()
				if lane := h.written("worker-1"); lane == old {
					t.Errorf("worker-1 works in %s, where alice's commands run", lane)
				}
				h.lateWrite(old, "late.txt")
				h.until("landed", completed(1))
				if files := h.onTarget(); files != "bob.txt" {
					t.Errorf("the target has %q", files)
				}
				h.putAside(old)
				if files := h.archived(old); files != "first.txt late.txt" {
					t.Errorf("of alice's work is kept: %q", files)
				}
				r.ends(0, 2*time.Hour)
				j.ends(team.NoWork, time.Minute)
				if files, _ := os.ReadDir(filepath.Join(h.root, ".worktrees", string(old))); files != nil {
					t.Errorf("alice's lane is still there: %v", files)
				}
			})
		})
	}
}

// An owner that lives on has left its lane in order: the next one, in another process, goes on with what it left.
func TestLaneThatWasLeftIsInherited(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(slowAlice, nil)
		old := h.written("alice")
		j := h.join(slowAlice, team.Workers{N: 1, Role: "coder"})
		synctest.Wait()
		h.shutDownAlice(func(q *muster.Request) { q.Force = true })
		if lane := h.written("worker-1"); lane != old {
			t.Errorf("worker-1 works in %s, alice's work is in %s", lane, old)
		}
		r.ends(0, time.Hour)
		j.ends(team.RunOver, time.Minute)
		if files := h.onTarget(); files != "bob.txt first.txt" {
			t.Errorf("the target has %q", files)
		}
	})
}

// A process dies between the claim of a task and its member's first step into the lane, in which an earlier owner lives:
// whoever takes the member over does not stand there either, not even before it is told of its task.
func TestTakenOverBeforeItHadALane(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		words := slowAlice + `
  - cue: joined the team
    turns:
      - do: [{claim_task: {task_id: 1}}]
      - do: [{write_file: {path: bob.txt, content: x}}]
      - do: [{complete_task: {task_id: 1, summary: bob}}]
`
		r := h.start(words, nil)
		old := h.written("alice")
		synctest.Wait()
		ctx, die := context.WithCancelCause(h.Context())
		second := h.open(h.scripted(words), func(c *team.Config) {
			c.Emit = func(who muster.Name, v any) {
				if _, is := v.(loop.TurnEnded); !is || who != "worker-1" || ctx.Err() != nil {
					return
				}
				h.revokeFirst()
				if _, err := h.board.Claim(h.Context(), 1, board.Claim{Owner: who, Role: "coder"}); err != nil {
					t.Error(err)
				}
				die(muster.CauseUser)
			}
		})
		if _, err := second.Join(ctx, &team.Workers{Role: "coder"}); !errors.Is(err, muster.CauseUser) {
			t.Fatal(err)
		}
		if lane := h.written("worker-1"); lane == old {
			t.Errorf("it works in %s, where alice's commands run", lane)
		}
		h.lateWrite(old, "late.txt")
		r.ends(0, time.Hour)
		if files := h.onTarget(); files != "bob.txt" {
			t.Errorf("the target has %q", files)
		}
		if n := h.count(is(journal.LaneCreated, "")); n != 2 {
			t.Errorf("%d lanes were made, want 2", n)
		}
	})
}

// A process that has taken a member over is stopped before its first word, and wakes when another has the member and has
// said nothing either: it writes nothing, asks no model and completes nothing. When the other is gone, it is its turn again.
func TestWakesBeforeTheNewHostsFirstWord(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		const words = oneTask + `scenes:
  - cue: 'Task #1: one'
    turns: [{do: [{write_file: {path: one.txt, content: x}}]}, {wait: 2m, do: [{complete_task: {task_id: 1, summary: mine}}]}]
`
		r := h.start(words, nil)
		h.until("written", func(e muster.Event) bool { return e.Kind == journal.ToolEnded && e.Member == "alice" })
		r.interrupt()

		other := require.Value(h.roster.Join(h.Context(), "another process"))(t)
		taken := make(chan muster.Member, 1)
		given := false
		r = h.resume(words, func(c *team.Config) {
			// The process stops just before it says in a conversation that it is the one that writes there now: meanwhile
			// the member is given to another process, which has not said so yet.
			c.Store = tapped.Store{Store: h.handle(), Before: func(_ context.Context, op, key string, data []byte) error {
				if op != "append" || key != muster.StreamTranscripts+"alice" || !bytes.Contains(data, []byte(`"kind":"host"`)) || given {
					return nil
				}
				given = true
				m, err := h.roster.TakeOver(h.Context(), "alice", h.member("alice").Host, other.ID())
				if err != nil {
					t.Error(err)
				}
				taken <- m
				return nil
			}}
		})
		m := <-taken
		before, turns := h.task(1), h.turns("alice")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if now := h.member("alice"); now.Host != other.ID() || now.Epoch != m.Epoch {
			t.Errorf("alice is hosted by %s in epoch %d, want %s in %d", now.Host, now.Epoch, other.ID(), m.Epoch)
		}
		if n := h.turns("alice"); n != turns {
			t.Errorf("her model was asked %d times by the late process", n-turns)
		}
		if now := h.task(1); now.Status != before.Status || now.Fence != before.Fence || now.Status == muster.Completed {
			t.Errorf("the task was changed: %+v", now)
		}
		all := h.entries("alice")
		if last := all[len(all)-1]; last.Kind != transcript.KindHost {
			t.Errorf("the late process has written into the conversation: %+v", last)
		}

		require.NoError(t, other.Release())
		r.ends(0, time.Hour)
		if got := h.task(1); got.Status != muster.Completed || got.Result != "mine" {
			t.Errorf("%+v", got)
		}
	})
}

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
			require.Value(team.Halt(h.Context(), h.open(h.scripted(crowded), nil)))(t)
			if err := r.fails(); !errors.Is(err, muster.CauseUser) {
				t.Error(err)
			}
			j.stop(muster.CauseUser)
			<-j.done
		})
	}
}
