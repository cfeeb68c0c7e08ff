package worktree_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/tier"
)

// A removal that meets a file which nobody can remove keeps the .git file of the lane, so git and the team still know
// it. When the file can be removed the removal goes on, and nothing of the lane was lost meanwhile.
func TestARemovalGoesOnWhereItWasStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one", map[string]string{"b": "b\n", "sub/stays": "stays\n"})
	stays := filepath.Join(lane.Path, "sub", "stays")
	if out, err := exec.Command("chattr", "+i", stays).CombinedOutput(); err != nil {
		tier.Missing(t, "no file can be made immutable here: "+err.Error()+" "+string(out))
	}
	t.Cleanup(func() { _ = exec.Command("chattr", "-i", stays).Run() })
	wants(t, fault(w.Archive(w.ctx(), "one")), muster.ErrHeld, "cannot be removed, so it is kept")
	for range 2 { // it stays so, and is no error of the recovery
		check(t, w.Recover(w.ctx()))
		if found := w.findings(); len(found) != 1 || !strings.Contains(found[0].Text, "its removal was interrupted") {
			t.Errorf("found %+v", found)
		}
		if gittest.Read(t, lane.Path, "sub/stays") != "stays\n" || gittest.Read(t, lane.Path, ".git") == "" {
			t.Error("the lane is no worktree any more")
		}
	}
	check(t, exec.Command("chattr", "-i", stays).Run())
	gittest.Write(t, lane.Path, map[string]string{"late": "late\n"}) // by a process that is still at work there
	check(t, w.Recover(w.ctx()))
	w.tidy()
	for ref, file := range map[string]string{"one-1": "b", "one-2": "late"} {
		if w.git(w.root, "show", "refs/muster/archive/"+ref+":"+file) != file {
			t.Errorf("%s has no %s", ref, file)
		}
	}
}

// What another process has put in the place of a lane is kept: a directory without a worktree, and a repository.
func TestARemovalOfSomethingElseKeepsIt(t *testing.T) {
	t.Parallel()
	for name, replace := range map[string]func(w *world, path string){
		"a directory": func(w *world, _ string) { w.git(w.root, "worktree", "prune") },
		"a repository": func(w *world, path string) {
			w.git(path, "init", "-q")
			w.git(path, "commit", "-q", "--allow-empty", "-m", "mine")
		},
		"a file": func(w *world, path string) {
			check(w.t, os.WriteFile(path+".new", []byte("mine\n"), 0o600))
			check(w.t, os.RemoveAll(path))
			check(w.t, os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			lane := w.create("one")
			check(t, os.RemoveAll(lane.Path))
			gittest.Write(t, lane.Path, map[string]string{"mine": "mine\n"})
			replace(w, lane.Path)
			for _, more := range []string{"", `,"removing":{"ref":""}`} {
				w.rows(w.row("one", muster.LaneActive, more))
				if _, err := w.Archive(w.ctx(), "one"); err == nil {
					t.Error("it was archived as the lane")
				}
				check(t, w.Recover(w.ctx()))
			}
			at := filepath.Join(lane.Path, "mine")
			if name == "a file" {
				at = lane.Path
			}
			if data, err := os.ReadFile(at); err != nil || string(data) != "mine\n" {
				t.Errorf("%q, %v", data, err)
			}
		})
	}
}
