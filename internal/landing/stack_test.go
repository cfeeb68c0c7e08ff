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

// Those who wait land together after one check, one commit each.
func TestOneCheckForAllThatWait(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	tasks := w.many(10)
	for _, v := range w.queued(h, tasks...) {
		w.landed(v, nil)
	}
	equal(t, "commits", w.isGreenEverywhere(), 11)
	equal(t, "checks", h.runs(t), 2)
	equal(t, "checks that are told", len(w.said(journal.LandingCheck, "", "")), 2)
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
	equal(t, "covered are all but the top", covered, 9)
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
		{"one", 1, []int{5}, 8},
		{"one, several checks at once", 4, []int{5}, 14},
		{"first", 1, []int{1}, 8},
		{"last", 1, []int{8}, 8},
		{"two", 1, []int{2, 7}, 12},
		{"all", 2, []int{1, 2, 3, 4, 5, 6, 7, 8}, 40},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.name != "one" && c.name != "one, several checks at once" {
				tier.All(t)
			}
			t.Parallel()
			h := newHold(t)
			w := newWorld(t, h.check("until [ -e "+h.dir+"/open ]; do sleep 0.01; done; ! ls | grep -q bad"), map[string]string{"a.txt": "a\n"},
				func(o *landing.Options) { o.Jobs = c.jobs })
			landing.Halve(w.land) // the first check is held, so its time says nothing
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

// Two that conflict with each other only: the second one comes back as soon as the first has landed, and that does not
// count.
func TestAConflictInTheQueue(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, h.check("true"), map[string]string{"a.txt": "a\n"})
	one, _ := w.task("One", "alice", map[string]string{"a.txt": "one\n"})
	two, _ := w.task("Two", "bob", map[string]string{"a.txt": "two\n"})
	three, _ := w.task("Three", "carol", map[string]string{"c.txt": "three\n"})
	verdicts := w.queued(h, one, two, three)
	back := 0
	for _, task := range []muster.Task{one, two} {
		if v := verdicts[task.ID]; v.Task.Landed == nil {
			if back++; v.Task.Rounds != 1 || v.Task.Returns != 0 || !strings.Contains(v.Text, "conflicts with what has landed") {
				t.Errorf("%+v", v)
			}
		}
	}
	equal(t, "came back", back, 1)
	w.landed(verdicts[three.ID], nil)
}

// A task that waits and conflicts with what has just landed comes back while checks still find out what else is red.
func TestAConflictComesBackWhileTheStackIsRed(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	told := filepath.Join(h.dir, "told")
	// The check of "good" alone ends when the conflict was told.
	w := newWorld(t, h.check("test -e good || { test ! -e bad; exit; }; test ! -e bad || exit 1; while [ ! -e "+told+" ]; do sleep 0.01; done"),
		map[string]string{"a.txt": "a\n"})
	landing.Halve(w.land)
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
}

// A check that fails by chance sends nobody back: it runs again on the same tree.
func TestAFlakyCheckReturnsNobody(t *testing.T) {
	t.Parallel()
	dir, receipts := t.TempDir(), withReceipts(t.TempDir())
	check := "rm " + dir + "/1 2>/dev/null && exit 1; ! rm " + dir + "/2 2>/dev/null"
	w := newWorld(t, check, map[string]string{"a.txt": "a\n"}, receipts)
	w.state = landing.BaseGreen
	// Once it is known to fail by chance, to this process or to the next one, it may do so twice.
	for i, reds := range []map[string]string{{"1": "x"}, {"1": "x", "2": "x"}, {"1": "x", "2": "x"}} {
		if i == 2 {
			w.process(check, receipts)
		}
		gittest.Write(t, dir, reds)
		task, _ := w.task("One", "alice", map[string]string{fmt.Sprint(i): "1\n"})
		v := w.lands(task).Task.Landed
		equal(t, "is it flaky, and the receipt", fmt.Sprint(v.Flaky, " ", v.Receipt), "true ok")
	}
	results := w.said(journal.LandingChecked, "result", "")
	equal(t, "the events say", fmt.Sprint(results), "[red ok red red ok red red ok]")
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
	for _, jobs := range []int{1, 2} { // with two it lands covered by the check of the other
		h := newHold(t)
		w := newWorld(t, h.check("while [ ! -e "+h.dir+"/then ]; do sleep 0.01; done"), map[string]string{"a.txt": "a\n"},
			func(o *landing.Options) { o.Jobs = jobs })
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
		for _, name := range []string{"open", "then"}[jobs-1:] {
			require.NoError(t, os.WriteFile(filepath.Join(h.dir, name), nil, 0o600))
		}
		w.must(<-ended)
		for _, task := range []muster.Task{one, two} {
			if got, err := w.board.Get(w.ctx(), task.ID); err != nil || got.Landed == nil {
				t.Errorf("%+v, %v", got, err)
			}
		}
		w.noRefs()
	}
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

// A board that cannot be listed once costs those who wait, and the one that is checked meanwhile, nothing but time.
func TestABoardThatCannotBeListed(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	w := newWorld(t, "", nil)
	var failed atomic.Bool
	w.store = storetest.Failing(w.store, func(op string) bool {
		return op == "list tasks" && landing.Waiting(w.land) == 3 && !failed.Swap(true)
	})
	w.process(h.check("true"), func(o *landing.Options) { // which nothing opens
		o.Hook = func(context.Context, muster.Task, string, []string) (string, error) { return "", nil }
	})
	var ends []<-chan ending
	for i, task := range w.many(3) {
		ends = append(ends, w.begin(w.ctx(), w.land, task))
		wait.For(t, "the check", func() bool { _, err := os.Stat(filepath.Join(h.dir, "held")); return err == nil })
		wait.For(t, "it to queue", func() bool { return failed.Load() || landing.Waiting(w.land) == i+1 })
	}
	for _, end := range ends {
		e := <-end
		w.landed(e.v, e.err)
	}
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

// What a task publishes holds for all that would land with it.
func TestAPublishedCheckOfAStack(t *testing.T) {
	t.Parallel()
	h := newHold(t)
	h.inOrder = true
	w := newWorld(t, h.check("true"), nil)
	api, _ := w.task("Api", "alice", map[string]string{"api": "v1\n"})
	w.publish(api, "api", "test ! -e breaks")
	breaks, _ := w.task("Breaks", "bob", map[string]string{"breaks": "1\n"})
	verdicts := w.queued(h, api, breaks)
	w.landed(verdicts[api.ID], nil)
	says(t, verdicts[breaks.ID].Text, "check api of task 1 (Api, alice)")
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
