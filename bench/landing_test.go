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
	"muster/internal/testing/wait"
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
	flaky     int         // landings after a check that was red once and then green
}

// landingRun is a run of a team whose landings are measured.
type landingRun struct {
	*world
	tasks     []landingTask
	teammates int
	check     string // the command
	args      []string
	kills     []int // the process is killed when so many tasks have landed, and another one resumes the run
}

// run runs the team to its end.
func (r *landingRun) run() (cost landingCost) {
	r.tb.Helper()
	r.writeWork(r.tasks)
	s := serve(r.tb, r.landingScript(r.tasks, r.teammates))
	args := append([]string{"run", "--check", r.check, "--teammates", fmt.Sprint(r.teammates), "--max-turns", "400"}, r.args...)
	args = append(args, "land all tasks")
	r.forgetChecks()
	start := time.Now()
	for i := 0; ; i++ {
		kill := 0
		if i < len(r.kills) {
			kill = r.kills[i]
		}
		out, isKilled := r.start(s, kill, args)
		if !isKilled {
			r.tb.Logf("%s", out)
			break
		}
		args = []string{"resume"}
	}
	cost.wall = time.Since(start).Seconds()
	cost.checks, cost.cpu = r.checksRun()
	r.count(&cost)
	return cost
}

// start runs muster, and kills it when so many tasks have landed; 0: never.
func (r *landingRun) start(s *server, kill int, args []string) (out string, isKilled bool) {
	r.tb.Helper()
	var text bytes.Buffer
	c := r.command(muster, args...)
	c.Env = append(append(c.Env, s.env()...), "MUSTER_IDLE_TIMEOUT=0")
	c.Stdout, c.Stderr = &text, &text
	must(r.tb, c.Start())
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	var err error
	_, ok := wait.Poll(20*time.Minute, func() bool {
		select {
		case err = <-ended:
			return true
		default:
		}
		if kill > 0 && !isKilled && r.landings() >= kill {
			isKilled = true
			must(r.tb, c.Process.Kill())
		}
		return false
	})
	if !ok {
		_ = c.Process.Kill()
		r.tb.Fatalf("the run does not end:\n%s", text.String())
	}
	// A run that leaves work exits with 3. What it left is counted.
	if exit, is := errors.AsType[*exec.ExitError](err); err != nil && !isKilled && (!is || exit.ExitCode() != 3) {
		r.tb.Fatalf("muster %s: %v\n%s", args[0], err, text.String())
	}
	return text.String(), isKilled
}

// events are the events of the run so far.
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

// landings is how many tasks have landed.
func (r *landingRun) landings() (n int) {
	for _, e := range r.events() {
		if e.Kind == journal.TaskCompleted {
			n++
		}
	}
	return n
}

// count counts in the journal what happened.
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
			if isFlaky, _ := e.Fields["flaky"].(bool); isFlaky {
				cost.flaky++
			}
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

