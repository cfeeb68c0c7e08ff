package team_test

import (
	"cmp"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/team"
)

// A run ends with 0 only when everything that its members have changed has landed, or was given up on purpose and is
// listed. Whatever else is kept, named, and the exit code is 3.
func TestLeftovers(t *testing.T) {
	t.Parallel()
	const reminded = "where nothing lands. If it should land"
	for name, c := range map[string]struct {
		words     string
		code      int
		left      string // the files that are left, or given up after a "-"
		reminders int
	}{
		"the lead edits its scratch checkout": {`
speakers:
  lead:
    - do: [{bash: {command: "echo mine >> README; echo new > new.txt"}}]
    - say: Done.
    - say: Done, I said.
`, 3, "README new.txt", 1},
		"the lead commits there": {`
speakers:
  lead:
    - do: [{bash: {command: "echo mine >> README; git -c user.name=a -c user.email=a@b.c commit -qam mine"}}]
    - say: Done.
    - say: Done, I said.
`, 3, "README", 1},
		"a teammate without a task": {`
speakers:
  lead:
    - do: [{spawn_teammate: {name: alice, role: coder, prompt: Look around.}}]
    - wait: 5m
      say: Done.
  alice:
    - do: [{bash: {command: "echo hers > hers.txt"}}]
    - say: I have looked.
    - say: I have looked twice.
`, 3, "hers.txt", 1},
		"a task is deleted with its work": {`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {claim_task: {task_id: 1}}]
    - do: [{write_file: {path: half.txt, content: half}}]
    - do: [{release_task: {task_id: 1, reason: too hard}}]
    - do: [{task_update: {task_id: 1, status: deleted}}]
    - say: Done.
`, 0, "-half.txt", 0},
		"a lane of no task is removed": {`
speakers:
  lead:
    - do: [{worktree_create: {name: mine}}]
    - do: [{worktree_run: {name: mine, command: "echo x > mine.txt"}}]
    - do: [{worktree_remove: {name: mine, force: true}}]
    - say: Done.
`, 0, "-mine.txt", 0},
		"a file comes into the lane while it lands": {`
speakers:
  lead:
    - do: [{task_create: {subject: one}}, {task_create: {subject: two}}, {claim_task: {task_id: 1}}]
    - do: [{write_file: {path: one.txt, content: x}}]
    - do: [{complete_task: {task_id: 1, summary: one}}]
    - do: [{claim_task: {task_id: 2}}]
    - do: [{complete_task: {task_id: 2, summary: two}}]
    - say: Done.
`, 3, "late.txt", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubbleOnGit(t, func(h *house) {
				sum := h.start(c.words, func(k *team.Config) {
					k.Teammates = 1
					if c.left == "late.txt" {
						k.Check = "test ! -e one.txt || touch '" + filepath.Join(h.root, ".worktrees/task-1-one/late.txt") + "'"
					}
				}).ends(c.code, time.Hour)
				var left []string
				for _, l := range sum.Left {
					files := strings.Join(l.Files, " ")
					if l.Dropped {
						files = "-" + files
					}
					left = append(left, files)
					if at := cmp.Or(l.Ref, string(l.Lane)); at == "" || !strings.Contains(sum.Text, at) {
						t.Errorf("the summary does not say where %+v is: %s", l, sum.Text)
					}
				}
				if got := strings.Join(left, "; "); got != c.left {
					t.Errorf("left is %q, want %q: %s\n%s", got, c.left, sum.Text, h.tail())
				}
				n := 0
				for _, who := range []muster.Name{muster.Lead, "alice"} {
					n += strings.Count(h.said(who), reminded)
				}
				if n != c.reminders {
					t.Errorf("%d reminders, want %d", n, c.reminders)
				}
			})
		})
	}
}
