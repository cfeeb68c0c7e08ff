package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/landing"
	"muster/internal/proc"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
	"muster/journal"
	"muster/store/storetest"
)

// hold is a check of the first landing that waits until a file is there, so that others queue meanwhile, and that
// counts how often it ran.
type hold struct {
	dir     string
	inOrder bool                           // they queue one after the other, which is the order in which they land
	ends    func(t muster.Task, err error) // looks at how each landing ends; nil: none may fail
}

func newHold(t *testing.T) hold { t.Helper(); return hold{dir: t.TempDir()} }

// check is the command. then decides about all but the first tree.
func (h hold) check(then string) string {
	return fmt.Sprintf("echo x >> %[1]s/runs; if mkdir %[1]s/held 2>/dev/null; then "+
		"while [ ! -e %[1]s/open ]; do sleep 0.01; done; exit 0; fi; %[2]s", h.dir, then)
}

func (h hold) runs(t *testing.T) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "runs"))
	require.NoError(t, err)
	return strings.Count(string(data), "x")
}

// queued lands a first task whose check is held until all the others are in the queue, and returns their verdicts.
func (w *world) queued(h hold, tasks ...muster.Task) map[muster.TaskID]landing.Verdict {
	w.t.Helper()
	first, _ := w.task("First", "zoe", map[string]string{"first": "1\n"})
	var mu sync.Mutex
	var all sync.WaitGroup
	verdicts := map[muster.TaskID]landing.Verdict{}
	land := func(t muster.Task) {
		all.Go(func() {
			v, err := w.try(t)
			mu.Lock()
			defer mu.Unlock()
			if verdicts[t.ID] = v; h.ends != nil {
				h.ends(t, err)
			} else if err != nil {
				w.t.Errorf("task %d: %v", t.ID, err)
			}
		})
	}
	land(first)
	wait.For(w.t, "the first check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
	for i, t := range tasks {
		land(t)
		if h.inOrder {
			wait.For(w.t, "the next one to queue", func() bool { return landing.Waiting(w.land) == i+2 })
		}
	}
	wait.For(w.t, "the others to queue", func() bool { return landing.Waiting(w.land) == len(tasks)+1 })
	w.must(os.WriteFile(filepath.Join(h.dir, "open"), nil, 0o600))
	all.Wait()
	w.noRefs()
	// What the board calls landed is on the target, however the others came there.
	for id, v := range verdicts {
		if v.Task.Landed != nil && w.git("merge-base", v.Task.Landed.Commit, target) != v.Task.Landed.Commit {
			w.t.Errorf("the commit %.7s of task %d is not on the target", v.Task.Landed.Commit, id)
		}
	}
	return verdicts
}

// many makes tasks that each add a file of their own; those in bad break the check.
func (w *world) many(n int, bad ...int) (tasks []muster.Task) {
	w.t.Helper()
	for i := 1; i <= n; i++ {
		files := map[string]string{fmt.Sprintf("file-%d", i): "x\n"}
		for _, b := range bad {
			if b == i {
				files[fmt.Sprintf("bad-%d", i)] = "x\n"
			}
		}
		t, _ := w.task(fmt.Sprintf("Task %d", i), muster.Name(fmt.Sprintf("m%d", i)), files)
		tasks = append(tasks, t)
	}
	return tasks
}

// isGreenEverywhere checks that each commit on the target whose trailer says ok passes the test, and returns how many
// commits have landed.
func (w *world) isGreenEverywhere() int {
	w.t.Helper()
	commits := strings.Fields(w.git("rev-list", "--first-parent", "main.."+target))
	for _, c := range commits {
		if strings.Contains(w.git("log", "-1", "--format=%B", c), "Muster-Check: ok") &&
			strings.Contains(w.git("ls-tree", "--name-only", c), "bad") {
			w.t.Errorf("%s is called green", c)
		}
	}
	return len(commits)
}

// Those who wait land together after one check, one commit each, at most 16 of them: 40 cost three checks beside the one
// of the first.
func TestOneCheckForAllThatWait(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	tasks := w.many(40)
	for _, v := range w.queued(h, tasks...) {
		w.landed(v, nil)
	}
	equal(t, "commits", w.isGreenEverywhere(), 41)
	equal(t, "checks", h.runs(t), 4)
	equal(t, "checks that are told", len(w.said(journal.LandingCheck, "", "")), 4)
	covered := 0
	for _, task := range tasks {
		got, err := w.board.Get(w.ctx(), task.ID)
		w.must(err)
		message := w.git("log", "-1", "--format=%B", got.Landed.Commit)
		switch got.Landed.Receipt {
		case muster.ReceiptCovered:
			by, err := w.board.Get(w.ctx(), got.Landed.CoveredBy)
			if covered++; err != nil || by.Landed.Receipt != muster.ReceiptGreen || !strings.Contains(message, "Muster-Check: covered, ") {
				t.Errorf("%+v is covered by %+v: %s", got.Landed, by.Landed, message)
			}
		case muster.ReceiptGreen:
			says(t, message, "Muster-Check: ok, ")
		}
	}
	equal(t, "covered are all but the tops", covered, 37)
}

// A red stack returns whoever made it red, and lands all others.
func TestARedStackReturnsTheCulprits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		jobs int
		bad  []int
		most int // checks
	}{
		// The first task, the stack, three halves, the suspect again, and those that were above it.
		{"one", 1, []int{5}, 1 + 1 + 3 + 1 + 1},
		{"one, two checks at once", 2, []int{5}, 1 + 1 + 2*3 + 1 + 1},
		{"two", 1, []int{2, 7}, 1 + 2*(1+3+1) + 1},
		{"all", 2, []int{1, 2, 3, 4, 5, 6, 7, 8}, 51},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "one" && c.name != "one, two checks at once" {
				tier.All(t)
			}
			t.Parallel()
			h := newHold(t)
			w := newWorld(t, h.check("! ls | grep -q bad"), map[string]string{"a.txt": "a\n"},
				func(o *landing.Options) { o.Jobs = c.jobs })
			w.state = landing.BaseGreen
			tasks := w.many(8, c.bad...)
			verdicts := w.queued(h, tasks...)
			for i, task := range tasks {
				v, isBad := verdicts[task.ID], false
				for _, b := range c.bad {
					isBad = isBad || b == i+1
				}
				if isBad == (v.Task.Landed != nil) || isBad && !strings.HasPrefix(v.Text, red) {
					t.Errorf("task %d: %+v", task.ID, v)
				}
			}
			equal(t, "commits", w.isGreenEverywhere(), 9-len(c.bad))
			if n := h.runs(t); n > c.most {
				t.Errorf("%d checks, want at most %d", n, c.most)
			}
		})
	}
}

