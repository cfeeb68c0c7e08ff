//go:build linux

// Package e2e tests the whole program from outside: it runs the program in processes of its own on
// throw-away repositories, and looks only at what anybody can see: files, git, exit codes, output, processes, the wire.
//
// The first tier has one witness for each thing that only the whole program shows: a run to a landing over the wire,
// Ctrl-C, a kill and resume, the background, a terminal, an edit by hand, a budget of all repositories. Everything else
// runs in all.
//
// Read in this order: main_test.go (the program and a world for it), words_test.go (what the scripted models say), then
// the tests by name. They read /proc, so they are for Linux.
package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/wait"
	"muster/journal"
)

// caches are the Go command's own directories: the programs run with another HOME.
var caches []string

func TestMain(m *testing.M) {
	out, err := exec.Command("go", "env", "GOCACHE", "GOMODCACHE").Output()
	dirs := strings.Fields(string(out))
	if err != nil || len(dirs) != 2 {
		fmt.Fprintf(os.Stderr, "go env: %v\n%s", err, out)
		os.Exit(1)
	}
	caches = []string{"GOCACHE=" + dirs[0], "GOMODCACHE=" + dirs[1]}
	gittest.Main(m)
}

// patience is how long anything may take: long, for a machine that does other things too. Nothing waits for it to pass.
const patience = time.Minute

// world is a repository and all that its programs see of the machine.
type world struct {
	t    *testing.T
	base string // holds all of the world, and every directory that its processes may stand in
	root string // the repository
	env  []string
}

func newWorld(t *testing.T, env ...string) *world {
	t.Helper()
	m := gittest.Ordinary(t, map[string]string{"README": "a repository\n"})
	w := worldOn(t, m, append([]string{"MUSTER_SANDBOX_ENABLED=false"}, env...)...)
	gittest.GoCache(t, filepath.Join(w.base, "home", ".cache", "muster", "checks"))
	return w
}

// worldOn is the world of a machine.
func worldOn(t *testing.T, m gittest.Machine, env ...string) *world {
	w := &world{t: t, base: m.Base, root: m.Root}
	w.env = slices.Concat(m.Env, []string{"BASE=" + w.base, "MUSTER_ENVIRONMENT_PASS=BASE", "GORACE=atexit_sleep_ms=0"}, caches, env)
	t.Cleanup(func() {
		if left := w.processes(); len(left) > 0 {
			t.Errorf("still running at the end of the test:\n%s", strings.Join(left, "\n"))
			w.killAll()
		}
	})
	return w
}

// write writes a file of the repository, or of the world if the path is absolute.
func (w *world) write(path, text string) string {
	w.t.Helper()
	if !filepath.IsAbs(path) {
		path = filepath.Join(w.root, path)
	}
	gittest.Write(w.t, "/", map[string]string{path: text})
	return path
}

func (w *world) words(text string) string {
	w.t.Helper()
	return "script/" + w.write(filepath.Join(w.base, "words.yaml"), text)
}

func (w *world) read(path string) string {
	w.t.Helper()
	return string(require.Value(os.ReadFile(filepath.Join(w.root, path)))(w.t))
}

// result is how a program ended.
type result struct {
	code           int
	stdout, stderr string
	took           time.Duration
}

func (r result) String() string {
	return fmt.Sprintf("exit %d after %s\nstdout:\n%s\nstderr:\n%s", r.code, r.took.Round(time.Millisecond), r.stdout, r.stderr)
}

// process is a program that runs.
type process struct {
	t              *testing.T
	w              *world
	cmd            *exec.Cmd
	stdout, stderr output
	began          time.Time
	done           chan struct{}
}

// output is what a program printed so far. It is a file and no pipe, whose end would wait for every child that has it.
type output struct{ *os.File }

func (o output) String() string {
	data, err := os.ReadFile(o.Name())
	if err != nil {
		return err.Error()
	}
	return string(data)
}

