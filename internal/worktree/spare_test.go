package worktree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/internal/worktree"
)

// file returns what tells one file from another one of the same name.
func file(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	require.NoError(t, err)
	return info
}

// isPristine fails the test unless a lane has the files of its base and nothing else.
func (w *world) isPristine(dir, base string) {
	w.t.Helper()
	equal(w.t, "the lane has changes", w.git(dir, "status", "--porcelain", "--ignored", "--untracked-files=all"), "")
	if out, err := gittest.Try(dir, "diff", "--exit-code", base); err != nil {
		w.t.Errorf("the lane differs from its base (%v):\n%s", err, out)
	}
}

// A lane that is made of a spare has the files of its own base, whatever has changed since the spare was made.
func TestALaneOfASpare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "gone": "gone\n", "dir/b": "b\n", "dir/gone": "gone\n", "swap/x": "x\n", "run.sh": "#!/bin/sh\n", ".gitignore": "*.log\n"})
	if err := w.Spares.Prepare(w.ctx(), "HEAD"); err == nil {
		t.Error("a spare of no commit")
	}
	head := w.git(w.root, "rev-parse", "HEAD")
	require.NoError(t, w.Spares.Prepare(w.ctx(), head))
	was := file(t, w.root+"/.worktrees/.spare-1/files/dir/b")
	lane := w.create("same")
	if !os.SameFile(was, file(t, lane.Path+"/dir/b")) {
		t.Error("the spare was not used")
	}
	w.isPristine(lane.Path, head)
	if w.Spares.Count() != 0 || !durable.IsMissing(w.root+"/.worktrees/.spare-1") {
		t.Error("the spare is still there")
	}

	require.NoError(t, w.Spares.Prepare(w.ctx(), head))
	gittest.Write(t, w.root, map[string]string{"a": "another a\n", "new/c": "c\n", "swap.tmp": ""})
	w.git(w.root, "rm", "-q", "-r", "gone", "dir/gone", "swap/x")
	require.NoError(t, os.Rename(w.root+"/swap.tmp", w.root+"/swap"))
	require.NoError(t, os.Chmod(w.root+"/run.sh", 0o755))
	require.NoError(t, os.Symlink("a", w.root+"/link"))
	w.git(w.root, "add", ".")
	w.git(w.root, "commit", "-q", "-m", "another")
	was = file(t, w.root+"/.worktrees/.spare-1/files/dir/b")
	lane = w.create("later")
	if !os.SameFile(was, file(t, lane.Path+"/dir/b")) {
		t.Error("the spare was not used")
	}
	w.isPristine(lane.Path, "HEAD")
	w.tidy("same", "later")
	w.ok(w.Changed(w.ctx(), "later"))
}

// What somebody has written into a spare is in no lane.
func TestASpareThatWasWrittenTo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(dir string) error{
		"a new file":        func(dir string) error { return os.WriteFile(dir+"/files/new", nil, 0o644) },
		"an ignored file":   func(dir string) error { return os.WriteFile(dir+"/files/dir/x.log", nil, 0o644) },
		"a changed file":    func(dir string) error { return os.WriteFile(dir+"/files/a", []byte("b"), 0o644) },
		"a file that went":  func(dir string) error { return os.Remove(dir + "/files/dir/b") },
		"a repository":      func(dir string) error { return os.Mkdir(dir+"/files/.git", 0o755) },
		"a link to another": func(dir string) error { return os.WriteFile(dir+"/files/.git", []byte("gitdir: /nowhere\n"), 0o644) },
		"no index":          func(dir string) error { return os.Remove(dir + "/index") },
		"a broken index":    func(dir string) error { return os.WriteFile(dir+"/index", []byte("DIRC"), 0o644) },
		"no git directory":  func(dir string) error { return os.RemoveAll(dir + "/git") },
		"nothing":           os.RemoveAll,
		"a link in its place": func(dir string) error {
			other := filepath.Join(filepath.Dir(dir), "..", "other")
			if err := os.Rename(dir+"/files", other); err != nil {
				return err
			}
			return os.Symlink(other, dir+"/files")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, map[string]string{"a": "a\n", "dir/b": "b\n", ".gitignore": "*.log\n/other/\n"})
			head := w.git(w.root, "rev-parse", "HEAD")
			require.NoError(t, w.Spares.Prepare(w.ctx(), head))
			require.NoError(t, change(w.root+"/.worktrees/.spare-1"))
			w.isPristine(w.create("lane").Path, head)
			w.tidy("lane")
		})
	}
}