// A task that waits and conflicts with what has just landed comes back while checks still find out what else is red. That
// does not count.
func TestAConflictComesBackWhileTheStackIsRed(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	told := filepath.Join(h.dir, "told")
	// The check of "good" alone ends when the conflict was told.
	w := newWorld(t, h.check("test -e good || { test ! -e bad; exit; }; test ! -e bad || exit 1; while [ ! -e "+told+" ]; do sleep 0.01; done"),
		map[string]string{"a.txt": "a\n"})
	w.state = landing.BaseGreen
	one, _ := w.task("One", "alice", map[string]string{"a.txt": "one\n"})
	good, _ := w.task("Good", "bob", map[string]string{"good": "x\n"})
	bad, _ := w.task("Bad", "carol", map[string]string{"bad": "x\n"})
	two, _ := w.task("Two", "dave", map[string]string{"a.txt": "two\n"})
	ended := make(chan error)
	go func() {
		_, isBack := wait.Poll(5*time.Minute, func() bool {
			got, err := w.board.Get(w.t.Context(), two.ID)
			return err == nil && got.Returned != ""
		})
		err := os.WriteFile(told, nil, 0o600)
		if !isBack {
			err = errors.New("the conflict has not come back")
		}
		ended <- err
	}()
	verdicts := w.queued(h, one, good, bad, two)
	w.must(<-ended)
	for id, landed := range map[muster.TaskID]bool{one.ID: true, good.ID: true, bad.ID: false, two.ID: false} {
		equal(t, fmt.Sprint("has landed: task ", id), verdicts[id].Task.Landed != nil, landed)
	}
	v := verdicts[two.ID]
	says(t, v.Text, "conflicts with what has landed")
	equal(t, "returns, and those that count", fmt.Sprint(v.Task.Rounds, v.Task.Returns), "1 0")
}

