// Package landing is the only writer of the target branch, and puts it back when another has written it. It takes the
// work of a lane to a commit on the target, or returns the task to its owner with the reason.
//
// Lander is the service; a board has one. Land (land.go) is one landing from its call to its Verdict. It uses these
// parts:
//
//   - queue (queue.go) holds the landings of this process that wait. One goroutine, the drainer, lands them, and each
//     owner does itself what is decided about its work.
//   - stack (stack.go) is a row of them, merged on top of each other, which one check proves, or which is halved until
//     it is known whose work is red. move.go moves the target to what was proved.
//   - landingRefs (refs.go) is the pair of refs that lets a claim land at most once, and never after it was revoked.
//   - check (check.go) has the project's check run on the merged tree, by internal/check. checkState knows whether the
//     check failed before any work: only then may a landing whose check fails land.
//   - message.go writes the landed commit, and finds it again after a crash.
//   - guard.go remembers where landings left the target, and puts back one that something else has moved.
//   - return.go returns a task, with what its owner reads (texts.go): whose landed work it met (collision.go), and what both sides
//     wanted where it needs attention (sides.go).
//   - secrets.go returns work that has what looks like a key, before it queues.
//   - review.go has work reviewed that the check has passed, where that is asked for, and approval.go remembers what
//     was approved.
//   - prepare.go prepares the target before a run, and wait.go waits while somebody has it checked out.
//   - revoke.go takes from a claim the right to land, and saves the work of an owner that comes too late.
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
// between 5 and 6 has landed: resume looks for the task's trailer among the commits that have come to the target since
// step 3, and completes the task with the commit that it finds. So no crash lands work twice or loses it.
//
// A landing that cannot be finished deletes the landing ref first and then returns the task, with the conflicts or the
// check's output, and with what the target has gained merged into the lane. An owner whose claim is over gets Fenced,
// and its work is archived.
//
// When a task is claimed or revoked is for board and teammate to decide.
package landing

import (
	"cmp"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

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
	repo      *git.Repo
	lanes     *worktree.Lanes
	board     *board.Board
	journal   *journal.Journal
	runner    *check.Runner
	options   Options
	slot      chan struct{} // holds one token: who has it runs checks, and is the only one in this process who lands
	queue     queue
	tasks     sync.Map // by task, a chan struct{}: one call for a task at a time in this process
	waitedFor sync.Map // what landings wait for, of which people were told
	told      sync.Map // what holds for all landings, of which people were told

	// What is known of where the target may be; see tip.go.
	verified    atomic.Pointer[string]            // the tip at which it was found last
	movedAtRest atomic.Pointer[string]            // the displacement that was found while no agent worked
	usersRefs   atomic.Pointer[map[string]string] // the user's refs when no agent worked
	checked     atomic.Pointer[string]            // the tip on which the check ran last
	isUnsigned  atomic.Bool                       // people know that a signature could not be had
	cannotSign  atomic.Bool                       // the program that signs has not ended
	goneInCheck atomic.Bool                       // the check has deleted it, which the user has to undo
	// The user has had it checked out since a landing was free to move it: what it was moved to then may be theirs.
	wasCheckedOut atomic.Bool
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
	return &Lander{repo: repo, lanes: lanes, board: b, journal: j, options: o, slot: make(chan struct{}, 1),
		runner: check.New(check.Options{Check: o.Check, Repo: repo, Dirs: lanes.CheckDirs, Launch: launch,
			Cache: o.Cache, Receipts: o.Receipts, Outputs: o.Outputs, Environ: o.Environ,
			Secrets: o.Secrets, AtOnce: checksAtOnce(runtime.NumCPU(), uint64(proc.MachineMemory())),
			Setups: o.Setups, SetupFiles: o.SetupFiles, Ports: o.Ports, PortCount: o.PortCount,
			OnTest: o.OnTest})}
}

// Verdict is how a landing ended: the task's status says whether it is completed or returned. A completed task that
// has no Landed had nothing to land.
type Verdict struct {
	Task muster.Task // as it is now
	Text string      // of a returned task, for its owner's model: what happened, what to do, the log's last lines
}
