package worktree_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/paths"
	"muster/internal/testing/gittest"
	"muster/internal/testing/wait"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/mem"
)

// TestMain lets the test binary be the process that is killed: it makes and removes lanes until it dies.
func TestMain(m *testing.M) {
	if root := os.Getenv("LANES_TO_KILL"); root != "" {
		busy(root)
	}
	gittest.Main(m)
}

func busy(root string) {
	ctx := context.Background()
	repo, err := git.Open(ctx, root)
	if err != nil {
		panic(err)
	}
	log := mem.New().Log()
	l, err := worktree.Open(repo, durable.New(durable.OS{}), paths.Dir(root), journal.New(log), log, worktree.Options{})
	if err != nil {
		panic(err)
	}
	if os.Getenv("LANES_OUTSIDE") != "" {
		dir, _, err := l.CheckDirs.Create()
		if err != nil {
			panic(err)
		}
		fmt.Println(dir)
		select {}
	}
	if os.Getenv("LANES_OF_SPARES") != "" {
		head, err := repo.Head(ctx)
		if err != nil {
			panic(err)
		}
		go func() {
			for {
				if err := l.Spares.Prepare(ctx, head); err != nil {
					panic(err)
				}
			}
		}()
	}
	fmt.Println("ready")
	for g := range 2 {
		go func() {
			for i := 0; ; i++ {
				name := muster.Name(fmt.Sprintf("p%d-%d-%d", os.Getpid(), g, i))
				if _, err := l.Create(ctx, name, 0, ""); err != nil {
					panic(err)
				}
				if err := l.Remove(ctx, name, true); err != nil {
					panic(err)
				}
			}
		}()
	}
	select {}
}

// A process that makes and removes lanes is killed at any moment: after recovery nothing is half there, and what
// another process is just making is left alone.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i := range 100 {
		files[fmt.Sprintf("dir-%d/file-%d.txt", i%7, i)] = strings.Repeat("line\n", 50)
	}
	w := newWorld(t, files)
	for n := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "LANES_TO_KILL="+w.root)
		if n%2 == 1 {
			cmd.Env = append(cmd.Env, "LANES_OF_SPARES=1")
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Fscanln(out, new(string)); err != nil {
			t.Fatal(err)
		}
		wait.Elapse(rand.N(120 * time.Millisecond)) // the moment of the kill
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait() // it was killed
		if err := w.Recover(w.ctx()); err != nil {
			t.Fatal(err)
		}
		// A git of the killed process that still checks a spare out has its lease for another instant.
		wait.For(t, "the end of all spares", func() bool {
			left, err := filepath.Glob(w.root + "/.worktrees/.spare-*")
			return err == nil && (len(left) == 0 || w.Recover(w.ctx()) != nil)
		})
		for _, lane := range w.must(w.List(w.ctx())) {
			// A lane that was whole stays; it can be worked in and removed.
			if lane.Status != muster.LaneActive {
				t.Errorf("%s is %s", lane.Name, lane.Status)
			}
			if _, err := w.Enter(w.ctx(), lane.Name); err != nil {
				t.Error(err)
			}
			if err := w.Remove(w.ctx(), lane.Name, false); err != nil {
				t.Error(err)
			}
		}
		w.tidy()
	}
	if aside, _ := filepath.Glob(w.root + "/.worktrees/*"); len(aside) > 1 {
		t.Errorf("left over: %v", aside)
	}
	gittest.Git(t, w.root, "fsck")
}

