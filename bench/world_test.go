//go:build linux

package bench

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	root "muster"
)

// world is a repository, and all that its programs see of the machine. HOME is empty.
type world struct {
	tb   testing.TB
	base string
	root string // the repository
	env  []string
}

func newWorld(tb testing.TB, files int) *world {
	tb.Helper()
	base := need(filepath.EvalSymlinks(tb.TempDir()))(tb)
	w := &world{tb: tb, base: base, root: filepath.Join(base, "repo")}
	for _, d := range []string{"repo", "home", "tmp"} {
		must(tb, os.Mkdir(filepath.Join(base, d), 0o755))
	}
	w.env = environment(base)
	for i := range files {
		dir := filepath.Join(w.root, fmt.Sprintf("d%02d", i/100))
		must(tb, os.MkdirAll(dir, 0o755))
		must(tb, os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%04d.go", i)), bytes.Repeat(fmt.Appendf(nil, "// line of file %d\n", i), 100), 0o644))
	}
	w.commitAll()
	return w
}

func environment(base string) []string {
	return []string{
		"HOME=" + filepath.Join(base, "home"), "TMPDIR=" + filepath.Join(base, "tmp"), "PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8",
		"MUSTER_SANDBOX_ENABLED=false", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=user", "GIT_AUTHOR_EMAIL=user@example.org", "GIT_COMMITTER_NAME=user",
		"GIT_COMMITTER_EMAIL=user@example.org",
	}
}

func (w *world) commitAll() {
	w.tb.Helper()
	w.git("init", "-q", "-b", "main")
	w.git("add", ".")
	w.git("commit", "-q", "-m", "start")
	w.git("repack", "-a", "-d", "-q") // as in a clone
}

func (w *world) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(name, args...)
	c.Dir, c.Env = w.root, w.env
	return c
}

func (w *world) git(args ...string) {
	w.tb.Helper()
	w.output(w.command("git", args...))
}

func (w *world) muster(args ...string) string {
	w.tb.Helper()
	return w.output(w.command(muster, args...))
}

func (w *world) output(c *exec.Cmd) string {
	w.tb.Helper()
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); e != nil {
		w.tb.Fatalf("%s: %v\n%s%s", strings.Join(c.Args, " "), e, &out, &err)
	}
	return out.String()
}

// board writes so many pending tasks as files, in the form that the program itself writes.
func (w *world) board(tasks int) {
	w.tb.Helper()
	dir := filepath.Join(w.root, ".tasks")
	must(w.tb, os.MkdirAll(dir, 0o700))
	now := root.UnixTime(time.Now().Add(-time.Minute))
	for i := 1; i <= tasks; i++ {
		data := need(root.Encode(root.Task{ID: root.TaskID(i), Subject: fmt.Sprintf("task number %d", i), Status: root.Pending,
			Description: strings.Repeat("What is wanted, in some words. ", 10), CreatedBy: root.User, CreatedAt: now, UpdatedAt: now}))(w.tb)
		must(w.tb, os.WriteFile(filepath.Join(dir, fmt.Sprintf("task_%d.json", i)), data, 0o600))
	}
	w.muster("adopt", "--yes") // the program has not made it
	must(w.tb, exec.Command("sync", "-f", dir).Run())
}
