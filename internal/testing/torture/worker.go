package torture

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
	"muster/journal"
)

// Job is what a worker process is started with.
type Job struct {
	Kind    string // of workerFuncs
	Dir     string // the root of the state
	Name    string // of the worker
	Life    int    // counts the processes of this worker
	Seed    uint64
	Done    int    // how many promises the earlier processes of this worker have reported
	To      string // the reader to which a sender sends
	Senders int    // how many senders a reader has
}

// services are the services that a worker uses, and its job.
type services struct {
	Job
	out     io.Writer // gets what report prints
	store   muster.Store
	journal *journal.Journal
	board   *board.Board
	post    *mailbox.Mail
}

var workerFuncs = map[string]func(context.Context, *services) error{
	"claim": claimer, "send": sender, "read": reader, "land": lander,
}

// Work does the job that text describes, and returns when it is done. A worker process calls it. It refuses any
// directory that does not belong to a session of the crash tests.
func Work(ctx context.Context, open func(root string) (muster.Store, error), text string) error {
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return muster.Errorf(muster.Invalid, "only the crash tests start workers").WithHint(Command)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(j.Dir)), marker)); err != nil {
		return muster.Errorf(muster.Invalid, "%s is not the directory of a session of the crash tests", j.Dir).
			WithHint(Command)
	}
	work := workerFuncs[j.Kind]
	if work == nil {
		return muster.Errorf(muster.Invalid, "there is no worker %q", j.Kind)
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
	return &services{Job: j, out: os.Stdout, store: s, journal: log, board: board.New(s, log),
		post: mailbox.New(s, log, everybody)}
}

// openServices opens the services for the process that checks.
func (a *env) openServices() (*services, error) {
	s, err := a.Open(a.root())
	if err != nil {
		return nil, err
	}
	return newServices(Job{Dir: a.root(), Name: "torture"}, s), nil
}

// report prints a promise in one write, so that a kill does not cut it.
func (r *services) report(words ...any) {
	_, _ = io.WriteString(r.out, fmt.Sprintln(words...)) // a worker that nobody listens to is about to be killed
}

// isReady is the line that a worker prints after its first step.
const isReady = "ready"

func number[T ~int](n T) string { return strconv.Itoa(int(n)) }
