package torture

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/internal/testing/faultinject"
	"muster/journal"
)

// Job is what a worker process is started with.
type Job struct {
	Kind    string // of the scenario
	Dir     string // the root of the state
	Name    string
	Life    int // counts its starts
	Seed    uint64
	Count   int
	Of      int // how many of its kind there are
	Threads int
	To      string
	Mutant  string
}

// services are the services that a worker uses, and its job.
type services struct {
	Job
	store   muster.Store
	journal *journal.Journal
	board   *board.Board
	post    *mailbox.Mail
}

var workerFuncs = map[string]func(context.Context, *services) error{
	"claims": claimer, "send": sender, "read": reader, "decide": decider, "host": hoster,
	"write": writer, "land": lander, "remember": rememberer,
}

// Work does the job that text describes, and returns when it is done. A worker process calls it. It refuses any
// directory that does not belong to a session of the crash tests.
func Work(ctx context.Context, open func(root string) (muster.Store, error), text string) error {
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return muster.Errorf(muster.Invalid, "a torture's worker is started by a torture only").WithHint(Command)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(j.Dir)), marker)); err != nil {
		return muster.Errorf(muster.Invalid, "%s is no torture's directory, and a worker touches nothing else",
			j.Dir).WithHint(Command)
	}
	work := workerFuncs[j.Kind]
	if work == nil {
		return muster.Errorf(muster.Invalid, "there is no worker %q", j.Kind)
	}
	if j.Mutant != "" {
		if err := faultinject.Break(j.Mutant); err != nil {
			return muster.Errorf(muster.Invalid, "%w", err)
		}
	}
	s, err := open(j.Dir)
	if err != nil {
		return err
	}
	defer s.Close()
	return work(ctx, newServices(j, s))
}

func newServices(j Job, s muster.Store) *services {
	log := journal.New(s.Log())
	everybody := func(context.Context, muster.Name) (bool, []muster.Name, error) { return true, nil, nil }
	return &services{Job: j, store: s, journal: log, board: board.New(s, log), post: mailbox.New(s, log, everybody)}
}

// openServices opens the services for the process that checks.
func (a *env) openServices() (*services, error) {
	s, err := a.Open(a.root())
	if err != nil {
		return nil, err
	}
	return newServices(Job{Dir: a.root(), Name: "torture"}, s), nil
}

// ready notes that this process has recovered and has done its first step.
func (r *services) ready() {
	r.note("ready", strconv.Itoa(r.Life), strconv.FormatInt(time.Now().UnixMicro(), 10))
}

// holding is the file beside the state that makes workers wait in the middle of a step while kills and stops are
// overdue. Then others can be killed and stopped in the middle of a step too, and who is stopped has a claim to
// lose.
const (
	holding     = "hold"
	waiting     = "wait"
	waitingLong = "wait ten times as long"
)

// hold waits while the hold file exists, at most the given time, because others may wait for this worker.
func (r *services) hold(most time.Duration) {
	part := rand.Float64() // else all would go on at the same moment
	for began := time.Now(); ; time.Sleep(5 * time.Millisecond) {
		how, err := os.ReadFile(filepath.Join(filepath.Dir(r.Dir), holding))
		wait := time.Duration(part * float64(most))
		if string(how) == waitingLong {
			wait *= 10
		}
		if err != nil || time.Since(began) >= wait {
			return
		}
	}
}

// pointsOf returns the points whose names begin with one of the prefixes.
func pointsOf(prefixes ...string) (names []string) {
	for _, p := range faultinject.Points() {
		if slices.ContainsFunc(prefixes, func(s string) bool { return strings.HasPrefix(p.Name, s) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

func number(n int) string { return strconv.Itoa(n) }
