package landing_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/testing/gittest"
)

func TestLand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "test -f new.txt && test -f a.txt", map[string]string{"a.txt": "a\n"})
	base := w.git("rev-parse", target)
	task, lane := w.task("Add new.txt", "alice", map[string]string{"new.txt": "new\n"})
	gittest.Git(t, lane, "add", "-A")
	gittest.Git(t, lane, "commit", "-q", "-m", "half of it")
	gittest.Write(t, lane, map[string]string{"a.txt": "a2\n"})
	v := w.lands(task)
	if v.Task.Landed.Receipt != muster.ReceiptGreen || v.Task.Landed.Check != "test -f new.txt && test -f a.txt" || v.Task.Landed.Seconds <= 0 {
		t.Errorf("landed %+v", v.Task.Landed)
	}
	w.has(map[string]string{"new.txt": "new", "a.txt": "a2"})
	if got := w.git("log", "-1", "--format=%P|%an|%ce|%B", target); got != base+"|Ann Tester|ann@example.com|Add new.txt\n\nWhat alice did.\n\nMuster-Task: 1\nMuster-Member: alice\nMuster-Check: ok, test -f new.txt && test -f a.txt" {
		t.Errorf("the commit: %s", got)
	}
	equal(t, "git reads the trailer as", w.git("log", "-1", "--format=%(trailers:key=Muster-Task,valueonly)", target),
		"1")
	w.noRefs()
	if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Landed == nil || *got.Landed != *v.Task.Landed || got.Result != "What alice did." {
		t.Errorf("on the board: %+v, %v", got, err)
	}
	equal(t, "the second call", w.landed(w.try(task)).Task.Landed.Commit, v.Task.Landed.Commit)
	equal(t, "events", w.kinds(task.ID), "created claimed landing completed")
	w.must(fault(os.Stat(w.log("task-1-1-1.log"))))
}

func TestMergeCommits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"}, func(o *landing.Options) { o.MergeCommits = true })
	base := w.git("rev-parse", target)
	task, lane := w.task("Two steps", "alice", map[string]string{"one": "1\n"})
	gittest.Git(t, lane, "add", "-A")
	gittest.Git(t, lane, "commit", "-q", "-m", "step one")
	gittest.Write(t, lane, map[string]string{"two": "2\n"})
	v := w.lands(task)
	equal(t, "the receipt and the check", v.Task.Landed.Receipt+v.Task.Landed.Check, muster.ReceiptUnchecked)
	equal(t, "log", w.git("log", "--format=%s", base+".."+target), "Two steps\nTwo steps\nstep one")
	equal(t, "first parents", w.git("log", "--first-parent", "--format=%s", base+".."+target), "Two steps")
	equal(t, "check", w.git("log", "-1", "--format=%(trailers:key=Muster-Check,valueonly)", target), "not verified")
}

func TestNoChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "exit 1", map[string]string{"a.txt": "a\n"})
	tip := w.git("rev-parse", target)
	task, _ := w.task("Look only", "alice", nil)
	v, err := w.try(task)
	if err != nil || v.Task.Landed != nil || v.Task.Status != muster.Completed {
		t.Errorf("%+v, %v", v, err)
	}
	equal(t, "events", w.kinds(task.ID), "created claimed completed")
	// Two did the same thing: the second has nothing left to land.
	w.process("true")
	one, _ := w.task("The same", "bob", map[string]string{"b.txt": "b\n"})
	two, _ := w.task("The same again", "carol", map[string]string{"b.txt": "b\n"})
	w.lands(one)
	if v, err = w.try(two); err != nil || v.Task.Landed != nil || v.Task.Status != muster.Completed {
		t.Errorf("%+v, %v", v, err)
	}
	w.noRefs()
	equal(t, "commits landed", w.git("rev-list", "--count", tip+".."+target), "1")
	equal(t, "what has been checked is checked again", fault(os.Stat(w.log("task-3-1-1.log"))) == nil, false)
}

