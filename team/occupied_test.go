package team_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster"
	"muster/internal/board"
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

// written waits until a member has written a file, and returns its task's lane.
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
	if err := os.WriteFile(filepath.Join(h.root, ".worktrees", string(lane), file), []byte("late\n"), 0o644); err != nil {
		h.Fatal(err)
	}
}

// revokeFirst takes task 1 from its owner.
func (h *house) revokeFirst() {
	h.Helper()
	if _, err := h.board.Revoke(h.Context(), 1, h.task(1).Fence, muster.User, "enough"); err != nil {
		h.Fatal(err)
	}
}

// putAside waits until the lane is archived and gone.
func (h *house) putAside(lane muster.Name) {
	h.Helper()
	h.until(string(lane)+" is put aside", func(e muster.Event) bool { return e.Kind == journal.LaneArchived && e.Text("lane") == string(lane) })
}

// archived are the files of the lane's archive, "" when there is none.
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

// A lane that was left to a living process is put aside when that process has died, by whoever takes its members over.
func TestLeftLaneIsArchivedAfterItsProcess(t *testing.T) {
	t.Parallel()
	bubble(t, func(h *house) {
		r := h.start(slowAlice, nil)
		old := h.written("alice")
		j := h.join(slowAlice, team.Workers{N: 1, Role: "coder"})
		synctest.Wait()
		h.revokeFirst()
		h.written("worker-1")
		h.lateWrite(old, "late.txt")
		r.interrupt()
		h.putAside(old)
		if files := h.archived(old); files != "first.txt late.txt" {
			t.Errorf("of alice's work is kept: %q", files)
		}
		j.ends(team.NoWork, 3*time.Hour)
		if files := h.onTarget(); files != "bob.txt" {
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
