//go:build linux

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	root "muster"
	"muster/journal"
)

// landingCost is what it cost to land some tasks.
type landingCost struct {
	wall   float64 // seconds
	checks int
	cpu    float64 // of the checks, in seconds

	// Only of a team:
	landed    int
	parked    float64 // the share of its teammates' time in which their tasks were landing, in percent
	returns   int
	returned  map[int]int // by a task's number, how often it came back because of the check
	attention int         // tasks that needed attention at the end
}

// landingRun is a run of a team whose landings are measured.
type landingRun struct {
	*world
	tasks     []landingTask
	teammates int
	check     string // the command
}

func (r *landingRun) run() (cost landingCost) {
	r.tb.Helper()
	r.writeWork(r.tasks)
	s := serve(r.tb, r.landingScript(r.tasks, r.teammates))
	r.forgetChecks()
	start := time.Now()
	c := r.command(muster, "run", "--check", r.check, "--teammates", fmt.Sprint(r.teammates), "--max-turns", "400", "land all tasks")
	c.Env = append(append(c.Env, s.env()...), "MUSTER_IDLE_TIMEOUT=0")
	out, err := c.CombinedOutput()
	// A run that leaves work exits with 3; what it left is counted.
	if exit, is := errors.AsType[*exec.ExitError](err); err != nil && (!is || exit.ExitCode() != 3) {
		r.tb.Fatalf("muster run: %v\n%s", err, out)
	}
	r.tb.Logf("%s", out)
	cost.wall = time.Since(start).Seconds()
	cost.checks, cost.cpu = r.checksRun()
	r.count(&cost)
	return cost
}

func (r *landingRun) events() (all []root.Event) {
	data, _ := os.ReadFile(filepath.Join(r.root, ".team", "events.jsonl"))
	for line := range bytes.Lines(data) {
		var e root.Event
		if json.Unmarshal(line, &e) == nil {
			all = append(all, e)
		}
	}
	return all
}

func (r *landingRun) count(cost *landingCost) {
	began, parked := map[root.TaskID]float64{}, 0.0
	needs := map[root.TaskID]bool{}
	cost.returned = map[int]int{}
	for _, e := range r.events() {
		switch e.Kind {
		case journal.TaskLanding:
			if _, isKnown := began[e.Task]; !isKnown {
				began[e.Task] = e.At
			}
			continue
		case journal.TaskCompleted:
			cost.landed++
			delete(needs, e.Task)
		case journal.TaskReturned:
			if cost.returns++; e.Text("reason") == "check" {
				cost.returned[r.tasks[e.Task-1].n]++ // they were created in this order
			}
		case journal.TaskAttention:
			needs[e.Task] = true
		default:
			continue
		}
		if at, isKnown := began[e.Task]; isKnown {
			parked += e.At - at
			delete(began, e.Task)
		}
	}
	cost.attention = len(needs)
	cost.parked = 100 * parked / (cost.wall * float64(r.teammates))
}

func (r *landingRun) runVerified() landingCost {
	r.tb.Helper()
	base := r.head()
	cost := r.run()
	r.tb.Logf("%d commits verified", r.verify(base, libraryCheck))
	for _, t := range r.tasks {
		if n := cost.returned[t.n]; n > 0 && t.mend == "" {
			r.tb.Errorf("task %02d came back %d times because of the check, and there is nothing wrong with it", t.n, n)
		}
	}
	for _, e := range r.events() {
		if at := e.Text("commit"); e.Kind == journal.TaskCompleted && at != "" &&
			r.command("git", "merge-base", "--is-ancestor", at, "muster/repo").Run() != nil {
			r.tb.Errorf("task %d landed as %s, and that is not on the target", e.Task, at)
		}
	}
	return cost
}

// verify fails unless all that the run landed is there once, and each commit on the target that claims a green check has one.
// It is not measured. check is the check without what is measured; checks is how many commits it has checked.
func (r *landingRun) verify(base, check string) (checks int) {
	r.tb.Helper()
	target := "muster/repo"
	r.checkTasksOnce(target, r.tasks)
	p := &plainGit{world: r.world, check: check, dir: filepath.Join(r.base, "verified")}
	r.git("worktree", "add", "-q", "--detach", p.dir, target)
	out := r.output(r.command("git", "log", "--reverse", "--first-parent", "--format=%H %(trailers:key=Muster-Check,valueonly)", base+".."+target))
	for line := range strings.Lines(out) {
		commit, receipt, _ := strings.Cut(strings.TrimSpace(line), " ")
		if isGreenReceipt.MatchString(receipt) {
			checks++
			if !p.isGreen(commit) {
				r.tb.Errorf("%s says %q, and the check is red on it", commit, receipt)
			}
		}
	}
	if !p.isGreen(target) {
		r.tb.Errorf("the target is red at the end")
	}
	return checks
}