// With two jobs both halves are checked at the same time, and the good one lands while it is not known yet whose work
// in the other one is red.
func TestBothHalvesAreCheckedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	// The check of a half, which has two of the files, ends when that of the other half has begun.
	w := newWorld(t, h.check(`[ $(ls | grep -c file) -ne 2 ] || { touch `+h.dir+`/half-$(ls | grep -m1 file); `+
		`until [ $(ls `+h.dir+` | grep -c half) -eq 2 ]; do sleep 0.01; done; }; ! ls | grep -q bad`),
		nil, func(o *landing.Options) { o.Jobs = 2 })
	w.state = landing.BaseGreen
	tasks := w.many(4, 2)
	verdicts := w.queued(h, tasks...)
	for i, task := range tasks {
		equal(t, fmt.Sprint("has landed: task ", i+1), verdicts[task.ID].Task.Landed != nil, i != 1)
	}
	says(t, verdicts[tasks[1].ID].Text, red)
	equal(t, "the order", w.git("log", "--reverse", "--format=%s", "main.."+target), "First\nTask 3\nTask 4\nTask 1")
	equal(t, "checks", h.runs(t), 1+1+2+2+1)
}

// A check that is red once and then green returns no task. Only the last suspect is checked a second time, and its
// landing is reported as flaky.
func TestAFlakyCheckReturnsNobody(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("! rm "+h.dir+"/red 2>/dev/null"), nil)
	w.state = landing.BaseGreen
	gittest.Write(t, h.dir, map[string]string{"red": "x"})
	flaky := 0
	for _, v := range w.queued(h, w.many(4)...) {
		if w.landed(v, nil).Task.Landed.Flaky {
			flaky++
		}
		equal(t, "returns", v.Task.Rounds, 0)
	}
	equal(t, "flaky landings", flaky, 1)
	equal(t, "the events say", fmt.Sprint(w.said(journal.LandingChecked, "result", "")), "[ok red ok ok ok]")
	equal(t, "checks", h.runs(t), 5)
}

// A claim that is revoked while the stack is checked does not land, and the others do.
func TestAClaimOfTheStackIsRevoked(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	tasks, checks := w.many(3), 0
	w.land = w.lander(h.check("true"), func() (proc.Launcher, error) {
		if checks++; checks == 2 {
			w.must(w.land.Revoke(w.ctx(), tasks[1].ID, tasks[1].Fence))
		}
		return launch()
	})
	h.ends = func(task muster.Task, err error) {
		if isRevoked := task.ID == tasks[1].ID; isRevoked != errors.Is(err, muster.ErrFenced) || !isRevoked && err != nil {
			t.Errorf("task %d: %v", task.ID, err)
		}
	}
	w.queued(h, tasks...)
	equal(t, "commits", w.isGreenEverywhere(), 3)
	equal(t, "is it there", strings.Contains(w.git("ls-tree", "--name-only", target), "file-2"), false)
}

