// Package torture kills the processes of teams, stops them and wakes them late, and looks whether anything was lost,
// doubled or stuck. Nothing in it knows how the state is kept: the workers use the rooms as a team does, note what they
// were promised in ledgers of their own, and what is there in the end is compared with these.
//
// Read in this order: torture.go (a session, its scenarios and its table), crew.go (worker processes, and who is killed
// when), ledger.go, worker.go (what a worker is); then one file for each scenario with its workers and its checks:
// claims.go, mail.go, requests.go, hosts.go, foreign.go, landings.go, team.go, recovery.go, aside.go.
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

// Config is one session.
type Config struct {
	Dir     string // holds everything; it is empty or missing
	Seed    uint64
	Minutes float64  // the amounts of a session of ten minutes are the whole ones; fewer minutes have their share
	Only    []string // scenarios; none: all
	// Muster starts the program muster; its arguments are appended. Worker starts a process that calls Work with the last
	// argument. Both call faultinject.Arm first.
	Muster, Worker []string
	Env            []string // of all processes
	Open           func(root string) (muster.Store, error)
	// Row, when it is set, is told each scenario as it ends.
	Row func(Row)
	// Mutant is passed to faultinject.Break in every worker, unless it is empty.
	Mutant string
	// Untimed: it is no violation when a recovery takes long, on a machine that is busy with other things.
	Untimed bool
	// List, when it is set, is a file that gets the name of each point that a worker passes.
	List string
}

// Row is what came of one scenario.
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

// scenario is one kind of torture.
type scenario struct {
	name, what string
	run        func(ctx context.Context, a *arena) error
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
}

// Scenarios are the names of all.
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
const whole = 10

// marker is the file that says that a directory is a torture's: workers start nowhere else.
const marker = "torture.json"

// Run tortures, and returns the rows. After the first violation it ends: the state stays in the directory, and the last
// row says what was violated. The error is of the torture itself.
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

// prepare makes the directory, or takes one that is empty.
func (c *Config) prepare() error {
	for _, name := range c.Only {
		if !slices.Contains(Scenarios(), name) {
			return muster.Errorf(muster.Invalid, "there is no scenario %q", name).WithHint("one of %s", strings.Join(Scenarios(), ", "))
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
		return muster.Errorf(muster.Held, "%s is not empty, and what is tortured should be nobody's", c.Dir).WithHint("name a new directory: --dir DIR")
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be made: %w", c.Dir, err)
	}
	if c.Dir, err = filepath.EvalSymlinks(c.Dir); err != nil {
		return err
	}
	text, err := json.Marshal(map[string]uint64{"seed": c.Seed})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, marker), append(text, '\n'), 0o600)
}

// clear removes what the session made.
func (c *Config) clear() error { return os.Remove(filepath.Join(c.Dir, marker)) }

// arena is one scenario under way.
type arena struct {
	Config
	dir     string // of the scenario: the root of its state
	dice    *rand.Rand
	row     Row
	share   float64 // of the whole amounts
	ledgers *ledgers
	times   []time.Duration // of recoveries
}

func (c Config) one(ctx context.Context, s scenario, round uint64) (Row, error) {
	dir := filepath.Join(c.Dir, fmt.Sprintf("%s-%d", s.name, round+1))
	a := &arena{Config: c, dir: dir, dice: rand.New(rand.NewPCG(c.Seed+round, uint64(len(s.name)))),
		row: Row{Scenario: s.name, What: s.what, Points: map[string]int{}}, share: min(c.Minutes/whole, 1), ledgers: newLedgers(dir)}
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

// root is where the state lies.
func (a *arena) root() string { return filepath.Join(a.dir, "repo") }

func (a *arena) at(name string) string { return filepath.Join(a.dir, name) }

// amount is the share of a whole amount, at least least.
func (a *arena) amount(whole, least int) int { return max(int(float64(whole)*a.share+0.5), least) }

// fail counts a violation and says it, unless many were said already.
func (a *arena) fail(count *int, format string, args ...any) {
	if count != nil {
		*count++
	}
	if len(a.row.Violations) < 10 {
		a.row.Violations = append(a.row.Violations, fmt.Sprintf(format, args...))
	}
}

// merge adds a row to that of an earlier round.
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
