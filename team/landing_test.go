package team_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/journal"
	"muster/team"
)

// An owner whose landing an error has cut off rests: it is gone on with, and what comes of it is told once. Nobody is ever
// timed out here, and nobody else would do it.
func TestALandingThatWasCutOffIsGoneOnWith(t *testing.T) {
	t.Parallel()
	for how, c := range map[string]struct {
		isRecorded     bool // else the board cannot be written after the target had moved
		code, landings int
		told           string
		times          int
		status         muster.TaskStatus
	}{
		"after the target had moved": {false, 0, 1, "Task #1 landed as", 1, muster.Completed},
		// Somebody has deleted the target. The first word of it is the answer to her call; how far it came nobody can say.
		"before the target had moved": {true, 3, 0, "the target branch muster/demo is gone", 2, muster.Landing},
	} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				var down atomic.Bool
				down.Store(!c.isRecorded)
				r := h.start(waitingLead+`  alice:
    - wait: 1m
      do: [{write_file: {path: one.txt, content: x}}]
    - wait: 1m
      do: [{complete_task: {task_id: 1, summary: one}}]
    - wait: 1m
      say: What now?
`, func(o *team.Config) {
					o.Limits.IdleTimeout = -1
					o.Store = refusing(o.Store, muster.TableTasks, func(data []byte) error {
						var t muster.Task
						if jsonInto(data, &t) == nil && t.Status == muster.Completed && down.Load() {
							return muster.Errorf(muster.Unavailable, "the disk is full")
						}
						return nil
					})
					if c.isRecorded {
						o.Check = fmt.Sprintf("if test -e one.txt && mkdir '%s/gate'; then git -C '%s' branch -q -D muster/demo; fi", h.TempDir(), h.root)
					}
				})
				h.until("it is cut off", func(e muster.Event) bool {
					return e.Kind == journal.ToolEnded && e.Member == "alice" && e.Text("tool") == "complete_task"
				})
				if got := h.task(1); got.Status != muster.Landing || (h.landings() == 1) == c.isRecorded {
					h.Fatalf("%d landings, and the task is %s", h.landings(), got.Status)
				}
				down.Store(false)
				r.ends(c.code, time.Hour)
				h.heard("alice", c.told, c.times)
				if got := h.task(1); got.Status != c.status || h.landings() != c.landings {
					t.Errorf("%d landings, and the task is %s", h.landings(), got.Status)
				}
			})
		})
	}
}
