// Package torture has the crash tests. It kills the processes of teams, or stops and continues them, and checks
// that nothing was lost, doubled or stuck. It does not know how the state is kept: its workers use the same
// services as a team, each worker writes down in a ledger what it was promised, and a check compares the ledgers
// with the state at the end.
//
// Read in this order: torture.go (a session and its scenarios), workers.go (the worker processes, and which of them
// is killed when), ledger.go, worker.go (a worker process from inside); then one file for each scenario with its
// workers and its checks: claims.go, mail.go, requests.go, hosts.go, foreign.go, landings.go, team.go, recovery.go,
// aside.go, memories.go.
//
// Programs without failpoints cannot run the scenarios; cmd/muster-torture is the program that can.
package torture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/failpoint"
)

// Config describes a session.
type Config struct {
	Dir     string // holds everything; it must be empty or missing
	Seed    uint64
	Minutes float64  // a session of ten minutes has the full amounts, a shorter one its share of them
	Only    []string // the scenarios to run; all if it is empty
	// Muster starts the program muster; its arguments are appended. Worker starts a process that calls Work with
	// the last argument. Both call faultinject.Arm first.
	Muster, Worker []string
	Env            []string // of all processes
	Open           func(root string) (muster.Store, error)
	// Row, if it is set, is called with the row of each scenario that has ended.
	Row func(Row)
	// Mutant is passed to faultinject.Break in every worker, unless it is empty.
	Mutant string
	// Untimed says that a slow recovery is no violation, because the machine is busy with other things.
	Untimed bool
	// List, if it is set, is a file that gets the name of each point that a process passes.
	List string
}

// Row is the result of one scenario.
type Row struct {
	Scenario   string  `json:"scenario"`
	Operations int     `json:"operations"`
	What       string  `json:"of"` // what the operations are
	Kills      int     `json:"kills"`
	AtPoints   int     `json:"kills_at_points"` // of them, how many at a named point
	Stops      int     `json:"stops"`
	Refused    int     `json:"refused"` // late writes that were refused, as they should be
	Lost       int     `json:"lost"`
	Doubled    int     `json:"doubled"`
	Stuck      int     `json:"stuck"`
	Median     float64 `json:"recovery_median"` // seconds from a start after a kill to the first step
	Max        float64 `json:"recovery_max"`
	Seconds    float64 `json:"seconds"`
	// Points counts the kills at each named point.
	Points map[string]int `json:"points,omitempty"`
	// Violations are the first few, in words.
	Violations []string `json:"violations,omitempty"`
	Evidence   string   `json:"evidence,omitempty"` // where the state of a violated scenario is kept
}

// Bad reports whether anything was violated.
func (r Row) Bad() bool { return r.Lost+r.Doubled+r.Stuck+len(r.Violations) > 0 }

// scenario is one crash test.
type scenario struct {
	name, what string
	run        func(ctx context.Context, a *env) error
}

var scenarios = []scenario{
	{"claims", "tasks", claims},
	{"mail", "mails", mail},
	{"requests", "requests", decideRequests},
	{"hosts", "turns", hosts},
	{"foreign", "writes", foreign},
	{"landings", "tasks", landings},
	{"team", "runs", teams},
	{"recovery", "tasks", recovery},
	{"aside", "commands", aside},
	{"memories", "saves", memories},
}

// Scenarios returns the names of all scenarios.
func Scenarios() []string {
	var names []string
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// Command starts the crash tests from the root of the source.
const Command = "go run -tags failpoint ./cmd/muster-torture"

// whole is the length of a session that has the whole amounts.
const fullMinutes = 10

// marker is the file that says that a directory is a torture's: workers start nowhere else.
const marker = "torture.json"

// Run runs the scenarios and returns their rows. It ends at the first violation: the state stays in the directory,
// and the last row has the violations. An error means that the session itself failed, so its rows prove nothing.
func Run(ctx context.Context, c Config) (rows []Row, err error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	began := time.Now()
	for round := uint64(0); ; round++ {
		for _, s := range scenarios {
			if len(c.Only) > 0 && !slices.Contains(c.Only, s.name) {
				continue
			}
			row, err := c.one(ctx, s, round)
			if err != nil {
				return rows, err
			}
			rows = merge(rows, row)
			if c.Row != nil {
				c.Row(row)
			}
			if row.Bad() {
				return rows, nil
			}
		}
		if time.Since(began).Minutes() >= c.Minutes/2 { // another round would take as long
			return rows, c.clear()
		}
	}
}

// prepare checks the configuration and creates the directory, unless it exists and is empty.
func (c *Config) prepare() error {
	for _, name := range c.Only {
		if !slices.Contains(Scenarios(), name) {
			return muster.Errorf(muster.Invalid, "there is no scenario %q", name).WithHint("one of %s",
				strings.Join(Scenarios(), ", "))
		}
	}
	if !failpoint.Enabled {
		return muster.Errorf(muster.Unavailable, "this program was built without failpoints").WithHint(Command)
	}
	if err := possible(); err != nil {
		return err
	}
	entries, err := os.ReadDir(c.Dir)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "%s cannot be read: %w", c.Dir, err)
	}
	if len(entries) > 0 {
		return muster.Errorf(muster.Held, "%s is not empty, and the crash tests want a directory of their own",
			c.Dir).WithHint("name a new directory: --dir DIR")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be made: %w", c.Dir, err)
	}
	if c.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return err
	}
	if c.Dir, err = filepath.Abs(c.Dir); err != nil {
		return err
	}
	// The throw-away repositories are nothing to remember among the user's own.
	c.Env = append(slices.Clone(c.Env), "XDG_STATE_HOME="+filepath.Join(c.Dir, registry))
	text, err := json.Marshal(map[string]uint64{"seed": c.Seed})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, marker), append(text, '\n'), 0o600)
}