func newOutput(t *testing.T) output {
	t.Helper()
	f := require.Value(os.CreateTemp(t.TempDir(), ""))(t)
	t.Cleanup(func() { f.Close() })
	return output{f}
}

// start starts the program in the repository, in a process group of its own as a terminal would.
func (w *world) start(args ...string) *process { return w.startWith(nil, args...) }

func (w *world) startWith(in io.Reader, args ...string) *process {
	w.t.Helper()
	p := &process{t: w.t, w: w, cmd: exec.Command(program.Path(w.t), args...), began: time.Now(), done: make(chan struct{}), stdout: newOutput(w.t), stderr: newOutput(w.t)}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = w.root, w.env, in, p.stdout.File, p.stderr.File
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	require.NoError(w.t, p.cmd.Start())
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	return p
}

func (p *process) wait() result {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGQUIT)
		<-p.done
		p.t.Fatalf("%v did not end in %s\nstdout:\n%s\nstderr:\n%.3000s\n%s", p.cmd.Args[1:], patience, p.stdout, p.stderr, p.w.told())
	}
	return result{code: p.cmd.ProcessState.ExitCode(), stdout: p.stdout.String(), stderr: p.stderr.String(), took: time.Since(p.began)}
}

func (p *process) ends(code int) result {
	p.t.Helper()
	r := p.wait()
	if r.code != code {
		p.t.Fatalf("muster %s: want exit %d, got %s", strings.Join(p.cmd.Args[1:], " "), code, r)
	}
	for _, text := range []string{"DATA RACE", "panic:", "goroutine "} {
		if strings.Contains(r.stderr, text) {
			p.t.Errorf("muster %s: stderr has %q:\n%s", strings.Join(p.cmd.Args[1:], " "), text, r.stderr)
		}
	}
	return r
}

func (w *world) muster(code int, args ...string) result {
	w.t.Helper()
	return w.start(args...).ends(code)
}