func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "! grep -rn '<<<<<<<' . --include=*.txt", map[string]string{"a.txt": "1\n2\n3\n", "c.txt": "c\n"})
	one, _ := w.task("One", "alice", map[string]string{"a.txt": "1 one\n2\n3\n"})
	two, lane := w.task("Two", "bob", map[string]string{"a.txt": "1 two\n2\n3\n", "b.txt": "b\n"})
	w.lands(one)
	v := w.back(two)
	if !strings.Contains(v.Text, "meanwhile, in a.txt.\n") || v.Task.Status != muster.InProgress || v.Task.Owner != "bob" || v.Task.Rounds != 1 {
		t.Errorf("%+v", v)
	}
	says(t, v.Text, "a.txt", "muster/demo is merged into your lane", "complete_task again",
		`- task 1 "One" by alice (`, "\n  What alice did.\n", "\n+1 one\n")
	if got := gittest.Read(t, lane, "a.txt"); !strings.Contains(got, "<<<<<<<") || !strings.Contains(got, "1 one") || !strings.Contains(got, "\n1\n") || !strings.Contains(got, "1 two") {
		t.Errorf("in the lane: %s", got)
	}
	lines := &lineHandler{text: "landing begins"} // to try again would not help
	_, err := w.lander("", launch, func(o *landing.Options) { o.Log = slog.New(lines) }).Land(w.ctx(), two.ID, two.Fence, "", two.Owner)
	wants(t, err, muster.ErrInvalid, "a.txt line 1")
	equal(t, "tries", lines.n, 1)
	got, _ := w.board.Get(w.ctx(), two.ID)
	equal(t, "returns, and an unresolved file is none", got.Rounds, 1)
	gittest.Write(t, lane, map[string]string{"a.txt": "1 one two\n2\n3\n"})
	w.lands(two)
	w.has(map[string]string{"a.txt": "1 one two\n2\n3", "b.txt": "b"})
	equal(t, "commits, one for each task", w.git("rev-list", "--count", "main.."+target), "2")
	equal(t, "events", w.kinds(two.ID), "created claimed landing returned(conflict) landing completed")
}

// The owner reads the names of as many files as it can use.
func TestTheFilesInConflict(t *testing.T) {
	for more, want := range map[string]string{"": "f, f", "g": "f and 1 more files", "g h": "f and 2 more files"} {
		files := strings.Fields(strings.Repeat("f ", 20) + more)
		if got := landing.FileList(files); !strings.HasSuffix(got, want) || strings.Count(got, "f,") != 19 {
			t.Errorf("%s", got)
		}
	}
}

// A merge in a worktree obeys .gitattributes, one on trees does not: what the first can do needs nobody.
func TestAConflictThatAttributesResolve(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"log.txt": "start\n", ".gitattributes": "log.txt merge=union\n"})
	one, _ := w.task("One", "alice", map[string]string{"log.txt": "start\none\n"})
	two, _ := w.task("Two", "bob", map[string]string{"log.txt": "start\ntwo\n"})
	w.lands(one)
	w.lands(two)
	if got := w.show("log.txt"); got != "start\none\ntwo" && got != "start\ntwo\none" {
		t.Errorf("log.txt: %q", got)
	}
	equal(t, "events", w.kinds(two.ID), "created claimed landing landing completed")
}

// Each alone is green, both together are red.
func TestRedOnTheMergedTree(t *testing.T) {
	t.Parallel()
	check := `test ! -f one -o ! -f two -o -f three || { for i in $(seq 200); do echo line $i; done; echo FAIL together; exit 1; }`
	w := newWorld(t, check, map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, lane := w.task("Two", "bob", map[string]string{"two": "2\n"})
	w.lands(one)
	v := w.back(two)
	if !strings.HasPrefix(v.Text, red) || v.Task.Status != muster.InProgress {
		t.Errorf("%+v", v)
	}
	log := w.log("task-2-1-2.log")
	if strings.Contains(v.Text, "line 90\n") || !strings.Contains(v.Text, "line 200\nFAIL together") || !strings.Contains(v.Text, log) || !strings.Contains(v.Text, "exit 1") {
		t.Errorf("text: %s", v.Text)
	}
	whole, err := os.ReadFile(log)
	if err != nil || !strings.Contains(string(whole), "line 1\n") || !strings.Contains(string(whole), "line 200\n") {
		t.Errorf("log: %v", err)
	}
	// The owner can see it fail where it stands.
	if gittest.Read(t, lane, "one") != "1\n" || !strings.Contains(v.Text, "is now merged into your lane") {
		t.Error("the lane lacks what the check saw")
	}
	gittest.Write(t, lane, map[string]string{"three": "3\n"})
	w.lands(two)
	equal(t, "events", w.kinds(two.ID), "created claimed landing returned(check) landing completed")
}

// Only the first red check on a target that the lane did not have may be the fault of both sides. Later ones count,
// however often the target moves.
func TestOnlyTheFirstRedCheckOnAMovedTargetIsFree(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "! test -f bad", map[string]string{"a.txt": "a\n"})
	w.state = "ok"
	bad, _ := w.task("Bad", "bob", map[string]string{"bad": "x\n"})
	for returns, name := range []string{"one", "two"} {
		other, _ := w.task(name, "alice", map[string]string{name: "x\n"})
		w.lands(other)
		v := w.back(bad)
		equal(t, "returns and rounds", [2]int{v.Task.Returns, v.Task.Rounds}, [2]int{returns, returns + 1})
	}
}

