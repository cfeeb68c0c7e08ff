package team_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/llm"
	"muster/team"
)

// cutOff is a team whose alice has written one.txt and has her landing cut off, in one of two ways; then is what she does
// after it, turn by turn, a minute each, and after that she has nothing more to say.
type cutOff struct {
	*running
	heal func() // what was in the landing's way is so no more
}

// The ways in which a landing is cut off.
const (
	unrecorded = "after the target had moved"  // the board cannot be written
	targetless = "before the target had moved" // somebody has deleted it
)

func (h *house) cutOff(how string, patient bool, then ...func() (llm.Reply, error)) cutOff {
	h.Helper()
	gate := filepath.Join(h.TempDir(), "gate")
	c := cutOff{heal: func() {
		if how == targetless {
			h.w.git("branch", "muster/demo", "main")
		}
	}}
	var down atomic.Bool
	down.Store(how == unrecorded)
	m := &steps{f: map[string]func(context.Context, int, llm.Request) (llm.Reply, error){
		"lead": h.reads(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
    - say: Over.
`),
		"alice": func(ctx context.Context, n int, _ llm.Request) (llm.Reply, error) {
			select {
			case <-time.After(time.Minute):
			case <-ctx.Done():
				return llm.Reply{}, context.Cause(ctx)
			}
			switch {
			case n == 0:
				return calls("write", "write_file", in{"path": "one.txt", "content": "x"})
			case n == 1:
				return calls("complete", "complete_task", in{"task_id": 1, "summary": "one"})
			case n-2 < len(then):
				return then[n-2]()
			}
			return says("What now?")
		}}}
	tm := h.open(m, func(o *team.Config) {
		o.Store = refusing{o.Store, muster.TableTasks, func(data []byte) error {
			var t muster.Task
			switch {
			case jsonInto(data, &t) != nil || t.ID == 0:
			case t.Status == muster.Completed && down.Load():
				return muster.Errorf(muster.Unavailable, "the disk is full")
			case t.Status == muster.Pending && t.Fence == 1 && h.w.git("for-each-ref", "refs/muster/landing/1-1") != "":
				h.Error("the task goes back to the board while its landing may still be gone on with")
			}
			return nil
		}}
		if how == targetless {
			o.Check = fmt.Sprintf("if test -e one.txt && mkdir %s; then git -C %s branch -q -D muster/demo; fi", gate, h.w.root)
		}
		if patient {
			o.Limits.IdleTimeout = -1
		}
	})
	c.running = h.begin(func(ctx context.Context) (team.Summary, error) { return tm.Run(ctx, "g", team.Start{}) })
	h.until("it is cut off", func(e muster.Event) bool {
		return e.Kind == journal.ToolEnded && e.Member == "alice" && e.Text("tool") == "complete_task"
	})
	if got := h.task(1); got.Status != muster.Landing || (h.landings() == 1) != (how == unrecorded) {
		h.Fatalf("%d landings, and the task is %s", h.landings(), got.Status)
	}
	down.Store(false)
	return c
}

// landings is how many commits have landed.
func (h *house) landings() (n int) {
	h.Helper()
	return len(strings.Fields(h.w.git("rev-list", "--branches=muster/dem[o]", "--not", "main")))
}

// An owner whose landing an error has cut off rests: it is gone on with, and what comes of it is told once. Nobody is ever
// timed out here, and nobody else would do it.
func TestALandingThatWasCutOffIsGoneOnWith(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		code, landings int
		told           string
		times          int
		status         muster.TaskStatus
	}{
		unrecorded: {0, 1, "Task #1 landed as", 1, muster.Completed},
		targetless: {3, 0, "the target branch muster/demo is gone", 2, muster.Landing}, // the first is the answer to her call; how far it came nobody can say
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(h *house) {
				h.cutOff(how, true).ends(c.code, time.Hour)
				h.heard("alice", c.told, c.times)
				if got := h.task(1); got.Status != c.status || h.landings() != c.landings {
					t.Errorf("%d landings, and the task is %s", h.landings(), got.Status)
				}
			})
		})
	}
}

// A task is given back, by its owner or because its owner is shut down, of whose landing nobody knows how far it came: it does
// not land twice. Where it has landed it is done; else that landing can land no more, and the next claim's does.
func TestGivenBackWhileItLands(t *testing.T) {
	t.Parallel()
	again := []func() (llm.Reply, error){
		func() (llm.Reply, error) { return calls("back", "release_task", in{"task_id": 1, "reason": "Odd."}) },
		func() (llm.Reply, error) { return calls("more", "write_file", in{"path": "two.txt", "content": "x"}) },
		func() (llm.Reply, error) {
			return calls("again", "complete_task", in{"task_id": 1, "summary": "again"})
		},
	}
	for what, c := range map[string]struct {
		how         string
		shut        bool
		told, files string
		fence       int
	}{
		"it has landed":                        {unrecorded, false, "task 1 has just landed as", "README\none.txt", 1},
		"it has landed, and a forced shutdown": {unrecorded, true, "", "README\none.txt", 1},
		"it has not landed":                    {targetless, false, "Task 1 is back on the board.", "README\none.txt\ntwo.txt", 2},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(h *house) {
				r := h.cutOff(c.how, false, again...)
				r.heal()
				if c.shut {
					time.Sleep(30 * time.Second) // she has gone on, and thinks
					h.ask(t, "alice", func(q *muster.Request) { q.Force = true })
				} else {
					h.until("it is given back", uses("alice", "release_task"))
				}
				r.ends(0, time.Hour)
				if c.told != "" {
					h.heard("alice", c.told, 1)
				}
				h.heard("lead", "alice is lost", 0)
				if got := h.task(1); h.landings() != 1 || h.onTarget() != c.files || got.Fence != c.fence {
					t.Errorf("%d landings of %q, the last of claim %d", h.landings(), h.onTarget(), got.Fence)
				}
			})
		})
	}
}