func (w *world) must(all []muster.Lane, err error) []muster.Lane {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// Two archive the same lane: one archive, one removal, told once.
func TestArchivedTwiceAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	for n := range 5 {
		name := muster.Name(fmt.Sprintf("lane-%d", n))
		lane := w.create(name)
		gittest.Write(t, lane.Path, map[string]string{"b": "b\n"})
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() {
				if _, err := w.Archive(w.ctx(), name); err != nil && !errors.Is(err, muster.ErrNotFound) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if got := w.git(w.root, "for-each-ref", "--format=x", "refs/muster/archive/"+string(name)+"-*"); got != "x" {
			t.Errorf("archives of %s: %q", name, got)
		}
		if got := strings.Count(strings.Join(w.events(), " "), "worktree.remove.after "+string(name)); got != 1 {
			t.Errorf("%s was removed %d times", name, got)
		}
	}
	w.tidy()
}

// The states that a crash can leave, one by one.
func TestRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	head, _ := w.repo.Head(ctx)
	row := func(name, extra string) string {
		return fmt.Sprintf(`%q:{"name":%q,"path":%q,"branch":"wt/%s","status":"creating","base":%q%s}`, name, name, w.root+"/.worktrees/"+name, name, head, extra)
	}
	// intent only; branch only; branch and worktree; branch that has moved; being made by a living process.
	for _, b := range []string{"branch", "moved", "whole", "living"} {
		w.git(w.root, "branch", "wt/"+b)
	}
	w.git(w.root, "worktree", "add", "-q", w.root+"/.worktrees/whole", "wt/whole")
	w.git(w.root, "worktree", "lock", w.root+"/.worktrees/whole") // as git does while it makes one
	w.git(w.root, "update-ref", "refs/heads/wt/moved", w.git(w.root, "commit-tree", "-p", head, "-m", "x", head+"^{tree}"))
	gittest.Write(t, w.root, map[string]string{".git/refs/heads/wt/branch.lock": ""}) // as a killed git leaves it
	unlock, err := durable.New(durable.OS{}).TryLock(w.root + "/.team/locks/lane-maker-9.lock")
	if err != nil {
		t.Fatal(err)
	}
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": `{"worktrees":{` + strings.Join([]string{
		row("intent", ""), row("branch", `,"maker":"lane-maker-1"`), row("moved", ""), row("whole", `,"maker":"lane-maker-2"`), row("living", `,"maker":"lane-maker-9"`),
	}, ",") + `}}`})
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	status := map[muster.Name]muster.LaneStatus{}
	for _, lane := range w.must(w.List(ctx)) {
		status[lane.Name] = lane.Status
	}
	if len(status) != 2 || status["living"] != muster.LaneCreating || status["moved"] != muster.LaneFailed {
		t.Errorf("after recovery: %v", status)
	}
	if got := w.git(w.root, "for-each-ref", "--format=%(refname:lstrip=3)", "refs/heads/wt/"); got != "living\nmoved" {
		t.Errorf("branches %q", got)
	}
	// The maker dies: whoever wants the name next gets it.
	if _, err := w.Create(ctx, "living", 0, ""); err == nil {
		t.Error("took a lane from its living maker")
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Create(ctx, "living", 0, ""); err != nil {
		t.Error(err)
	}
	// A removal that stopped after its mark, with the worktree half gone.
	if err := os.Remove(w.root + "/.worktrees/living/.git"); err != nil {
		t.Fatal(err)
	}
	marked := strings.Replace(w.index(), `"status": "active"`, `"status": "active", "removing": {"ref": ""}`, 1)
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": marked})
	if _, err := w.Enter(ctx, "living"); err == nil {
		t.Error("entered a lane that is being removed")
	}
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Get(ctx, "living"); err == nil {
		t.Error("the removal was not finished")
	}
	if found, _ := filepath.Glob(w.root + "/.git/worktrees/*"); len(found) > 0 {
		t.Errorf("still registered: %v", found)
	}
	// A lane without its row, one without its directory, one without anything.
	lane := w.create("lost")
	w.create("homeless")
	w.create("ghost")
	for _, name := range []string{"homeless", "ghost"} {
		if err := os.RemoveAll(w.root + "/.worktrees/" + name); err != nil {
			t.Fatal(err)
		}
	}
	w.git(w.root, "worktree", "prune")
	w.git(w.root, "branch", "-q", "-D", "wt/ghost")
	cut := strings.Replace(w.index(), `"lost"`, `"was-lost"`, 1)
	gittest.Write(t, w.root, map[string]string{".worktrees/index.json": cut})
	if err := w.Recover(ctx); err != nil {
		t.Fatal(err)
	}
	got, err := w.Get(ctx, "lost")
	if err != nil || got.Path != lane.Path || got.Status != muster.LaneActive || got.Base != "" {
		t.Errorf("found again: %+v, %v", got, err)
	}
	if _, err := w.Changed(ctx, "lost"); err == nil {
		t.Error("a lane of unknown base is verified")
	}
	if got, err := w.Get(ctx, "homeless"); err != nil || got.Status != muster.LaneFailed {
		t.Errorf("without its directory: %+v, %v", got, err)
	}
	if err := w.Remove(ctx, "homeless", false); err != nil {
		t.Error(err)
	}
	if _, err := w.Get(ctx, "ghost"); err == nil {
		t.Error("a lane that is nowhere has a row")
	}
}

// A directory outside the repository is a living process's until it removes it, and a killed one's is removed.
func TestAKilledProcessLeavesNothingOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	mine, remove, err := w.CheckDirs.Create()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "LANES_TO_KILL="+w.root, "LANES_OUTSIDE=1", "TMPDIR="+tmp)
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	its := strings.TrimSpace(line)
	gittest.Write(t, its, map[string]string{"sealed/x": "x\n"})
	if err := os.Chmod(filepath.Join(its, "sealed"), 0o500); err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(its) == w.root {
		t.Errorf("%s lies in the repository", its)
	}
	if err := w.Recover(w.ctx()); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{mine, its} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("its maker lives: %v", err)
		}
	}
	_ = child.Process.Kill()
	_ = child.Wait()
	if err := w.Recover(w.ctx()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(its); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", its, err)
	}
	remove()
	if _, err := os.Stat(mine); !os.IsNotExist(err) {
		t.Errorf("%s is still there (%v)", mine, err)
	}
	if left, _ := filepath.Glob(filepath.Join(w.root, ".team/locks/check-*")); len(left) != 2 { // the leases
		t.Errorf("left: %v", left)
	}
}