func TestThreeReturnsNeedAttention(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "test ! -f bad", map[string]string{"a.txt": "a\n"})
	task, lane := w.task("Bad", "alice", map[string]string{"bad": "bad\n"})
	for n := range 3 {
		v := w.back(task)
		if strings.Contains(v.Text, "merged into your lane") { // nothing has landed meanwhile
			t.Errorf("text: %s", v.Text)
		}
		equal(t, "it needs attention", v.Task.Status == muster.NeedsAttention, n == 2)
		isLost := strings.Contains(v.Text, "needs attention now and is no longer yours")
		if asks := strings.Contains(v.Text, "complete_task again"); isLost != (n == 2) || asks == isLost {
			t.Errorf("text: %s", v.Text)
		}
	}
	wants(t, fault(w.try(task)), muster.ErrFenced, "no longer yours: it needs attention now")
	equal(t, "the lane is gone", gittest.Read(t, lane, "bad"), "bad\n")
}

// Many landings at once, in two processes: all land, none twice, each checked on the tree that it made.
func TestParallelLandings(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "test $(ls w-* | wc -l) -ge 1", map[string]string{"a.txt": "a\n"})
	base := w.git("rev-parse", target)
	var tasks []muster.Task
	for i := range 8 {
		task, _ := w.task(fmt.Sprintf("Task %d", i), muster.Name(fmt.Sprintf("m%d", i)), map[string]string{fmt.Sprintf("w-%d", i): "x\n"})
		tasks = append(tasks, task)
	}
	first := w.land
	w.process("test $(ls w-* | wc -l) -ge 1")
	second := w.land
	var wg sync.WaitGroup
	for i, task := range tasks {
		l := first
		if i%2 == 1 {
			l = second
		}
		for range 1 + i%2 { // some are called twice
			wg.Go(func() { w.landed(l.Land(w.ctx(), task.ID, task.Fence, "done", task.Owner)) })
		}
	}
	wg.Wait()
	equal(t, "commits", w.git("rev-list", "--count", base+".."+target), "8")
	equal(t, "files", strings.Count(w.git("ls-tree", "--name-only", target), "w-"), 8)
	w.noRefs()
	w.git("fsck", "--strict")
}

// A lane, or a target, that was moved to another history is told to the owner, who goes on, and so is an empty lane.
func TestUnrelatedHistories(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, lane := w.task("Add b", "alice", map[string]string{"b.txt": "b\n"})
	other := w.git("commit-tree", "-m", "other", "HEAD^{tree}")
	w.git("update-ref", "refs/heads/wt/"+string(task.Worktree), other)
	v := w.back(task)
	if !strings.Contains(v.Text, "git reset --soft "+task.Base) || v.Task.Owner != "alice" {
		t.Errorf("%+v", v)
	}
	gittest.Git(t, lane, "reset", "-q", "--soft", task.Base) // as it was told
	w.lands(v.Task)
	equal(t, "b.txt did not land", w.show("b.txt"), "b")

	task, _ = w.task("Add c", "alice", map[string]string{"c.txt": "c\n"})
	tip := w.git("rev-parse", target)
	w.git("update-ref", target, other)
	v = w.back(task)
	says(t, v.Text, "tell the lead")
	w.git("update-ref", target, tip)
	w.lands(v.Task)
	task, _ = w.task("Remove", "alice", map[string]string{"a.txt": "", "b.txt": "", "c.txt": ""})
	says(t, w.back(task).Text, "Your work would delete every file of muster/demo")
}

// A git that is killed once, as for want of memory, costs the landing nothing but time.
func TestAGitThatIsKilled(t *testing.T) {
	w := newWorld(t, "", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("Add b", "alice", map[string]string{"b.txt": "b\n"})
	happened := oddGit(t, "*' commit-tree '*", 1, "kill -9 $$")
	w.process("") // as started with that git
	w.lands(task)
	equal(t, "a git was killed", happened(), true)
}
