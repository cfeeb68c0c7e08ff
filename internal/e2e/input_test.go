//go:build linux

package e2e

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// solo is a lead that does one thing alone.
const solo = `
speakers:
  lead:
    - do: [{task_create: {subject: greet}}]
    - do: [{claim_task: {task_id: "${task:greet}"}}]
    - do: [{write_file: {path: greeting, content: "hello\n"}}]
    - do: [{complete_task: {task_id: "${task:greet}", summary: Says hello.}}]
    - say: Done.
`

// passing are files that say who holds a lock or is there, and what a look at git leaves: no part of what there is.
var passing = []string{"repo/.git/index", "repo/.git/objects/", "repo/.git/info/exclude", "repo/.team/locks", "repo/.team/hosts"}

// picture is every file of the world with its mode and content, and every ref; without what is passing.
func (w *world) picture() map[string]string {
	w.t.Helper()
	all := map[string]string{"HEAD": w.git("rev-parse", "HEAD"), "refs": w.git("for-each-ref"), "worktrees": w.git("worktree", "list")}
	err := filepath.WalkDir(w.base, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(w.base, path)
		if err != nil || d.IsDir() || slices.ContainsFunc(passing, func(p string) bool { return strings.HasPrefix(rel, p) }) {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		sum := ""
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			sum = fmt.Sprintf(" %x", sha256.Sum256(data))
		}
		all[rel] = info.Mode().String() + sum
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// same checks that nothing has changed since the picture.
func (w *world) same(before map[string]string) {
	w.t.Helper()
	after := w.picture()
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == "" {
			w.t.Errorf("%s was made", name)
		} else if before[name] != after[name] {
			w.t.Errorf("%s was changed: %q, now %q", name, before[name], after[name])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if after[name] == "" {
			w.t.Errorf("%s is gone", name)
		}
	}
}

// refused runs a command that must be refused in a sentence with these parts, and must change nothing.
func (w *world) refused(args []string, parts ...string) {
	w.t.Helper()
	before := w.picture()
	out := w.muster(1, args...)
	w.has("stderr of muster "+strings.Join(args, " "), out.stderr, append(parts, "muster: ")...)
	if out.stdout != "" {
		w.t.Errorf("muster %s says on stdout:\n%s", strings.Join(args, " "), out.stdout)
	}
	lines := strings.Split(strings.TrimRight(out.stderr, "\n"), "\n")
	if !strings.HasPrefix(lines[0], "muster: ") {
		w.t.Errorf("muster %s: the first line is not what happened:\n%s", strings.Join(args, " "), out.stderr)
	}
	for _, l := range lines[1:] {
		if !strings.HasPrefix(l, "        ") {
			w.t.Errorf("muster %s: this line is neither what happened nor what to do: %q", strings.Join(args, " "), l)
		}
	}
	w.same(before)
}

func (w *world) commit(path, text, message string) {
	w.t.Helper()
	w.write(path, text)
	w.git("add", path)
	w.git("commit", "-q", "-m", message)
}

// TestRefusals: bad input is refused whole, before anything is written.
func TestRefusals(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	run := func(args ...string) []string { return append([]string{"run", "say hello"}, args...) }

	w.refused(run(), "no vendor's key is set, such as ANTHROPIC_API_KEY", "--model openai/")
	w.refused(run("--model", "anthropic/claude-sonnet-5"), "ANTHROPIC_API_KEY is not set")
	w.refused(run("--model", "openai/gpt-5.5"), "OPENAI_API_KEY is not set")
	w.refused(run("--model", "antropic/claude-sonnet-5"), `there is no provider "antropic"`, `anthropic`)
	w.refused(run("--model", "script/nowhere.yaml"), "nowhere.yaml")
	w.refused(run("--model", "openai/x@localhost:1"), "http://localhost:11434/v1")
	for _, name := range []string{"../x", "a/b", "Team", "lead", "con", "a b", "-x", "ünicode", strings.Repeat("a", 33), "x\ny", "$(touch pwned)", "."} {
		w.refused(run("--model", model, "--team="+name), "--team: ")
		w.refused([]string{"team", "spawn", "--role", "coder", "--", name}, "name")
		w.refused([]string{"worktree", "create", "--", name}, "name")
	}
	w.git("worktree", "add", "-q", "-b", "elsewhere", filepath.Join(w.base, "elsewhere"))
	w.refused(run("--model", model, "--land", "elsewhere"), "elsewhere", "checked out")
	for _, branch := range []string{"a..b", "-x", "a b", "refs/heads/../x", "x.lock"} {
		w.refused(run("--model", model, "--land="+branch), "cannot be the name of a branch")
	}
	w.refused([]string{"-C", filepath.Join(w.base, "home"), "run", "x", "--model", model}, "not in a git repository")
	w.refused([]string{"resume", "--model", model}, "no team here")
	w.refused([]string{"team", "stop", "nobody"}, "nobody")
	w.refused([]string{"approve", "7f2c91aa"}, "there is no request 7f2c91aa")
	w.refused([]string{"task", "complete", "99"}, "there is no task 99")
	w.refused([]string{"task", "retry", "99"}, "there is no task 99")
	w.refused([]string{"worktree", "run", "nobody", "--", "true"}, "nobody")
}

// TestNoPlace: where the state must lie is a file of the user's.
func TestNoPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	for _, name := range []string{".team", ".tasks", ".worktrees", ".transcripts"} {
		path := w.write(name, "a file of the user's\n")
		out := w.muster(1, "run", "--model", model, "say hello")
		w.has("stderr", out.stderr, "muster: ", name)
		if got := w.read(name); got != "a file of the user's\n" {
			t.Errorf("%s is now %q", name, got)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if len(w.tasks()) > 0 || w.exists("repo/.team/run.json")() {
			w.muster(0, "archive")
		}
	}
	w.has("stdout", w.muster(0, "run", "--model", model, "say hello").stdout, "1 of 1 task landed") // and now it goes
}

// TestBadRun: state that others broke is said, kept, and in nobody's way.
func TestBadRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	w.muster(0, "run", "--model", model, "--team", "x", "say hello")

	// A broken run record: told, and never overwritten.
	whole := w.read(".team/run.json")
	w.write(".team/run.json", whole[:len(whole)/2])
	for _, args := range [][]string{{"run", "again", "--model", model}, {"resume", "--model", model}, {"status"}} {
		w.refused(args, "run.json")
	}
	w.has("doctor", w.muster(1, "doctor").stdout, "run.json")
	w.write(".team/run.json", whole)

	// A broken task: the others go on.
	w.muster(0, "task", "add", "good")
	w.muster(0, "task", "add", "bad")
	w.write(".tasks/task_3.json", `{"id": 3, "subject": `)
	list := w.muster(0, "task", "list")
	w.has("task list", list.stdout, "good")
	w.has("task list", list.stderr, "task_3.json")
	w.muster(0, "task", "complete", "2")
	again := w.words(strings.ReplaceAll(solo, "hello", "goodbye"))
	w.has("run", w.muster(0, "run", "--model", again, "--team", "x", "say goodbye").stdout, "1 of 1 task landed on muster/x")
	if got := w.read(".tasks/task_3.json"); got != `{"id": 3, "subject": ` {
		t.Errorf("the broken file is now %q", got)
	}
}

// TestTarget: a dirty tree is said, a diverged target refused with the ways out of it, each of which works.
func TestTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	w.write("README", "changed\n")
	w.write("new", "untracked\n")
	out := w.muster(0, "run", "--model", model, "--team", "x", "say hello")
	w.has("stderr", out.stderr, "your uncommitted changes are part of no lane")
	if got := w.read("README") + w.read("new"); got != "changed\nuntracked\n" {
		t.Errorf("the user's changes are %q", got)
	}
	w.landedOnce("muster/x", "1")
	w.git("checkout", "-q", "README")

	w.commit("other", "other\n", "Work beside it")
	w.refused([]string{"run", "--model", model, "--team", "x", "say hello"}, "have diverged", "git merge muster/x", "--land OTHER-BRANCH", "--fresh")
	at := w.git("rev-parse", "muster/x")
	w.muster(0, "run", "--model", model, "--team", "x", "--land", "elsewhere", "say hello")
	if w.git("rev-parse", "muster/x") != at {
		t.Error("muster/x was moved by a run that lands elsewhere")
	}
	w.git("branch", "-D", "elsewhere")
	out = w.muster(0, "run", "--model", model, "--team", "x", "--fresh", "say hello")
	w.has("stderr", out.stderr, "starts again at HEAD", "kept as refs/muster/archive/muster-x")
	if !strings.Contains(w.git("for-each-ref", "refs/muster/archive"), at) {
		t.Errorf("what had landed before is nowhere in the archive:\n%s", w.git("for-each-ref"))
	}
	if n := w.git("rev-list", "--count", "main..muster/x"); n != "1" {
		t.Errorf("muster/x has %s commits beyond main, want 1", n)
	}
	w.git("merge", "-q", "muster/x")
	w.refused([]string{"run", "--model", model, "--land", "nowhere/..", "x"}, "nowhere/..")
}

