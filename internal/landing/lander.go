// Package landing is the only writer of the target branch: it takes a lane's work to a commit on the target, or brings it
// back with the reason.
//
// Read the files in this order: lander.go (what there is), land.go (one landing from its call to its verdict), fence.go
// (the refs that make it one landing), message.go (the commit, and how a landing is recognised after a crash),
// taken.go (a target that somebody looks at), check.go, log.go and checkout.go (the project's check on the merged tree), base.go
// (a target that was red before), verdict.go (what the owner reads), target.go (the target branch at the start).
//
// The user's checkout is never touched: merging happens on trees, checking in a directory outside the repository, and
// landing moves one ref. Nothing is fetched. Landings of one process queue; between processes the target's ref decides,
// and whoever finds it moved merges and checks again.
package landing

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/worktree"
	"muster/journal"
)

// Check is how the merged tree is proven.
type Check struct {
	Command string        // through the shell; "": nothing is verified, and every landing says so
	Setup   string        // before it, in a fresh checkout: npm ci
	Timeout time.Duration // of each of the two; 0: 10 minutes
}

// defaultTimeout is how long a check may take.
const defaultTimeout = 10 * time.Minute

// Options are the settings of landings.
type Options struct {
	Target  string // refs/heads/...
	Check   Check
	Outputs string // the logs of checks go to its directory landing
	// MergeCommits lands each task as a merge commit, with the lane's own commits behind it.
	MergeCommits bool
	// BaseState and SetBaseState keep what is known of the target's check ("", "ok", "red") where all processes of the team
	// see it. Without them this value knows it alone. Where it cannot be read nothing is decided by it.
	BaseState    func(ctx context.Context) (string, error)
	SetBaseState func(ctx context.Context, state string) error
	Env          []string // added to the environment of the check
}

// Runner runs a shell command in dir with the whole environment env, both outputs to out, and returns its exit code.
// The end of ctx ends it and all that it started.
type Runner func(ctx context.Context, dir, command string, env []string, out io.Writer) (exit int, err error)

// Lander lands. It is safe for concurrent use.
type Lander struct {
	repo    *git.Repo
	lanes   *worktree.Lanes
	board   *board.Board
	journal *journal.Journal
	run     Runner
	o       Options
	turn    chan struct{} // holds one token: landings and checks of this process queue for it

	mu    sync.Mutex
	known string                          // the base's state, when nobody else keeps it
	tasks map[muster.TaskID]chan struct{} // one call for a task at a time in this process
	taken string                          // where the target is checked out, as was said last
}

// New makes a Lander.
func New(repo *git.Repo, lanes *worktree.Lanes, b *board.Board, j *journal.Journal, run Runner, o Options) *Lander {
	if !strings.HasPrefix(o.Target, "refs/") {
		o.Target = "refs/heads/" + o.Target
	}
	if o.Check.Timeout <= 0 {
		o.Check.Timeout = defaultTimeout
	}
	l := &Lander{repo: repo, lanes: lanes, board: b, journal: j, run: run, o: o,
		turn: make(chan struct{}, 1), tasks: map[muster.TaskID]chan struct{}{}}
	if o.BaseState == nil || o.SetBaseState == nil {
		l.o.BaseState = func(context.Context) (string, error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.known, nil
		}
		l.o.SetBaseState = func(_ context.Context, state string) error {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.known = state
			return nil
		}
	}
	return l
}

// Verdict is how a landing ended.
type Verdict struct {
	Landed   *muster.Landed
	NoChange bool        // completed, and nothing had to land
	Conflict []string    // it came back: these files conflict, merged in the lane
	Red      bool        // it came back: the check failed on the merged tree
	Text     string      // for the owner's model: what happened, what to do, the log's last lines
	Log      string      // the path of the check's log
	Seconds  float64     // how long the check took
	Task     muster.Task // as it is now
}

// Target is the commit that the target branch is at. The error is NotFound when there is no such branch.
func (l *Lander) Target(ctx context.Context) (string, error) {
	tip, err := l.repo.Resolve(ctx, l.o.Target)
	if errors.Is(err, muster.ErrNotFound) {
		return "", muster.Errorf(muster.NotFound, "the target branch %s is gone", l.branch()).
			WithHint("git branch %s COMMIT brings it back", l.branch())
	}
	return tip, err
}

func (l *Lander) branch() string { return strings.TrimPrefix(l.o.Target, "refs/heads/") }

// queue waits for this process's turn.
func (l *Lander) queue(ctx context.Context) (leave func(), err error) { return take(ctx, l.turn) }

// alone waits until no other call for the task is under way in this process.
func (l *Lander) alone(ctx context.Context, id muster.TaskID) (leave func(), err error) {
	l.mu.Lock()
	c := l.tasks[id]
	if c == nil {
		c = make(chan struct{}, 1)
		l.tasks[id] = c
	}
	l.mu.Unlock()
	return take(ctx, c)
}

func take(ctx context.Context, c chan struct{}) (leave func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