// isGreenReceipt matches the receipt of a commit that was checked itself.
var isGreenReceipt = regexp.MustCompile(`^ok\b`)

func (l *library) newLandingRun(b *testing.B, tasks []landingTask, teammates int) *landingRun {
	w := l.newWorld(b)
	return &landingRun{world: w, tasks: tasks, teammates: teammates, check: w.checkScript(libraryCheck)}
}

// warm fills the caches that a user has: Go's, and what muster keeps between runs.
func (l *library) warm(b *testing.B) {
	r := l.newLandingRun(b, goodTasks(1), 1)
	r.run()
}

// TestLandingRun has a small team and plain git land tasks that collide, with a check that only looks at names.
func TestLandingRun(t *testing.T) {
	var tasks []landingTask
	for _, task := range landingTasks() {
		if strings.Contains(task.edit, "cobra.go") || strings.Contains(task.edit, "helperA") {
			tasks = append(tasks, task)
		}
	}
	const command = `! grep -q '^[<=>]\{7\}' *.go && [ $(cat *.go | grep -c 'func helperA()') -le 1 ] || { echo '--- FAIL: TestNames'; exit 1; }`
	start := func() *world {
		w := newWorld(t, 1)
		must(t, os.WriteFile(filepath.Join(w.root, "cobra.go"), []byte("package cobra\n"), 0o644))
		w.git("add", ".")
		w.git("commit", "-q", "-m", "a package")
		return w
	}
	plain := start()
	p, all := newPlainGit(plain, plain.checkScript(command), tasks)
	p.inBatches(all)
	plain.checkTasksOnce(p.tip, tasks)
	if n, _ := plain.checksRun(); n == 0 { // their processor time may be less than a tick
		t.Error("plain git has run no check")
	}
	w := start()
	r := &landingRun{world: w, tasks: tasks, teammates: 3, check: w.checkScript(command)}
	base := w.head()
	cost := r.run()
	if cost.landed != len(tasks) || cost.attention > 0 || cost.checks == 0 { // whether a task comes back depends on who is first
		t.Errorf("%+v", cost)
	}
	r.verify(base, command)
}

// report says what a run cost, beside another one, and how long it may take and how often the check may run; 0: nobody says.
// Every task has landed, and none needs attention.
func (c landingCost) report(b *testing.B, what string, tasks int, beside landingCost, is string, maxWall, maxChecks float64) {
	b.Logf("%s: %+v; beside it %s %+v", what, c, is, beside)
	report(b, "wall", figure{what: what, unit: "s", ours: c.wall, limit: maxWall, beside: beside.wall, is: is})
	report(b, "checks", figure{what: "... checks, " + what, unit: "checks", ours: float64(c.checks), limit: maxChecks, beside: float64(beside.checks), is: is})
	report(b, "cpu", figure{what: "... CPU of the checks, " + what, unit: "s", ours: c.cpu, beside: beside.cpu, is: is})
	report(b, "parked", figure{what: "... share of their time that teammates waited for landings, " + what, unit: "%", ours: c.parked})
	report(b, "returns", figure{what: "... times that a task came back, " + what, unit: "returns", ours: float64(c.returns)})
	if c.landed != tasks || c.attention > 0 {
		b.Errorf("%s: %d of %d tasks have landed, and %d need attention", what, c.landed, tasks, c.attention)
	}
}

// BenchmarkLanding is teams of scripted members that land tasks on a real Go library with its own tests as the check, beside
// plain git.
func BenchmarkLanding(b *testing.B) {
	l := newLibrary(b)
	l.warm(b)
	b.Run("team", func(b *testing.B) {
		tasks := landingTasks()
		batch := l.plainly(b, tasks)
		r := l.newLandingRun(b, tasks, 8)
		cost := r.runVerified()
		const what = "40 tasks by 8 teammates, 28 of them in each other's way"
		cost.report(b, what, len(tasks), batch, "plain git in batches, all branches ready", 1.15*batch.wall, 0)
	})
	b.Run("queued", func(b *testing.B) {
		tasks := goodTasks(40)
		batch := l.plainly(b, tasks)
		r := l.newLandingRun(b, tasks, 40)
		cost := r.runVerified()
		cost.report(b, "40 tasks that have nothing to do with each other, by 40 teammates", len(tasks), batch, "plain git in one batch", 0, 8)
	})
}
