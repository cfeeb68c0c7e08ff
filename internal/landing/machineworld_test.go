package landing_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster"
	"muster/internal/board"
	"muster/internal/check"
	"muster/internal/config"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/gittest"
	"muster/internal/worktree"
	"muster/journal"
	"muster/store/file"
)

// machine is what TestMachine drives: a repository with a team's state on the disk, and a process that lands.
type machine struct {
	r    *rapid.T
	ctx  context.Context
	base string
	root string
	life *life // the process of now
	jobs int
	// review is the role that reviews all work, "" for none.
	review string

	mu    sync.Mutex
	state string       // what is known of the base's check; durable
	tips  []muster.Tip // durable

	owners, pairs int
	isHalf        bool                     // the last pair has one half
	pieces        map[muster.TaskID]*piece // what tasks are about
	accepted      map[muster.TaskID]string // the commits as which work has landed, by what its owner was told
	cutOff        map[muster.TaskID]int    // claims whose landing a kill has cut off
	green         map[string]bool          // what the check says of a tree when nothing fails by chance
}

// life is a process: its services, and how it ends.
type life struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	store  *file.Store
	repo   *git.Repo
	board  *board.Board
	lanes  *worktree.Lanes
	lander *landing.Lander
	hit    func(point string)
	isDead bool // guarded by machine.mu
}

var errKilled = errors.New("killed")

// The check is red on a tree with a file broken-*, and with both halves of a pair. It is red once for
// new files flaky-*, for all of them together: two in a row that fail by chance would count as the fault of the work.
const machineCheck = `for f in broken-*; do [ ! -e "$f" ] || exit 1; done; for f in pair-*-a; do ` +
	`[ ! -e "$f" ] || [ ! -e "${f%%a}b" ] || exit 1; done; ` +
	`[ -n "$HONEST" ] || { red=0; for f in flaky-*; do [ ! -e "$f" ] || ! mkdir "%s/$f" 2>/dev/null || red=1; done; exit $red; }`

// newMachine makes a repository and the first process.
func newMachine(t *testing.T, r *rapid.T) *machine {
	base, err := os.MkdirTemp("", "machine-")
	if err != nil {
		t.Fatal(err)
	}
	r.Cleanup(func() { os.RemoveAll(base) })
	base, _ = filepath.EvalSymlinks(base)
	m := &machine{r: r, ctx: t.Context(), base: base, root: filepath.Join(base, "repo"), jobs: rapid.IntRange(1, 2).Draw(r, "jobs"),
		review: rapid.SampledFrom([]string{"", "reviewer"}).Draw(r, "review"),
		pieces: map[muster.TaskID]*piece{}, accepted: map[muster.TaskID]string{}, cutOff: map[muster.TaskID]int{}, green: map[string]bool{}}
	m.must(os.Mkdir(filepath.Join(base, "seen"), 0o755))
	m.git("", "init", "-q", "-b", "main", m.root)
	files := map[string]string{"README": "a repository\n", "shared": "first\n"}
	if rapid.IntRange(0, 3).Draw(r, "base is red") == 0 {
		files["broken-base"] = "broken-base\n"
	}
	m.write(m.root, files)
	m.git(m.root, "add", "-A")
	m.git(m.root, "commit", "-qm", "start")
	repo, err := git.Open(m.ctx, m.root)
	m.must(err)
	m.must(repo.Exclude(m.ctx, paths.Excluded))
	_, err = landing.PrepareTarget(m.ctx, repo, "muster/demo", false, false)
	m.must(err)
	m.tips = []muster.Tip{{Commit: m.git(m.root, "rev-parse", target)}}
	m.life = m.open()
	return m
}