// TestChecks: a check that cannot run stops the run before anything lands; one that is red on the base is said.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	for _, args := range [][]string{{"--check", "no-such-command"}, {"--check", "./README"}, {"--check", "true", "--setup", "exit 1"}} {
		out := w.muster(1, append([]string{"run", "--model", model, "--team", "x", "say hello"}, args...)...)
		w.has("stderr", out.stderr, "muster: the check cannot run", args[1], "muster run --check CMD")
		if log := w.git("log", "--format=%s", "main..muster/x"); log != "" {
			t.Errorf("landed although the check cannot run: %s", log)
		}
		if left := w.processes(); len(left) > 0 {
			t.Errorf("still running: %s", left)
		}
		if len(w.tasks()) > 0 {
			w.muster(0, "archive")
		}
	}
	out := w.muster(3, "run", "--model", model, "--team", "x", "--check", "echo so much for that; false", "say hello")
	w.has("stderr", out.stderr, "FAIL", "until a landing turns it green")
	w.has("stdout", out.stdout, "still red")
	w.lacks("stdout", out.stdout, "each checked with")
}

// TestOldGit is a machine whose git is too old, or missing.
func TestOldGit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	model := w.words(solo)
	path := w.env
	old := w.write(filepath.Join(w.base, "bin", "git"), "#!/bin/sh\necho git version 2.25.1\n")
	if err := os.Chmod(old, 0o755); err != nil {
		t.Fatal(err)
	}
	before := w.picture()
	for _, c := range []struct{ path, says string }{
		{filepath.Dir(old) + ":" + os.Getenv("PATH"), "git version 2.25.1 is too old"},
		{filepath.Join(w.base, "home"), "git"},
	} {
		w.env = append(slices.Clone(path), "PATH="+c.path)
		for _, args := range [][]string{{"run", "x", "--model", model}, {"resume"}, {"worktree", "create", "a"}} {
			out := w.muster(1, args...)
			w.has("stderr", out.stderr, "muster: ", c.says, "install git")
		}
	}
	w.env = path
	w.same(before)
}
