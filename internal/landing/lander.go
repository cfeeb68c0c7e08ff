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
//   - landingRefs (revoke.go) is the pair of refs that lets a claim land at most once, and never after it was revoked.
//   - check (check.go) has the project's check run on the merged tree, by internal/check. checkState knows whether the
//     check failed before any work: only then may a landing whose check fails land.
//   - message.go writes the landed commit, and finds it again after a crash.
//   - tip.go remembers where landings left the target, and puts back one that something else has moved.
//   - return.go returns a task, with what its owner reads: whose landed work it met (collision.go), and what both sides
//     wanted where it needs attention (sides.go).
//   - secrets.go returns work that has what looks like a key, before it queues.
//   - review.go has work reviewed that the check has passed, where that is asked for, and approval.go remembers what
//     was approved.
//   - target.go prepares the target before a run, and waits while somebody has it checked out.
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
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"muster"
	"muster/internal/board"
	"muster/internal/check"
	"muster/internal/git"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/setup"
	"muster/internal/text"
	"muster/internal/worktree"
	"muster/journal"
)

// Options are the settings of landings.
type Options struct {
	Target  string // refs/heads/...
	Check   Check
	Outputs string // the logs of checks go to its directory landing
	// Receipts is the directory in which what checks have said is kept; "" keeps nothing.
	Receipts string
	Cache    string // the directories and caches of checks are kept there, for all repositories; "": nothing is kept
	// Setups keeps what set-ups make, and SetupFiles are patterns of files on which they depend; see package check.
	Setups     *setup.Store
	SetupFiles []string
	// Ports is where the network ports of checks are noted, and PortCount how many each has; nil: they have none.
	Ports     *ports.Table
	PortCount int
	// OnTest is told which test the check of a task's work runs, 0 is the base, a few times a second. It must not
	// block. Nil: nobody waits for it.
	OnTest func(task muster.TaskID, test string)
	// Environ is what checks see of the user's environment. Nil is what proc.Environment lets through.
	Environ []string
	// Secrets are hidden where a log names the command of a check. The launcher hides them in what it prints.
	Secrets *redact.Secrets
	// Jobs is how many checks of landings may run at once: over 1, both halves of a red stack are checked at the same
	// time. 0: one.
	Jobs int
	// MergeCommits lands each task as a merge commit, with the lane's own commits behind it.
	MergeCommits bool
	// LandSecrets lets land what looks like a key. Without it such work is returned, unless IsAllowed says that the
	// user has allowed the finding with this fingerprint; nil: none is allowed.
	LandSecrets bool
	IsAllowed   func(fingerprint string) (bool, error)
	// Sign says whether the commits that land are signed: SignAuto ("", too), SignAlways or SignNever.
	Sign string
	// CheckState keeps what is known of the target's check ("", "ok", "red") where all processes of the team see it. It
	// records what the check has said ("" records nothing, "ok" stays, and "forget" forgets it) and returns what was
	// known before.
	CheckState func(ctx context.Context, said string) (before string, err error)
	// Tips keeps where the target, a branch without refs/heads/, may be. It applies change, unless that is nil, and
	// returns the tips then; the first is where it was found at the start. Without any, the target may be anywhere.
	Tips func(ctx context.Context, target string, change func([]muster.Tip) []muster.Tip) ([]muster.Tip, error)
	// TellLead tells the lead that the target was put back. nil: only the journal says it.
	TellLead func(ctx context.Context, text string) error
	// Hook decides, after the check, whether the merged tree in dir may land. It returns why not. Nil lets all land.
	Hook func(ctx context.Context, t muster.Task, dir string, env []string) (refused string, err error)
	// Review is the role that reviews all work before it lands; "": only that of tasks which ask for it. See Reviewer.
	Review string
	// Log is told the phases of landings. nil: nothing is logged.
	Log *slog.Logger
}

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

// Target returns the commit from which new work starts: the target's, after one that was displaced was put back. The
// error is NotFound when there is no such branch.
func (l *Lander) Target(ctx context.Context) (string, error) {
	if seen := l.verified.Load(); seen != nil && l.IsUntouched(ctx) {
		return *seen, nil
	}
	tip, _, err := l.Secure(ctx)
	return tip, err
}

// IsUntouched reports whether the target is where this process has seen it last. In most calls it is, and the record of
// where it may be need not be read again.
func (l *Lander) IsUntouched(ctx context.Context) bool {
	seen := l.verified.Load()
	if seen == nil {
		return false
	}
	at, link, err := l.repo.Branch(ctx, l.options.Target)
	return err == nil && link == "" && at == *seen
}

// resolve returns the commit that the target is at, wherever that is.
func (l *Lander) resolve(ctx context.Context) (string, error) {
	tip, err := l.repo.Resolve(ctx, l.options.Target)
	if errors.Is(err, muster.ErrNotFound) {
		return "", l.errGone()
	}
	return tip, err
}

// errGone is the error of a target that is not there.
func (l *Lander) errGone() error {
	return muster.Errorf(muster.NotFound, "the target branch %s is gone", l.branch()).
		WithHint("git branch %s COMMIT brings it back", text.ShellQuote(l.branch()))
}

// branch returns the target's name without refs/heads/.
func (l *Lander) branch() string { return strings.TrimPrefix(l.options.Target, "refs/heads/") }

// takeSlot waits until no other landing or check of this process is under way.
func takeSlot(ctx context.Context, l *Lander) (unlock func(), err error) {
	return lock(ctx, l.slot)
}

// lock puts a token into the channel, which holds one: a mutex for which ctx ends the wait.
func lock(ctx context.Context, c chan struct{}) (unlock func(), err error) {
	select {
	case c <- struct{}{}:
		return func() { <-c }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// unavailable says what could not be done. Such a landing is tried again. The end of ctx stays what it is.
func unavailable(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return muster.Errorf(muster.Unavailable, "%s: %w", what, err)
}
