package team_test

import (
	"testing"
	"time"
)

// What a member wrote where git ignores it does not land, and goes with the lane: it is told so, once, before the task is
// completed without a change.
func TestOnlyIgnoredFiles(t *testing.T) {
	t.Parallel()
	bubbleOnGit(t, func(h *house) {
		h.commit(".gitignore", "build/\n")
		h.start(oneTask+`scenes:
  - cue: 'Task #1: one'
    turns:
      - do: [{write_file: {path: build/one.txt, content: x}}]
      - do: [{complete_task: {task_id: 1, summary: one}}]
      - do: [{bash: {command: git add -f build/one.txt}}, {complete_task: {task_id: 1, summary: one}}]
`, nil).ends(0, time.Hour)
		h.heard("alice", "your lane has no change but what git ignores (build/)", 1)
		if got := h.onTarget(); got != ".gitignore build/one.txt" {
			t.Errorf("landed: %q", got)
		}
	})
}