// An owner that goes while its work is checked keeps nobody else from landing, and its own work is recorded.
func TestAnOwnerLeavesTheQueue(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"two": "2\n"})
	gone, leave := context.WithCancelCause(w.ctx())
	ended := make(chan error, 2)
	go func() { _, err := w.land.Land(gone, one.ID, one.Fence, "", one.Owner); ended <- err }()
	wait.For(t, "the check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
	go func() { _, err := w.try(two); ended <- err }()
	wait.For(t, "the other", func() bool { return landing.Waiting(w.land) == 2 })
	leave(muster.CauseUser)
	is(t, "who has left", <-ended, muster.CauseUser)
	require.NoError(t, os.WriteFile(filepath.Join(h.dir, "open"), nil, 0o600))
	w.must(<-ended)
	for _, task := range []muster.Task{one, two} {
		if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Landed == nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	w.noRefs()
}

// What has come back or was reviewed lands first, then what is urgent, what unblocks most tasks, and what came first.
func TestTheOrderOfTheQueue(t *testing.T) {
	t.Parallel()
	tasks := []muster.Task{
		{ID: 1, Status: muster.Landing}, {ID: 2, Status: muster.Landing}, {ID: 3, Status: muster.Landing, Rounds: 1},
		{ID: 4, Status: muster.Pending, DependsOn: []muster.TaskID{2}},
		{ID: 5, Status: muster.Pending, DependsOn: []muster.TaskID{4}},
		{ID: 6, Status: muster.Completed, DependsOn: []muster.TaskID{1}},
	}
	equal(t, "who waits", fmt.Sprint(landing.Dependants(tasks)), "map[2:2 4:1]")
	w := newWorld(t, "", nil)
	tasks = w.many(6)
	tasks[1].Priority, tasks[2].Rounds, tasks[4].Review = 5, 1, true
	_, err := w.board.Create(w.ctx(), board.Draft{Subject: "More", CreatedBy: muster.Lead, BlockedBy: []muster.TaskID{tasks[3].ID}})
	w.must(err)
	ids, err := landing.Order(w.ctx(), w.land, tasks)
	w.must(err)
	equal(t, "the order", fmt.Sprint(ids), "[5 3 2 4 6 1]")
}

// Whoever comes when the last owner has just left does not get the end of that one's wait.
func TestAnOwnerComesWhenTheLastHasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "true", map[string]string{"a.txt": "a\n"})
	task, _ := w.task("One", "alice", map[string]string{"one": "1\n"})
	landing.EndDrainer(w.ctx(), w.land, muster.CauseUser)
	w.lands(task)
}

// Work that another one in the stack brings too, or is in conflict with, lands by itself where the other one is red.
func TestTheOthersOfARedOne(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	w := newWorld(t, h.check("test ! -e bad"), map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"same": "1\n", "bad": "1\n", "a.txt": "one\n"})
	same, _ := w.task("Same", "bob", map[string]string{"same": "1\n"})
	conflict, _ := w.task("Conflict", "carol", map[string]string{"a.txt": "conflict\n"})
	verdicts := w.queued(h, one, same, conflict)
	if v := verdicts[one.ID]; v.Task.Status != muster.InProgress || !strings.HasPrefix(v.Text, red) {
		t.Errorf("%+v", v)
	}
	for _, task := range []muster.Task{same, conflict} {
		if kinds := w.kinds(task.ID); verdicts[task.ID].Task.Landed == nil || kinds != "created claimed landing completed" {
			t.Errorf("%s: %+v", kinds, verdicts[task.ID])
		}
	}
	w.has(map[string]string{"same": "1", "a.txt": "conflict"})
}

// A board that cannot be listed once costs those who wait nothing but time.
func TestABoardThatCannotBeListed(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, "", nil)
	tasks := w.many(2)
	var failed atomic.Bool
	w.store = storetest.Failing(w.store, func(op string) bool { // the others are sorted when the first has landed
		return op == "list tasks" && landing.Waiting(w.land) == 2 && !failed.Swap(true)
	})
	w.process(h.check("true"))
	for _, v := range w.queued(h, tasks...) {
		w.landed(v, nil)
	}
	equal(t, "the list has failed", failed.Load(), true)
}

// On a red base a check tells only of the last work whether it made anything worse, so each has its own.
func TestNoCheckCoversOthersOnARedBase(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, strings.Replace(h.check("exit 1"), "exit 0", "exit 1", 1), nil)
	w.state = landing.BaseRed
	for _, v := range w.queued(h, w.many(2)...) {
		equal(t, "the receipt", w.landed(v, nil).Task.Landed.Receipt, muster.ReceiptStillRed)
	}
}

// A hook of the user is asked about each task of those that wait, and its word about one decides nothing for the others.
func TestAHookDecidesAboutEachTask(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	var mu sync.Mutex
	asked := map[string]int{}
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"}, func(o *landing.Options) {
		o.Hook = func(_ context.Context, task muster.Task, _ string, _ []string) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[task.Subject]++
			if task.Subject == "Task 2" {
				return "Not this one.", nil
			}
			return "", nil
		}
	})
	w.state = landing.BaseGreen
	for _, v := range w.queued(h, w.many(3)...) {
		if name := v.Task.Subject; (v.Task.Landed == nil) != (name == "Task 2") || asked[name] != 1 {
			t.Errorf("%s: asked %d times, %+v", name, asked[name], v)
		}
	}
}
