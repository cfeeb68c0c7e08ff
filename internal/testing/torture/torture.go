// Package torture has the crash tests. It kills the processes of teams, and checks that nothing was lost, doubled or
// stuck. It does not know how the state is kept: its workers use the same services as a team and report what they were
// promised, and at the end a check compares the promises with the state.
//
// Read in this order: main.go (the command), torture.go (a session and its scenarios), workers.go (the worker
// processes, and how they are killed), worker.go (a worker process from inside); then the scenarios with their checks:
// claims.go, landings.go, team.go, and git.go for the last two.
package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/testing/faultinject"
)

// scenarios do their operations, and their checks after them. An error is a violation, as are those in the row.
var scenarios = []struct {
	name, unit string // unit is what its operations are
	run        func(ctx context.Context, a *env) error
}{
	{"claims", "tasks", claims},
	{"landings", "tasks", landings},
	{"team", "runs", teams},
}

// session is one call of the command.
type session struct {
	dir     string // holds everything
	seed    uint64
	minutes float64 // a session of ten minutes has the full amounts, a shorter one its share of them
	only    string  // the scenarios to run, with commas between; all if it is empty
}

// fullMinutes is the length of a session that has the full amounts.
const fullMinutes = 10

// marker is the file that marks a session's directory: workers start nowhere else.
const marker = "torture.json"

// run runs each scenario once and prints a line about each. It returns an error at the first violation and keeps the
// state.
func (s *session) run(ctx context.Context, out io.Writer) error {
	if err := s.prepare(); err != nil {
		return err
	}
	// The checks pass points too.
	if err := faultinject.ArmWith("list:" + s.passed()); err != nil {
		return err
	}
	defer faultinject.Disarm()
	fmt.Fprintf(out, "seed %d, in %s\n", s.seed, s.dir)
	fmt.Fprintln(out, "SCENARIO   OPERATIONS  KILLS  LOST  DOUBLED  STUCK  TIME")
	for _, sc := range scenarios {
		if s.only != "" && !slices.Contains(strings.Split(s.only, ","), sc.name) {
			continue
		}
		a, err := s.newEnv(ctx, sc.name)
		if err != nil {
			return err
		}
		began := time.Now()
		err = errors.Join(sc.run(ctx, a), a.Close())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.fail(nil, "%v", err)
		}
		r := a.row
		fmt.Fprintf(out, "%-9s %6d %-5s %5d %5d %8d %6d %4.0fs\n", sc.name, r.operations, sc.unit, r.kills,
			r.lost, r.doubled, r.stuck, time.Since(began).Seconds())
		if len(r.violations) > 0 {
			return s.violated(r.violations, "-only "+sc.name)
		}
		if err := os.RemoveAll(a.dir); err != nil {
			return err
		}
	}
	passed, err := os.ReadFile(s.passed())
	if err != nil {
		return err
	}
	if wrong := wrongPoints(strings.Fields(string(passed))); len(wrong) > 0 && s.only == "" {
		return s.violated(wrong, "")
	}
	return os.RemoveAll(s.dir)
}

func (s *session) violated(violations []string, flags string) error {
	return muster.Errorf(muster.Unavailable, "%s", strings.Join(violations, "\n")).WithHint(
		"The state is kept in %s.\nAgain: %s -seed %d -minutes %g %s", s.dir, command, s.seed, s.minutes, flags)
}

// prepare creates and marks the session's directory, and sets what its processes inherit.
func (s *session) prepare() (err error) {
	if s.dir, err = os.MkdirTemp("", "muster-torture-"); err != nil {
		return err
	}
	os.Setenv("XDG_STATE_HOME", filepath.Join(s.dir, "registry")) // not the user's list of repositories
	os.Setenv("MUSTER_SANDBOX_ENABLED", "false")                  // a sandbox would only make commands slower
	os.Unsetenv("MUSTER_MODEL")
	return os.WriteFile(filepath.Join(s.dir, marker), fmt.Appendf(nil, "{\"seed\": %d}\n", s.seed), 0o600)
}

