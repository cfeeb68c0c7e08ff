package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/text"
)

// What only the user can mend is named with what mends it, wherever it shows; the repair does the rest afterwards.
func TestDoctorNamesWhatTheRepairCannotDo(t *testing.T) {
	w := newWorld(t)
	says := func(out, want string, n int) {
		t.Helper()
		if strings.Count(out, want) != n {
			t.Errorf("not %d times %q:\n%s", n, want, out)
		}
	}
	w.muster(0, "task", "add", "one")
	w.muster(0, "worktree", "create", "lane-a")
	w.muster(0, "worktree", "create", "lane-b")
	lanes := filepath.Join(w.dir, ".worktrees")
	a, b := filepath.Join(lanes, "lane-a"), filepath.Join(lanes, "lane-b")
	task := `{"id":1,"subject":"one","status":"completed","owner":"alice","completed_by":"alice","worktree":"lane-a","fence":1,"effects":["archive"],"blockedBy":[],"dependsOn":[],"blocks":[]}`
	gittest.Write(t, w.dir, map[string]string{".tasks/task_1.json": task})
	gittest.Git(t, w.dir, "worktree", "lock", a)
	says(w.muster(1, "worktree", "remove", "--force", "lane-a"), "git worktree unlock "+text.ShellQuote(a), 1)
	require.NoError(t, os.Remove(filepath.Join(b, ".git")))
	for _, args := range [][]string{{"doctor"}, {"doctor", "--repair"}} {
		out := w.muster(1, args...)
		says(out, "git worktree unlock "+text.ShellQuote(a)+", then: muster doctor --repair", 2) // of the lane, and of the task that waits for it
		says(out, "git worktree repair, then: muster doctor --repair", 1)
		says(out, "broken  lanes", 2)
	}
	gittest.Git(t, w.dir, "worktree", "unlock", a)
	gittest.Git(t, w.dir, "worktree", "repair")
	says(w.muster(0, "doctor", "--repair"), "mended", 1)
	says(w.muster(0, "doctor"), "broken", 0)
}