// runVerified runs the team on the library, then looks at what it landed.
func (r *landingRun) runVerified() landingCost {
	r.tb.Helper()
	base := r.commit("HEAD")
	cost := r.run()
	r.tb.Logf("%d commits verified", r.verify(base, "", libraryVerify))
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

// libraryVerify is the check of the library without the test that is red from the start, which no landing may use as an
// excuse.
const libraryVerify = "go test -skip '^(TestFailGen|TestDeadcode|TestBroken)' ./..."

// verify fails unless all that the run landed is there once, and each commit on the target that claims a green check has one.
// It is not measured. setup prepares a checkout, "" needs nothing; check is the check without what is measured. checks is how
// many commits it has checked.
func (r *landingRun) verify(base, setup, check string) (checks int) {
	r.tb.Helper()
	target := "muster/repo"
	r.checkTasksOnce(target, r.tasks)
	p := &plainGit{world: r.world, check: check, dir: filepath.Join(r.base, "verified")}
	r.git("worktree", "add", "-q", "--detach", p.dir, target)
	p.setUp(p.dir, setup)
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

// newLandingRun is a run on the library. base changes its files before they are committed; before is what its check does first.
func (l *library) newLandingRun(b *testing.B, tasks []landingTask, teammates int, base, before string) *landingRun {
	w := l.newWorld(b, base)
	return &landingRun{world: w, tasks: tasks, teammates: teammates, check: w.checkScript(before, libraryCheck)}
}

// warm fills the caches that a user has: Go's, and what muster keeps between runs.
func (l *library) warm(b *testing.B) {
	r := l.newLandingRun(b, goodTasks(1), 1, "", "")
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
	for name, land := range map[string]func(*plainGit, []branch){"one by one": (*plainGit).oneByOne, "in batches": (*plainGit).inBatches} {
		w := start()
		p, all := newPlainGit(w, w.checkScript("", command), tasks, "")
		land(p, all)
		w.checkTasksOnce(p.tip, tasks)
		if n, cpu := w.checksRun(); n == 0 || cpu == 0 {
			t.Errorf("%s: %d checks, %v s", name, n, cpu)
		}
	}
	w := start()
	r := &landingRun{world: w, tasks: tasks, teammates: 3, check: w.checkScript("", command), kills: []int{2}}
	base := w.commit("HEAD")
	cost := r.run()
	if cost.landed != len(tasks) || cost.attention > 0 || cost.checks == 0 || cost.returns == 0 {
		t.Errorf("%+v", cost)
	}
	r.verify(base, "", command)
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
		single := l.plainly(b, tasks, "", "", (*plainGit).oneByOne)
		batch := l.plainly(b, tasks, "", "", (*plainGit).inBatches)
		r := l.newLandingRun(b, tasks, 8, "", "")
		cost := r.runVerified()
		const what = "40 tasks by 8 teammates, 28 of them in each other's way"
		cost.report(b, what, len(tasks), batch, "plain git in batches, all branches ready", batch.wall, 0)
		report(b, "single-wall", figure{what: "... plain git, " + what, unit: "s", ours: batch.wall, beside: single.wall, is: "one by one"})
		report(b, "single-checks", figure{what: "... its checks, " + what, unit: "checks", ours: float64(batch.checks), beside: float64(single.checks), is: "one by one"})
		b.Logf("plain git one by one: %+v", single)
	})
	b.Run("queued", func(b *testing.B) {
		tasks := goodTasks(40)
		batch := l.plainly(b, tasks, "", "", (*plainGit).inBatches)
		r := l.newLandingRun(b, tasks, 40, "", "")
		cost := r.runVerified()
		cost.report(b, "40 tasks that have nothing to do with each other, by 40 teammates", len(tasks), batch, "plain git in one batch", 0, 8)
	})
	for _, v := range landingVariants {
		b.Run(v.name, func(b *testing.B) {
			tasks, teammates := fewTasks(), 4
			if v.kills != nil {
				tasks, teammates = landingTasks(), 8
			}
			r := l.newLandingRun(b, tasks, teammates, v.base, v.before)
			r.kills = v.kills
			what := fmt.Sprintf("%d of these tasks by %d teammates, %s", len(tasks), teammates, v.what)
			// Of plain git the check is what it would be without what makes it hard, where git would never be done.
			plainBase, plainBefore := v.base, v.before
			if v.isHopeless {
				plainBase, plainBefore = "", ""
			}
			batch := l.plainly(b, tasks, plainBase, plainBefore, (*plainGit).inBatches)
			cost := r.runVerified()
			limit := batch.wall
			if v.isHopeless {
				limit = 0
			}
			cost.report(b, what, len(r.tasks), batch, v.beside, limit, 0)
			report(b, "flaky", figure{what: "... landed after a check that failed by chance, " + what, unit: "landings", ours: float64(cost.flaky)})
		})
	}
}

// landingVariants are runs under harder conditions.
var landingVariants = []struct {
	name, what string
	base       string // a command that changes the repository before the run
	before     string // what the check does first
	kills      []int
	isHopeless bool   // plain git would never land all under these conditions
	beside     string // what plain git does
}{
	{name: "killed", what: "killed twice and resumed", kills: []int{10, 25}, beside: "plain git in batches, never killed"},
	{name: "slow", what: "with a check that takes three seconds longer", before: "sleep 3", beside: "plain git in batches"},
	{name: "flaky", what: "with a check that fails by chance in 3 of 10 runs", isHopeless: true, beside: "plain git in batches, none fails by chance",
		before: `awk -v n=$n 'BEGIN { srand(20 + n); rand(); exit rand() < 0.3 }' || { echo '--- FAIL: TestByChance (0.00s)'; exit 1; }`},
	{name: "red", what: "with a test that is red from the start", isHopeless: true, beside: "plain git in batches, all green at the start",
		base: `printf 'package cobra\n\nimport "testing"\n\n` +
			`func TestBroken(t *testing.T) { t.Error("it is broken") }\n' > broken_test.go`},
}