// The index of a spare moves last: where a file could not be moved the worktree has none, and counts as half made.
func TestTheIndexOfASpareMovesLast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "dir/b": "b\n"})
	require.NoError(t, w.Spares.Prepare(w.ctx(), w.git(w.root, "rev-parse", "HEAD")))
	path, admin := t.TempDir(), t.TempDir()
	gittest.Write(t, path, map[string]string{"dir/in the way": ""})
	if err := w.Spares.MoveInto(w.ctx(), path, admin); err == nil {
		t.Error("dir was moved over another one")
	}
	if gittest.Read(t, path, "a") != "a\n" || !durable.IsMissing(admin+"/index") {
		t.Error("a was not moved, or the index was")
	}
}

// Spares are kept where there are many files, brought up while the run goes on, and removed at its end.
func TestServeSpares(t *testing.T) {
	t.Parallel()
	few := newWorld(t, map[string]string{"a": "a\n"})
	few.Spares.Serve(few.ctx(), func(context.Context) (string, error) { return "", fmt.Errorf("asked for") }) // returns at once

	files := map[string]string{}
	for i := range 1000 {
		files[fmt.Sprintf("d%d/f%d", i%10, i)] = ""
	}
	w := newWorld(t, files)
	ctx, cancel := context.WithCancel(w.ctx())
	ended := make(chan struct{})
	go func() {
		w.Spares.Serve(ctx, w.repo.Head)
		close(ended)
	}()
	for range 2 {
		wait.For(t, "two spares", func() bool { return w.Spares.Count() == 2 })
		lane := w.create("lane")
		w.isPristine(lane.Path, "HEAD")
		require.NoError(t, w.Remove(w.ctx(), "lane", false))
	}
	cancel()
	<-ended
	w.tidy()
	w.git(w.root, "sparse-checkout", "set", "d1")
	ctx, cancel = context.WithCancel(w.ctx())
	defer cancel()
	w.Spares.Serve(ctx, func(context.Context) (string, error) {
		t.Error("a spare of a sparse checkout would have all files")
		cancel()
		return "", ctx.Err()
	})
}

// leases are the names of the locks and notes of check directories.
func (w *world) leases() string {
	w.t.Helper()
	found, _ := filepath.Glob(w.root + "/.team/locks/check-*")
	for i, path := range found {
		found[i] = filepath.Base(path)
	}
	return strings.Join(found, " ")
}

// A directory for a check lies in the system's directory for temporary files, or beside the repository when that one
// lies in the repository. Where none can be made, nothing is held.
func TestWhereChecksRun(t *testing.T) {
	w := newWorld(t, nil)
	elsewhere, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	gittest.Write(t, w.root, map[string]string{"tmp/file": "a file\n"})
	for _, tmp := range []string{w.root + "/missing", w.root + "/tmp/file/below", "/proc"} {
		t.Setenv("TMPDIR", tmp)
		_, _, err := w.CheckDirs.Create()
		wants(t, err, muster.ErrUnavailable, "no directory for the check can be made")
	}
	require.NoError(t, os.Symlink(elsewhere, w.root+"/link"))
	for tmp, parent := range map[string]string{elsewhere: elsewhere, w.root + "/link": elsewhere,
		w.root + "/tmp": filepath.Dir(w.root)} {
		t.Setenv("TMPDIR", tmp)
		for range 2 { // a lease that is given back is taken again
			dir, remove, err := w.CheckDirs.Create()
			require.NoError(t, err)
			equal(t, "made in", filepath.Dir(dir), parent)
			equal(t, "held", w.leases(), "check-1 check-1.lock")
			remove()
			if _, err := os.Stat(dir); !os.IsNotExist(err) || w.leases() != "check-1.lock" {
				t.Errorf("left: %v, %s", err, w.leases())
			}
		}
	}
}

