package worktree_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/worktree"
	"muster/journal"
)

// meanwhile is a log in which, as a removal is announced, somebody else does something, once.
type meanwhile struct {
	muster.Log
	do func()
}

func (m *meanwhile) Append(ctx context.Context, stream string, at muster.Pos, recs ...[]byte) (muster.Pos, error) {
	if do := m.do; do != nil && bytes.Contains(recs[0], []byte("worktree.remove.before")) {
		m.do = nil
		do()
	}
	return m.Log.Append(ctx, stream, at, recs...)
}

// Another process archives the same lane and is faster: what it has done is no failure, and what it was killed in the
// middle of is finished.
func TestArchivedBySomebodyElseMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	log := &meanwhile{Log: w.log}
	late, err := worktree.Open(w.repo, durable.New(durable.OS{}), paths.Dir(w.root), journal.New(log), log, worktree.Options{})
	require.NoError(t, err)
	for name, is := range map[muster.Name]struct {
		gone bool
		left func(muster.Lane) error
	}{
		"gone":  {gone: true},
		"files": {left: func(l muster.Lane) error { return os.Remove(l.Path + "/b") }},
		"link":  {left: func(l muster.Lane) error { return os.Remove(l.Path + "/.git") }},
		"path":  {left: func(l muster.Lane) error { return os.RemoveAll(l.Path) }},
	} {
		lane := w.create(name)
		gittest.Write(t, lane.Path, map[string]string{"b": "b\n", "c": "c\n"})
		log.do = func() {
			if is.gone {
				w.ok(w.Archive(ctx, name))
				return
			}
			ref, err := w.Preserve(ctx, name)
			require.NoError(t, err)
			w.removing(ref)
			require.NoError(t, is.left(lane))
		}
		if _, err := late.ArchiveCompleted(ctx, muster.Task{ID: 1, Fence: 1, Worktree: name, Status: muster.Completed}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := w.git(w.root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/muster/archive/"+string(name)+"-*"); got != string(name)+"-1" {
			t.Errorf("%s: archives %q", name, got)
		}
		if got := w.git(w.root, "show", "refs/muster/archive/"+string(name)+"-1:b"); got != "b" {
			t.Errorf("%s: archived %q", name, got)
		}
	}
	w.tidy()
	if w.notes("worktree.remove.after") != 4 || w.notes("worktree.remove.failed") != 0 {
		t.Errorf("events %v", w.events())
	}
}

// A tool has locked the lane's worktree: no repair helps, and what does is named.
func TestALockedLaneSaysWhatUnlocksIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	ctx := w.ctx()
	lane := w.create("one")
	w.git(w.root, "worktree", "lock", lane.Path)
	_, err := w.Archive(ctx, "one")
	wants(t, err, muster.ErrHeld, "cannot be removed")
	unlock := "git worktree unlock '" + lane.Path + "'" // the path has a space
	if e, ok := errors.AsType[*muster.Error](err); !ok || e.Hint != unlock {
		t.Errorf("hint of %#v", err)
	}
	for range 2 { // the repair changes nothing
		if got := w.findings(); len(got) != 1 || got[0].Fix != unlock || !strings.Contains(got[0].Text, "locked") {
			t.Errorf("found %+v", got)
		}
		require.NoError(t, w.Recover(ctx))
	}
	w.create("two") // recovery goes on past the one that stays
	w.removing("")
	require.NoError(t, w.Recover(ctx))
	w.tidy("one")
	equal(t, "how often it is told", w.notes("worktree.remove.failed"), 4)
	if out, err := exec.Command("sh", "-c", "cd '"+w.root+"' && "+unlock).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", unlock, err, out)
	}
	if got := w.findings(); len(got) != 1 || got[0].Fix != "" {
		t.Errorf("unlocked: %+v", got)
	}
	require.NoError(t, w.Recover(ctx))
	w.tidy()
}

// A tool has deleted or replaced what ties the lane to the repository: it is found, and what is named helps.
func TestALostLaneIsFound(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	found := func(fix string) {
		t.Helper()
		got, err := w.Check(ctx)
		require.NoError(t, err)
		if len(got) != 1 || !strings.Contains(got[0].Fix, fix) ||
			!strings.Contains(got[0].Text, "not the lane one any more") {
			t.Errorf("found %+v", got)
		}
		wants(t, fault(w.Archive(ctx, "one")), muster.ErrInvalid, "cannot verify")
	}
	fine := func(what string) {
		t.Helper()
		if got := w.findings(); len(got) != 0 {
			t.Errorf("%s: %+v", what, got)
		}
	}
	lane := w.create("one", map[string]string{"b": "b\n"})
	fine("whole")
	link := lane.Path + "/.git"

	require.NoError(t, os.Remove(link))
	found("git worktree repair")
	w.git(w.root, "worktree", "repair")
	fine("repaired")

	require.NoError(t, os.Remove(link))
	w.git(lane.Path, "init", "-q")
	found("mv '" + link + "' '" + link + ".other'")
	require.NoError(t, os.Rename(link, link+".other"))
	w.git(w.root, "worktree", "repair")
	fine("repaired")

	w.git(w.root, "update-ref", "-d", "refs/heads/wt/one")
	found("git branch wt/one " + lane.Base)
	w.git(w.root, "branch", "wt/one", lane.Base)
	fine("with its branch")

	require.NoError(t, os.RemoveAll(git.AdminDir(w.repo.CommonDir(), lane.Path)))
	found("mv '" + lane.Path + "' '" + lane.Path + ".lost'")
	require.NoError(t, os.Rename(lane.Path, lane.Path+".lost"))
	require.NoError(t, w.Recover(ctx))
	fine("moved away")
	w.ok(w.Archive(ctx, "one"))
	equal(t, "its file", gittest.Read(t, lane.Path+".lost", "b"), "b\n")
}

func (w *world) findings() []worktree.Finding {
	w.t.Helper()
	all, err := w.Check(w.ctx())
	require.NoError(w.t, err)
	return all
}

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
		require.NoError(t, w.Recover(w.ctx()))
		if found := w.findings(); len(found) != 1 || !strings.Contains(found[0].Text, "its removal was interrupted") {
			t.Errorf("found %+v", found)
		}
		if gittest.Read(t, lane.Path, "sub/stays") != "stays\n" || gittest.Read(t, lane.Path, ".git") == "" {
			t.Error("the lane is no worktree any more")
		}
	}
	require.NoError(t, exec.Command("chattr", "-i", stays).Run())
	gittest.Write(t, lane.Path, map[string]string{"late": "late\n"}) // by a process that is still at work there
	require.NoError(t, w.Recover(w.ctx()))
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
			require.NoError(w.t, os.WriteFile(path+".new", []byte("mine\n"), 0o600))
			require.NoError(w.t, os.RemoveAll(path))
			require.NoError(w.t, os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, nil)
			lane := w.create("one")
			require.NoError(t, os.RemoveAll(lane.Path))
			gittest.Write(t, lane.Path, map[string]string{"mine": "mine\n"})
			replace(w, lane.Path)
			for _, more := range []string{"", `,"removing":{"ref":""}`} {
				w.rows(w.row("one", muster.LaneActive, more))
				if _, err := w.Archive(w.ctx(), "one"); err == nil {
					t.Error("it was archived as the lane")
				}
				require.NoError(t, w.Recover(w.ctx()))
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