// registry is the directory in which the session's repositories are remembered.
const registry = "registry"

// clear removes the marker file of the session and its registry, so that the directory is empty again.
func (c *Config) clear() error {
	return errors.Join(os.RemoveAll(filepath.Join(c.Dir, registry)), os.Remove(filepath.Join(c.Dir, marker)))
}

// env is the environment of one scenario that is running.
type env struct {
	Config
	dir     string // of the scenario: the root of its state
	rng     *rand.Rand
	row     Row
	share   float64 // of the full amounts
	ledgers *ledgers
	times   []time.Duration // of recoveries
}

// one runs a scenario once. It removes the scenario's directory unless there was a violation.
func (c Config) one(ctx context.Context, s scenario, round uint64) (Row, error) {
	dir := filepath.Join(c.Dir, fmt.Sprintf("%s-%d", s.name, round+1))
	a := &env{Config: c, dir: dir, rng: rand.New(rand.NewPCG(c.Seed+round, uint64(len(s.name)))),
		row: Row{Scenario: s.name, What: s.what, Points: map[string]int{}}, share: min(c.Minutes/fullMinutes,
			1), ledgers: newLedgers(dir)}
	for _, d := range []string{a.root(), a.at("ledgers"), a.at("out"), a.at("tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return a.row, muster.Errorf(muster.Unavailable, "%s cannot be made: %w", d, err)
		}
	}
	defer a.ledgers.close()
	began := time.Now()
	if err := s.run(ctx, a); err != nil {
		if ctx.Err() != nil {
			return a.row, context.Cause(ctx)
		}
		return a.row, fmt.Errorf("%s: %w", s.name, err)
	}
	a.row.Seconds = time.Since(began).Seconds()
	slices.Sort(a.times)
	if n := len(a.times); n > 0 {
		a.row.Median, a.row.Max = a.times[n/2].Seconds(), a.times[n-1].Seconds()
	}
	if a.row.Bad() {
		a.row.Evidence = dir
		return a.row, nil
	}
	return a.row, os.RemoveAll(dir)
}

// root returns the directory of the state.
func (a *env) root() string { return filepath.Join(a.dir, "repo") }

// at returns the path of a file or directory of the scenario.
func (a *env) at(name string) string { return filepath.Join(a.dir, name) }

// amount returns this session's share of a full amount, but not less than least.
func (a *env) amount(full, least int) int {
	return max(int(float64(full)*a.share+0.5), least)
}

// fail counts a violation, and adds its description unless there are many already.
func (a *env) fail(count *int, format string, args ...any) {
	if count != nil {
		*count++
	}
	if len(a.row.Violations) < 10 {
		a.row.Violations = append(a.row.Violations, fmt.Sprintf(format, args...))
	}
}

// merge adds a row to the row of the same scenario in an earlier round, if there is one.
func merge(rows []Row, r Row) []Row {
	i := slices.IndexFunc(rows, func(old Row) bool { return old.Scenario == r.Scenario })
	if i < 0 {
		return append(rows, r)
	}
	old := &rows[i]
	for name, n := range old.Points {
		r.Points[name] += n
	}
	r.Operations, r.Kills, r.AtPoints = r.Operations+old.Operations, r.Kills+old.Kills, r.AtPoints+old.AtPoints
	r.Stops, r.Refused, r.Seconds = r.Stops+old.Stops, r.Refused+old.Refused, r.Seconds+old.Seconds
	r.Median, r.Max = max(r.Median, old.Median), max(r.Max, old.Max)
	*old = r
	return rows
}