// passed is the file that lists the points that the processes of the session have passed.
func (s *session) passed() string { return filepath.Join(s.dir, "points") }

// allPassed are the kinds of points that a session of all scenarios passes, each at least once.
var allPassed = []string{"landing", "lane", "lanes", "teammate", "playbook", "refs", "packs", "inbox", "spend"}

// elsewhere matches the points of reviews, which need models, and of claims that are taken back: the tests of
// internal/landing have the crashes around them.
var elsewhere = regexp.MustCompile(`^landing\.(review|revoked|kept)`)

// wrongPoints returns what is wrong with the points that a session of all scenarios has passed.
func wrongPoints(passed []string) (wrong []string) {
	slices.Sort(passed)
	passed = slices.Compact(passed)
	for _, name := range passed {
		if !faultinject.Known(name) {
			wrong = append(wrong, fmt.Sprintf("the point %s was passed and is not on the list", name))
		}
	}
	for _, p := range faultinject.Points() {
		kind, _, _ := strings.Cut(p.Name, ".")
		if slices.Contains(allPassed, kind) && !elsewhere.MatchString(p.Name) && !slices.Contains(passed, p.Name) {
			wrong = append(wrong, fmt.Sprintf("the point %s was never passed", p.Name))
		}
	}
	return wrong
}

// row is the result of one scenario.
type row struct {
	operations, kills    int
	lost, doubled, stuck int
	violations           []string // the first ones, in words
}

// env is a repository with a team's state, in which a scenario runs. Its worker is this process.
type env struct {
	*session
	*worker
	dir      string
	rng      *rand.Rand
	row      *row
	promises []string // the lines of workers, for example "created 7"
}

// newEnv creates the repository, and the members of a team in it, in a directory of the session.
func (s *session) newEnv(ctx context.Context, dir string, members ...muster.Name) (a *env, err error) {
	a = &env{session: s, dir: filepath.Join(s.dir, dir), row: &row{},
		rng: rand.New(rand.NewPCG(s.seed, uint64(len(dir))))}
	for _, dir := range []string{a.at("tmp"), a.at("repo")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	a.git("init", "-q", "-b", "main")
	a.git("-c", "user.name=torture", "-c", "user.email=torture@localhost", "-c", "commit.gpgsign=false", "commit", "-q",
		"--no-verify", "--allow-empty", "-m", "start")
	a.git("branch", target)
	if a.worker, err = newWorker(ctx, job{Dir: a.at("repo"), Worker: "torture"}); err != nil {
		return nil, err
	}
	if err := a.PrepareChange(ctx); err != nil {
		return nil, err
	}
	for _, name := range members {
		if _, err := a.Roster(ctx).Add(ctx, muster.Member{Name: name, Role: "coder"}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// at returns the path of a file or directory of the scenario.
func (a *env) at(name string) string { return filepath.Join(a.dir, name) }

// amount returns this session's share of a full amount, but not less than least.
func (a *env) amount(full, least int) int {
	return max(int(float64(full)*min(a.minutes/fullMinutes, 1)+0.5), least)
}

// fail adds a violation unless there are many already, and counts it if count is not nil.
func (a *env) fail(count *int, format string, args ...any) {
	if count != nil {
		*count++
	}
	if len(a.row.violations) < 10 {
		a.row.violations = append(a.row.violations, fmt.Sprintf(format, args...))
	}
}

// command returns a process with a role that is armed with fault, unless that is empty. The points that it passes are
// listed in any case.
func (a *env) command(ctx context.Context, fault, role string, args ...string) *exec.Cmd {
	self, err := os.Executable()
	cmd := exec.CommandContext(ctx, self, append([]string{role}, args...)...)
	if err != nil {
		cmd.Err = err
	}
	cmd.Dir, cmd.WaitDelay = a.Root(), 10*time.Second
	fault = strings.TrimPrefix(fault+";list:"+a.passed(), ";")
	cmd.Env = append(os.Environ(), faultinject.Variable+"="+fault, "TMPDIR="+a.at("tmp"))
	return cmd
}