// open starts a process on the state that is on the disk.
func (m *machine) open() *life {
	l := &life{hit: func(string) {}}
	l.ctx, l.cancel = context.WithCancelCause(m.ctx)
	m.r.Cleanup(func() { l.cancel(errKilled); _ = l.store.Close() })
	var err error
	l.store, err = file.Open(m.root)
	m.must(err)
	l.repo, err = git.Open(m.ctx, m.root)
	m.must(err)
	j := journal.New(l.store.Log())
	l.board = board.New(l.store, j)
	dir := paths.Dir(m.root)
	l.lanes, err = worktree.Open(l.repo, durable.New(durable.OS{}), dir, j, l.store.Log(), worktree.Options{})
	m.must(err)
	start := func() (proc.Launcher, error) {
		if l.hit("check"); l.ctx.Err() != nil {
			return nil, context.Cause(l.ctx)
		}
		return proc.New(l.ctx)
	}
	l.lander = landing.New(l.repo, l.lanes, l.board, j, start, landing.Options{Target: target, Landing: config.Landing{Jobs: m.jobs, Review: m.review},
		Check: landing.Check{Command: fmt.Sprintf(machineCheck, filepath.Join(m.base, "seen"))}, Outputs: dir.Outputs(),
		Receipts: filepath.Join(m.base, "receipts"), Cache: filepath.Join(m.base, "cache"), CheckState: m.checkState, Tips: m.keepTips})
	l.board.OnRevoke(func(ctx context.Context, t muster.Task) error { return l.lander.Revoke(ctx, t.ID, t.Fence) })
	return l
}

func (m *machine) checkState(_ context.Context, said string) (before string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if before = m.state; said != "" && before != landing.BaseGreen {
		m.state = said
	}
	return before, nil
}

func (m *machine) keepTips(_ context.Context, _ string, change func([]muster.Tip) []muster.Tip) ([]muster.Tip, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if change != nil {
		m.tips = change(slices.Clone(m.tips))
	}
	return slices.Clone(m.tips), nil
}

// event is what happens while tasks land: "kill" ends the process, "revoke" and "delete" take a task away, and "move"
// and "rewind" move the target.
type event struct {
	what   string
	victim muster.Task
	at     int    // when so many points were passed
	point  string // where it happened
}

func (e *event) isKill() bool { return e.what == "kill" && e.point != "" }

// meanwhile lets f work, and the event happen at its point. After a kill there is another process.
func (m *machine) meanwhile(e *event, f func(*life)) {
	l, passed := m.life, 0
	var failed error
	l.hit = func(point string) {
		m.mu.Lock()
		isDead := l.isDead
		isNow := !isDead && e.point == "" && e.what != "" && (point == "check" || strings.HasPrefix(point, "landing."))
		if isNow {
			passed++
			if isNow = passed == e.at; isNow {
				e.point = point
				l.isDead = e.what == "kill"
				isDead = l.isDead
			}
		}
		m.mu.Unlock()
		switch {
		case isDead:
			if l.cancel(errKilled); point != "check" {
				runtime.Goexit()
			}
		case isNow:
			failed = m.interfere(e)
		}
	}
	stop := faultinject.Watch(l.hit)
	defer stop()
	ended := make(chan bool)
	go func() { f(l); close(ended) }()
	limited, cancel := context.WithTimeout(m.ctx, 3*time.Minute)
	defer cancel()
	hangs := func(who string) {
		stacks := make([]byte, 1<<20)
		m.r.Fatalf("%s do not end after %s at %s\n%s", who, e.what, e.point, stacks[:runtime.Stack(stacks, true)])
	}
	select {
	case <-ended:
	case <-limited.Done():
		hangs("landings")
	}
	m.r.Logf("meanwhile: %q at %s (%d)", e.what, e.point, e.at)
	m.must(failed)
	if landing.AwaitDrainer(limited, l.lander) != nil { // it may go on a little after its owners
		hangs("drainers")
	}
	stop()
	if e.isKill() {
		m.life = m.open()
		m.must(m.life.lanes.Recover(m.ctx))
	}
}

// interfere is what another process does.
func (m *machine) interfere(e *event) error {
	switch e.what {
	case "move":
		tip, err := gittest.Try(m.root, "rev-parse", target)
		if err == nil {
			tip, err = gittest.Try(m.root, "commit-tree", "-p", tip, "-m", "by something else", "main^{tree}")
		}
		if err == nil {
			_, err = gittest.Try(m.root, "update-ref", target, tip)
		}
		return err
	case "rewind":
		_, err := gittest.Try(m.root, "update-ref", target, "main")
		return err
	}
	other := m.open()
	t, err := other.board.Get(m.ctx, e.victim.ID)
	if err != nil || t.Fence != e.victim.Fence || !t.Claimed() {
		return err
	}
	if e.what == "delete" {
		err = other.board.Delete(m.ctx, t.ID, true)
	} else if err = other.lander.Revoke(m.ctx, t.ID, t.Fence); err == nil {
		_, err = other.board.Revoke(m.ctx, t.ID, t.Fence, muster.Lead, "taken back")
	}
	if errors.Is(err, muster.ErrHeld) || errors.Is(err, muster.ErrInvalid) {
		return nil // it has just landed
	}
	return err
}

