// Package torture has the crash tests. It kills the processes of teams, or stops and continues them, and checks that
// nothing was lost, doubled or stuck. It does not know how the state is kept: its workers use the same services as a
// team and report what they were promised, and at the end a check compares the promises with the state.
//
// Read in this order: torture.go (a session and its scenarios), workers.go (the worker processes, and how each life of
// them ends), worker.go (a worker process from inside); then one file for each scenario with its workers and its check:
// claims.go, mail.go, landings.go, team.go.
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
	Row            func(Row) // if not nil, called with the row of each scenario that has ended
	List           string    // a file that gets the name of each point that a process passes; "" for none
}

// Row is the result of one scenario.
type Row struct {
	Scenario      string
	Operations    int
	What          string // what the operations are
	Kills         int
	AtPoints      int // of the kills, how many at a named point
	Stops         int
	Refused       int // late writes that were refused, as they should be
	Lost          int
	Doubled       int
	Stuck         int
	Median, Worst time.Duration // from the start of a process after a kill to its first step
	Took          time.Duration
	Violations    []string // the first few, in words
	Evidence      string   // the directory of a violated scenario
}

// Bad reports whether anything was violated.
func (r Row) Bad() bool { return r.Lost+r.Doubled+r.Stuck+len(r.Violations) > 0 }

var scenarios = []struct {
	name, what string // what its operations are
	run        func(ctx context.Context, a *env) error
}{
	{"claims", "tasks", claims},
	{"mail", "mails", mail},
	{"landings", "tasks", landings},
	{"team", "runs", teams},
}

// Scenarios returns the names of all scenarios.
func Scenarios() (names []string) {
	for _, s := range scenarios {
		names = append(names, s.name)
	}
	return names
}

// Command starts the crash tests from the root of the source.
const Command = "go run -tags failpoint ./cmd/muster-torture"

// fullMinutes is the length of a session that has the full amounts.
const fullMinutes = 10

// marker is the file that marks a session's directory: workers start nowhere else.
const marker = "torture.json"

// registry is the directory in which the session's repositories are remembered, instead of among the user's own.
const registry = "registry"

// Run runs each scenario once and returns their rows. It ends at the first violation: the state stays in the directory,
// and the last row has the violations. An error means that the session itself failed, so its rows prove nothing.
func Run(ctx context.Context, c Config) (rows []Row, err error) {
	if err := c.prepare(); err != nil {
		return nil, err
	}
	for _, s := range scenarios {
		if len(c.Only) > 0 && !slices.Contains(c.Only, s.name) {
			continue
		}
		a, err := c.newEnv(Row{Scenario: s.name, What: s.what})
		if err != nil {
			return rows, err
		}
		began := time.Now()
		if err := s.run(ctx, a); err != nil {
			return rows, fmt.Errorf("%s: %w", s.name, err)
		}
		a.row.Took = time.Since(began)
		if slices.Sort(a.recoveries); len(a.recoveries) > 0 {
			a.row.Median, a.row.Worst = a.recoveries[len(a.recoveries)/2], slices.Max(a.recoveries)
		}
		if a.row.Bad() {
			a.row.Evidence = a.dir
		}
		rows = append(rows, *a.row)
		if c.Row != nil {
			c.Row(*a.row)
		}
		if a.row.Bad() {
			return rows, nil
		}
		if err := os.RemoveAll(a.dir); err != nil {
			return rows, err
		}
	}
	return rows, errors.Join(os.RemoveAll(filepath.Join(c.Dir, registry)), os.Remove(filepath.Join(c.Dir, marker)))
}

// prepare checks the configuration, and creates and marks the directory.
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
	c.Env = append(slices.Clone(c.Env), "XDG_STATE_HOME="+filepath.Join(c.Dir, registry))
	text, err := json.Marshal(map[string]uint64{"seed": c.Seed})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, marker), append(text, '\n'), 0o600)
}

// env is the environment of one scenario that is running.
type env struct {
	Config
	dir        string
	rng        *rand.Rand
	row        *Row
	promises   []promise
	recoveries []time.Duration
}

func (c Config) newEnv(row Row) (*env, error) {
	a := &env{Config: c, dir: filepath.Join(c.Dir, row.Scenario), row: &row,
		rng: rand.New(rand.NewPCG(c.Seed, uint64(len(row.Scenario))))}
	for _, d := range []string{a.root(), a.at("tmp")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return nil, muster.Errorf(muster.Unavailable, "%s cannot be made: %w", d, err)
		}
	}
	return a, nil
}

// root returns the directory of the state.
func (a *env) root() string { return filepath.Join(a.dir, "repo") }

// at returns the path of a file or directory of the scenario.
func (a *env) at(name string) string { return filepath.Join(a.dir, name) }

// amount returns this session's share of a full amount, but not less than least.
func (a *env) amount(full, least int) int {
	return max(int(float64(full)*min(a.Minutes/fullMinutes, 1)+0.5), least)
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
