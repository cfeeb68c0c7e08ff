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

// rooms is the state as a worker sees it.
type rooms struct {
	Job
	store   muster.Store
	journal *journal.Journal
	board   *board.Board
	post    *mailbox.Mail
}

var workers = map[string]func(context.Context, *rooms) error{
	"claims": claimer, "send": sender, "read": reader, "decide": decider, "host": hoster, "write": writer, "land": lander,
}

// Work is a worker process: it does the job that text says, and returns when it is done. It works nowhere but in the
// directory of a torture.
func Work(ctx context.Context, open func(root string) (muster.Store, error), text string) error {
	var j Job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		return muster.Errorf(muster.Invalid, "a torture's worker is started by a torture only").WithHint(Command)
	}
	if _, err := os.Stat(filepath.Join(filepath.Dir(filepath.Dir(j.Dir)), marker)); err != nil {
		return muster.Errorf(muster.Invalid, "%s is no torture's directory, and a worker touches nothing else", j.Dir).WithHint(Command)
	}
	work := workers[j.Kind]
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
	return work(ctx, newRooms(j, s))
}

func newRooms(j Job, s muster.Store) *rooms {
	log := journal.New(s.Log())
	everybody := func(context.Context, muster.Name) (bool, []muster.Name, error) { return true, nil, nil }
	return &rooms{Job: j, store: s, journal: log, board: board.New(s, log), post: mailbox.New(s, log, everybody)}
}

// rooms opens the state for the torture itself.
func (a *arena) rooms() (*rooms, error) {
	s, err := a.Open(a.root())
	if err != nil {
		return nil, err
	}
	return newRooms(Job{Dir: a.root(), Name: "torture"}, s), nil
}

// ready notes that this life has recovered and has done its first step.
func (r *rooms) ready() {
	r.note("ready", strconv.Itoa(r.Life), strconv.FormatInt(time.Now().UnixMicro(), 10))
}

// holding is the file, beside the state, that lets workers wait for the chaos. A step takes its time then, and others can
// be killed and stopped in the middle of theirs; who is stopped has something to be taken away.
const (
	holding     = "hold"
	waiting     = "wait"
	waitingLong = "wait ten times as long"
)

// hold waits in the middle of a step while the workers are to wait, for so long at most: others wait for this one.
func (r *rooms) hold(most time.Duration) {
	part := rand.Float64() // they were all let go at the same moment
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

// pointsOf are the points whose names begin so.
func pointsOf(prefixes ...string) (names []string) {
	for _, p := range faultinject.Points() {
		if slices.ContainsFunc(prefixes, func(s string) bool { return strings.HasPrefix(p.Name, s) }) {
			names = append(names, p.Name)
		}
	}
	return names
}

func number(n int) string { return strconv.Itoa(n) }
