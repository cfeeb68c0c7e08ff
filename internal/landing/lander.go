// Package landing is the only writer of the target branch, and puts it back when another has written it. It takes the
// work of a lane to a commit on the target, or returns the task to its owner with the reason.
//
// Lander is the service; a board has one. docs/architecture.md names the parts of the package, and which uses which:
//
//   - A landing (land.go) takes its work (work.go) from a call of Land to a Verdict.
//   - The queue (queue.go) gives each landing a decision. It merges those that wait into a stack (stack.go), has the
//     check run on its top (check.go), and moves the target to what was proved (move.go).
//   - The guard (guard.go) knows where landings left the target, puts back one that was moved, and waits for the user.
//   - The texts (texts.go) say to models why a landing was returned, and what it has met (collision.go).
//
// The package keeps these invariants:
//
//   - The user's checkout is never touched. Merging happens on trees and checking in a directory outside the
//     repository; a landing moves one ref. Nothing is fetched.
//   - A commit and all its objects are synced to disk before a ref names them.
//   - The target moves and the claim's landing ref goes in one transaction, so a claim lands once or not at all.
//   - A commit is announced as a tip in the run's record before the target is at it. A target at any other commit was
//     moved by something else: it is put back, or its user is asked, and nothing lands on it until then.
//   - Landings of one process queue. Between processes the target's ref decides: whoever finds it moved merges and
//     checks again.
//   - Work that needs a review lands only with an approval of the very difference that it makes.
//   - The target is only ever moved to a commit of which the tree was checked. Several tasks may land in one step: then
//     the commits between are covered by that check, and say so.
//
// # The steps of a landing
//
// The durable steps of Land are these; a failpoint lies after each of them, and the crash tests stop there:
//
//  1. The lane's work is a commit on its branch, and that commit is in a synced pack.
//  2. The landing ref of the claim is at it. Revoke deletes that ref, and so ends the landing.
//  3. The board says "landing", with the commit and with the target's tip at that time.
//  4. The commit that is to land is in a synced pack. Its trailer names the task.
//  5. The target is at that commit and the landing ref is gone, in one transaction. This is the landing. The tasks of
//     a stack land in the same transaction, which deletes all their landing refs.
//  6. The board says "completed", with the commit's id. Each task of a stack has its own commit.
//
// A process that dies before step 5 has landed nothing; Land called again does all steps once more. One that dies
// between 5 and 6 has landed: resume finds the task's trailer among the commits that have come to the target since
// step 3, and completes the task. So no crash lands work twice or loses it.
//
// A landing that cannot be finished deletes the landing ref first and then returns the task, with the conflicts or the
// check's output, and with what the target has gained merged into the lane. An owner whose claim is over gets Fenced,
// and its work is archived. When a task is claimed or revoked is for board and teammate to decide.
package landing

import (
	"cmp"
	"context"
	"log/slog"
	"os"
	"runtime"
	"sync"

	"muster"
	"muster/internal/board"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/worktree"
	"muster/journal"
)

// Lander lands the work of one board. It is safe for concurrent use.
type Lander struct {
	repo    *git.Repo
	lanes   *worktree.Lanes
	board   *board.Board
	journal *journal.Journal
	options *Options
	records *records
	guard   *guard
	queue   *queue
	checks  *checker
	tasks   sync.Map // by task, a chan struct{}: one call for a task at a time in this process
}

// New makes the Lander of a board. launch returns what starts checks; it is called at each check, so that one Lander
// can outlive the launcher of a run. It may be nil in a process that checks nothing: one that only revokes.
func New(
	repo *git.Repo, lanes *worktree.Lanes, b *board.Board, j *journal.Journal,
	launch func() (proc.Launcher, error), o Options,
) *Lander {
	if o.Environ == nil {
		o.Environ = proc.Environment(os.Environ(), nil)
	}
	if len(o.Check.Named) > 0 {
		o.Check.Command = muster.RequiredNames(o.Check.Named)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	runner := check.New(check.Options{Check: o.Check, Repo: repo, Dirs: lanes.CheckDirs, Launch: launch,
		Cache: o.Cache, Receipts: o.Receipts, Outputs: o.Outputs, Environ: o.Environ,
		Local: o.Local, Secrets: o.Secrets, AtOnce: checksAtOnce(runtime.NumCPU(), uint64(proc.MachineMemory())),
		Setups: o.Setups, SetupFiles: o.SetupFiles, Ports: o.Ports, PortCount: o.PortCount, OnTest: o.OnTest})
	r := &records{board: b, journal: j, options: &o}
	g := &guard{repo: repo, lanes: lanes, board: b, records: r, options: &o}
	c := &checker{repo: repo, records: r, target: g, runner: runner, options: &o, slot: make(chan struct{}, 1)}
	return &Lander{repo: repo, lanes: lanes, board: b, journal: j, options: &o, records: r, guard: g, checks: c,
		queue: &queue{repo: repo, board: b, journal: j, target: g, records: r, checks: c, options: &o}}
}

// Target returns the commit from which new work starts: the target's, after one that was displaced was put back. The
// error is NotFound when there is no such branch.
func (l *Lander) Target(ctx context.Context) (string, error) { return l.guard.tip(ctx) }

// IsUntouched reports whether the target is where this process has seen it last.
func (l *Lander) IsUntouched(ctx context.Context) bool { return l.guard.isUntouched(ctx) }

// State returns where the target is, and changes nothing.
func (l *Lander) State(ctx context.Context) (TargetState, error) { return l.guard.state(ctx) }

// Accept makes a commit the one from which landings go on, because the user says so. The target is moved there if it is
// elsewhere.
func (l *Lander) Accept(ctx context.Context, rev string) (TargetState, error) {
	return l.guard.accept(ctx, rev)
}

// Secure returns where the target is after it has put back one that was displaced. d says what was found. One that the
// user may have moved on purpose is left where it is, and tip is where landings left it.
func (l *Lander) Secure(ctx context.Context) (tip string, d *Displaced, err error) {
	return l.guard.restore(ctx)
}

// IsTakenBack reports whether the target was displaced so that something that landed is no longer on it.
func (l *Lander) IsTakenBack(ctx context.Context) (bool, error) { return l.guard.isTakenBack(ctx) }

// AtRest is called while no agent works. A target that is displaced now was moved by the user, or by a program of
// theirs, and landings wait until they have said what they want. A commit in the history of a branch or tag that is
// there now is the user's too.
func (l *Lander) AtRest(ctx context.Context) error { return l.guard.atRest(ctx) }

// CheckBase runs the check on the target's tip and records whether it fails there: a landing may leave a red target
// red, but may never make a green one red. It queues with the landings of this process. Without a check it does
// nothing.
func (l *Lander) CheckBase(ctx context.Context) (CheckResult, error) { return l.checks.base(ctx) }

// CheckMoved runs the check on the target as it is, unless the check has said something of that already. isRun reports
// whether it ran. It is for the end of a run: the user may have moved the target to where no landing has checked it.
func (l *Lander) CheckMoved(ctx context.Context) (res CheckResult, isRun bool, err error) {
	return l.checks.moved(ctx)
}

// TryCheck runs the set-up and the check on a commit as a landing does. It records nothing and moves nothing.
func (l *Lander) TryCheck(ctx context.Context, commit string) (CheckResult, error) {
	return l.checks.try(ctx, commit)
}
