package worktree_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"muster/internal/durable"
	"muster/internal/testing/gittest"
	"muster/internal/testing/wait"
)

// file returns what tells one file from another one of the same name.
func file(t *testing.T, path string) os.FileInfo {
	t.Helper()
	info, err := os.Lstat(path)
	check(t, err)
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
	check(t, w.Spares.Prepare(w.ctx(), head))
	was := file(t, w.root+"/.worktrees/.spare-1/files/dir/b")
	lane := w.create("same")
	if !os.SameFile(was, file(t, lane.Path+"/dir/b")) {
		t.Error("the spare was not used")
	}
	w.isPristine(lane.Path, head)
	if w.Spares.Count() != 0 || !durable.IsMissing(w.root+"/.worktrees/.spare-1") {
		t.Error("the spare is still there")
	}

	check(t, w.Spares.Prepare(w.ctx(), head))
	gittest.Write(t, w.root, map[string]string{"a": "another a\n", "new/c": "c\n", "swap.tmp": ""})
	w.git(w.root, "rm", "-q", "-r", "gone", "dir/gone", "swap/x")
	check(t, os.Rename(w.root+"/swap.tmp", w.root+"/swap"))
	check(t, os.Chmod(w.root+"/run.sh", 0o755))
	check(t, os.Symlink("a", w.root+"/link"))
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
			check(t, w.Spares.Prepare(w.ctx(), head))
			check(t, change(w.root+"/.worktrees/.spare-1"))
			w.isPristine(w.create("lane").Path, head)
			w.tidy("lane")
		})
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
		check(t, w.Remove(w.ctx(), "lane", false))
	}
	cancel()
	<-ended
	w.tidy()
}