// lane makes the lane of a claimed task, and returns its directory.
func (m *machine) lane(t muster.Task, base string) string {
	lane, err := m.life.lanes.Create(m.ctx, muster.Name(fmt.Sprintf("lane-%d-%d", t.ID, t.Fence)), t.ID, base)
	m.must(err)
	t, err = m.life.board.SetLane(m.ctx, t.ID, t.Fence, lane.Name, lane.Base)
	m.must(err)
	return m.workdir(t)
}

// workdir is the directory of a task's lane.
func (m *machine) workdir(t muster.Task) string {
	dir, err := m.life.lanes.Enter(m.ctx, t.Worktree)
	m.must(err)
	return dir
}

// addLine adds the line of a shared task.
func (m *machine) addLine(lane string, id muster.TaskID) {
	data, err := os.ReadFile(filepath.Join(lane, "shared"))
	m.must(err)
	m.write(lane, map[string]string{"shared": fmt.Sprintf("%s%d\n", data, id)})
}

// resolve keeps both sides of a conflict.
func (m *machine) resolve(lane string) {
	data, err := os.ReadFile(filepath.Join(lane, "shared"))
	m.must(err)
	isBase := false
	var kept []string
	for line := range strings.Lines(string(data)) {
		switch {
		case strings.HasPrefix(line, "|||||||"):
			isBase = true
		case strings.HasPrefix(line, "======="):
			isBase = false
		case strings.HasPrefix(line, "<<<<<<<"), strings.HasPrefix(line, ">>>>>>>"):
		case !isBase && !slices.Contains(kept, line):
			kept = append(kept, line)
		}
	}
	m.write(lane, map[string]string{"shared": strings.Join(kept, "")})
}

// isGreen runs the check on a tree by itself, in a checkout of its own.
func (m *machine) isGreen(tree string) bool {
	isGreen, isKnown := m.green[tree]
	if isKnown {
		return isGreen
	}
	dir, err := os.MkdirTemp(m.base, "clean-")
	m.must(err)
	defer os.RemoveAll(dir)
	c := exec.Command("sh", "-c", "git -C ../repo archive "+tree+" | tar -x && "+fmt.Sprintf(machineCheck, filepath.Join(m.base, "seen")))
	c.Dir, c.Env = dir, append(os.Environ(), "HONEST=1")
	isGreen = c.Run() == nil
	m.green[tree] = isGreen
	return isGreen
}

// lookAtReceipts wants the check to be green on each tree of which a receipt says so.
func (m *machine) lookAtReceipts() {
	for _, x := range check.Receipts(filepath.Join(m.base, "receipts")) {
		if x.Green && !m.isGreen(x.Tree) {
			m.r.Fatalf("a receipt says that the tree %s is green, and it is red", x.Tree)
		}
	}
}

func (m *machine) must(err error) {
	if err != nil {
		m.r.Fatal(err)
	}
}

func (m *machine) name(what string, n int) string { return fmt.Sprintf("%s-%d", what, n) }

func (m *machine) git(dir string, args ...string) string {
	out, err := gittest.Try(dir, args...)
	if err != nil {
		m.r.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// write writes files ("" removes one).
func (m *machine) write(dir string, files map[string]string) {
	for name, text := range files {
		path := filepath.Join(dir, name)
		if text == "" {
			m.must(os.RemoveAll(path))
			continue
		}
		m.must(os.WriteFile(path, []byte(text), 0o644))
	}
}

func (m *machine) tasks() []muster.Task {
	all, err := m.life.board.List(m.ctx)
	m.must(err)
	return all
}

// claimed are the tasks whose work can land.
func (m *machine) claimed() []muster.Task {
	return slices.DeleteFunc(m.tasks(), func(t muster.Task) bool { return !t.Claimed() || m.pieces[t.ID] == nil })
}

// tip is where the target is, after one that was moved is back.
func (m *machine) tip() string {
	tip, err := m.life.lander.Target(m.ctx)
	m.must(err)
	return tip
}
