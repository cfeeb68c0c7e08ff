package landing

import (
	"context"
	"log/slog"

	"muster"
	"muster/internal/check"
	"muster/internal/ports"
	"muster/internal/redact"
	"muster/internal/setup"
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

// What Options.Sign may be, besides "", which is SignAuto.
const (
	SignAuto   = "auto"  // commits that land are signed if the user's git signs commits
	SignAlways = "true"  // they are signed
	SignNever  = "false" // they are not
)

// Check is how the merged tree is verified.
type Check = check.Check

// CheckResult is what a check said.
type CheckResult = check.Result