func (w *world) has(what, text string, parts ...string) {
	w.t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			w.t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

func (w *world) command(dir, name string, args ...string) *exec.Cmd {
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, w.env
	return cmd
}

func (w *world) git(args ...string) string {
	w.t.Helper()
	out, err := w.command(w.root, "git", args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (w *world) events() (all []muster.Event) {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.root, ".team", "events.jsonl"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(w.t, err)
	for line := range bytes.Lines(data) {
		if line[len(line)-1] != '\n' {
			break // is being written
		}
		var e muster.Event
		if err := json.Unmarshal(line, &e); err != nil {
			w.t.Fatalf("event %s: %v", line, err)
		}
		all = append(all, e)
	}
	return all
}

func (w *world) told() string {
	var b strings.Builder
	for _, e := range w.events() {
		if e.Kind == "turn.started" || e.Kind == "tool.ended" {
			continue
		}
		fields, _ := json.Marshal(e.Fields)
		fmt.Fprintf(&b, "%s %s %d %.300s\n", e.Kind, e.Member, e.Task, fields)
	}
	return b.String()
}

func (w *world) awaits(what string, is func() bool) {
	w.t.Helper()
	if _, ok := wait.Poll(patience, is); !ok {
		w.t.Fatalf("it never came that %s\n%s", what, w.told())
	}
}

func (w *world) awaitsEvent(what string, fits func(muster.Event) bool) {
	w.t.Helper()
	w.awaits(what, func() bool { return slices.ContainsFunc(w.events(), fits) })
}

func (w *world) isOver() {
	w.t.Helper()
	w.awaitsEvent("the end of the run", kind(journal.RunEnded))
	w.awaits("nothing of it runs", w.alone)
}

func (w *world) isInterrupted() {
	w.t.Helper()
	w.awaits("nothing of it runs", w.alone)
	w.awaitsEvent("the interruption", func(e muster.Event) bool {
		return e.Kind == journal.RunNote && strings.Contains(e.Text("text"), "interrupted")
	})
}

func kind(k string) func(muster.Event) bool {
	return func(e muster.Event) bool { return e.Kind == k }
}

func (w *world) tasks() (all []muster.Task) {
	w.t.Helper()
	files := require.Value(filepath.Glob(filepath.Join(w.root, ".tasks", "task_*.json")))(w.t)
	for _, f := range files {
		data, err := os.ReadFile(f)
		var t muster.Task
		if err == nil {
			err = json.Unmarshal(data, &t)
		}
		if err != nil {
			w.t.Fatalf("%s: %v\n%s", f, err, data)
		}
		all = append(all, t)
	}
	return all
}

// landedOnce checks that these tasks are on the target with one commit each and nothing else is, that the board says the
// same, and that no lane is left.
func (w *world) landedOnce(target string, ids ...string) {
	w.t.Helper()
	landed := strings.Fields(w.git("log", "--reverse", "--format=%(trailers:key=Muster-Task,valueonly,separator=%x20)", "main.."+target))
	slices.Sort(landed)
	slices.Sort(ids)
	if !slices.Equal(landed, ids) {
		w.t.Errorf("commits on %s are of tasks %q, want %q\n%s", target, landed, ids, w.told())
	}
	if n := w.git("rev-list", "--count", "main.."+target); n != fmt.Sprint(len(ids)) {
		w.t.Errorf("%s has %s commits, want %d", target, n, len(ids))
	}
	commits := strings.Fields(w.git("log", "--format=%H", "main.."+target))
	for _, t := range w.tasks() {
		if !slices.Contains(ids, fmt.Sprint(t.ID)) {
			continue
		}
		if t.Status != muster.Completed || t.Landed == nil || !slices.Contains(commits, t.Landed.Commit) || len(t.Effects) > 0 {
			w.t.Errorf("task %d is %s, landed %+v, effects %v; want it completed by a commit of %s, all settled", t.ID, t.Status, t.Landed, t.Effects, target)
		}
	}
	w.noLanes()
}

// noLanes checks that no lane is left: no worktree but the user's, no branch of one, nothing in the index.
func (w *world) noLanes() {
	w.t.Helper()
	if list := w.git("worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		w.t.Errorf("worktrees are left:\n%s", list)
	}
	if refs := w.git("for-each-ref", "--format=%(refname)", "refs/heads/wt", "refs/muster/landing"); refs != "" {
		w.t.Errorf("refs are left:\n%s", refs)
	}
	var index struct{ Worktrees map[string]any }
	if err := json.Unmarshal([]byte(w.read(".worktrees/index.json")), &index); err != nil || len(index.Worktrees) > 0 {
		w.t.Errorf("lanes are left in the index: %v %v", index.Worktrees, err)
	}
}

func (w *world) untouched() {
	w.t.Helper()
	if s := w.git("status", "--porcelain", "--ignored=no"); s != "" {
		w.t.Errorf("the user's checkout has changes:\n%s", s)
	}
	if b := w.git("symbolic-ref", "HEAD"); b != "refs/heads/main" {
		w.t.Errorf("the user stands on %s", b)
	}
}

// processes are the processes that stand in this world or have it in their environment, one line each.
func (w *world) processes() (found []string) {
	for pid, line := range w.running() {
		found = append(found, fmt.Sprintf("%s %s", pid, line))
	}
	return found
}

func (w *world) running() map[string]string {
	found := map[string]string{}
	entries := require.Value(os.ReadDir("/proc"))(w.t)
	for _, e := range entries {
		dir := filepath.Join("/proc", e.Name())
		environ, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil {
			continue // no process, or gone
		}
		cwd, _ := os.Readlink(filepath.Join(dir, "cwd"))
		if !strings.HasPrefix(cwd, w.base) && !bytes.Contains(environ, []byte("BASE="+w.base+"\x00")) {
			continue
		}
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil || bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X ")) {
			continue
		}
		line, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		found[e.Name()] = strings.ReplaceAll(string(line), "\x00", " ") + "in " + cwd
	}
	return found
}

func (w *world) killAll() {
	for pid := range w.running() {
		var n int
		if _, err := fmt.Sscan(pid, &n); err == nil {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
}
