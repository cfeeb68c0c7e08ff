package team_test

import (
	"testing"
	"time"
)

// What a member wrote where git ignores it does not land, and goes with the lane: it is told so, once, before the task is
// completed without a change.
func TestOnlyIgnoredFiles(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ then, landed string }{
		"it belongs into the repository": {`{bash: {command: git add -f build/one.txt}}, `, ".gitignore\nREADME\nbuild/one.txt"},
		"it does not":                    {"", ".gitignore\nREADME"},
	} {
		t.Run(what, func(t *testing.T) {
			bubble(t, func(h *house) {
				h.w.write(".gitignore", "build/\n")
				h.w.git("add", ".")
				h.w.git("commit", "-q", "-m", "ignores")
				h.start(`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {spawn_teammate: {name: alice, role: coder, prompt: Work.}}]
    - do: [{wait: {}}]
      until: All done
    - say: Done.
scenes:
  - cue: 'Task #1: one'
    turns:
      - do: [{write_file: {path: build/one.txt, content: x}}]
      - do: [{complete_task: {task_id: 1, summary: one}}]
      - do: [`+c.then+`{complete_task: {task_id: 1, summary: one}}]
`, nil).ends(0, time.Hour)
				h.heard("alice", "your lane has no change but what git ignores (build/)", 1)
				if got := h.w.git("ls-tree", "-r", "--name-only", "muster/demo"); got != c.landed {
					t.Errorf("landed: %q", got)
				}
			})
		})
	}
}
