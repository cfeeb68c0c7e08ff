package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/durable"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// leases are the names of the locks and notes of check directories, with numbers in the place of what is random.
func (w *world) leases() string {
	w.t.Helper()
	found, _ := filepath.Glob(w.root + "/.team/locks/check-*")
	numbers := map[string]int{}
	for i, path := range found {
		name, _, isLock := strings.Cut(filepath.Base(path), ".lock")
		if numbers[name] == 0 {
			numbers[name] = len(numbers) + 1
		}
		found[i] = fmt.Sprintf("check-%d", numbers[name])
		if isLock {
			found[i] += ".lock"
		}
	}
	return strings.Join(found, " ")
}

// note returns the path of the note that names a check directory, and its content.
func (w *world) note(dir string) (path, content string) {
	w.t.Helper()
	found, _ := filepath.Glob(w.root + "/.team/locks/check-*")
	for _, path := range found {
		path = ".team/locks/" + filepath.Base(path)
		if content := gittest.Read(w.t, w.root, path); content == dir+"\n" {
			return path, content
		}
	}
	w.t.Fatalf("no note names %s", dir)
	return "", ""
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
		wants(t, err, muster.ErrUnavailable, "no temporary directory can be made")
	}
	require.NoError(t, os.Symlink(elsewhere, w.root+"/link"))
	for tmp, parent := range map[string]string{elsewhere: elsewhere, w.root + "/link": elsewhere,
		w.root + "/tmp": filepath.Dir(w.root)} {
		t.Setenv("TMPDIR", tmp)
		for range 2 { // nothing is left of a lease that is given back
			dir, remove, err := w.CheckDirs.Create()
			require.NoError(t, err)
			equal(t, "made in", filepath.Dir(dir), parent)
			equal(t, "held", w.leases(), "check-1 check-1.lock")
			remove()
			if _, err := os.Stat(dir); !os.IsNotExist(err) || w.leases() != "" {
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
	path, note := w.note(dir)
	remove()
	gittest.Write(t, dir, map[string]string{"sealed/b": "b\n"})
	require.NoError(t, os.Chmod(dir+"/sealed", 0o500))
	gittest.Write(t, w.root, map[string]string{path: note})
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
	equal(t, "left", w.leases()+strings.Join(made, " "), "")
}

// A note is a claim: what it names and has not made stays. A note that cannot be removed now stays, and is in no way.
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
	if removed, err := l.CheckDirs.RemoveAbandoned(); err != nil || len(removed) != 0 {
		t.Errorf("removed %v, %v", removed, err)
	}
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