// What a dead process left is removed and returned, once, and its lease is free again. What a living one has stays.
func TestAbandonedDirectoriesAreReturned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	living, removeLiving, err := w.CheckDirs.Create()
	require.NoError(t, err)
	defer removeLiving()
	dir, remove, err := w.CheckDirs.Create()
	require.NoError(t, err)
	note := gittest.Read(t, w.root, ".team/locks/check-2")
	remove()
	gittest.Write(t, dir, map[string]string{"sealed/b": "b\n"})
	require.NoError(t, os.Chmod(dir+"/sealed", 0o500))
	gittest.Write(t, w.root, map[string]string{".team/locks/check-2": note})
	for _, want := range []string{dir, ""} {
		if removed, err := w.CheckDirs.RemoveAbandoned(); err != nil || strings.Join(removed, " ") != want || !exists(living) {
			t.Errorf("removed %v, %v; want %s", removed, err, want)
		}
	}
	_, remove, err = w.CheckDirs.Create()
	require.NoError(t, err)
	defer remove()
	equal(t, "held", w.leases(), "check-1 check-1.lock check-2 check-2.lock")
}

// A step that fails is told: a directory that is not noted is never made.
func TestACheckDirectoryWithoutANoteIsNotMade(t *testing.T) {
	w := newWorld(t, nil)
	t.Setenv("TMPDIR", t.TempDir())
	for _, part := range []string{".lock", ".check-"} { // the leases, and the note that is written
		w.failEachStep(part, func(int) {}, func(l *worktree.Lanes, _ int) error {
			_, remove, err := l.CheckDirs.Create()
			if err == nil {
				remove()
				_, err = l.CheckDirs.RemoveAbandoned()
			}
			return err
		})
	}
	made, _ := filepath.Glob(os.TempDir() + "/*")
	equal(t, "left", w.leases()+strings.Join(made, " "), "check-1.lock")
}

// A note is a claim: what it names and has not made stays. A note that cannot be removed now takes its lease out of use
// and no other.
func TestANoteLeadsToItsOwnDirectoryOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	precious := filepath.Join(t.TempDir(), "muster-check-precious")
	gittest.Write(t, precious, map[string]string{"a": "a\n"})
	for _, named := range []string{precious, filepath.Dir(precious), "./muster-check-precious", precious + strings.Repeat("x", 300)} {
		gittest.Write(t, w.root, map[string]string{".team/locks/check-1": named + "\n", ".team/locks/check-1.lock": ""})
		if removed, err := w.CheckDirs.RemoveAbandoned(); err != nil || len(removed) != 0 {
			t.Errorf("of %s, removed %v, %v", named, removed, err)
		}
		equal(t, "what the note named", gittest.Read(t, precious, "a"), "a\n")
	}
	l := w.on(refusesNote{})
	gittest.Write(t, w.root, map[string]string{".team/locks/check-1": precious + "\n"})
	_, remove, err := l.CheckDirs.Create()
	require.NoError(t, err)
	defer remove()
	equal(t, "held", w.leases(), "check-1 check-1.lock check-2 check-2.lock")
}

// refusesNote is a file system in which the first note cannot be removed.
type refusesNote struct{ durable.OS }

func (f refusesNote) Remove(name string) error {
	if strings.HasSuffix(name, "/check-1") {
		return &os.PathError{Op: "remove", Path: name, Err: os.ErrPermission}
	}
	return f.OS.Remove(name)
}
