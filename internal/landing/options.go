package landing

import (
	"context"
	"log/slog"
	"runtime"
	"strings"

	"muster"
	"muster/internal/check"
	"muster/internal/config"
	"muster/internal/localfiles"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/setup"
	"muster/internal/treediff"
)

// Options are the settings of landings.
type Options struct {
	// Landing is what people set. Of Jobs, 0 is one here.
	config.Landing
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
	// Local is what of the user's files each check gets; nil is nothing. None of it lands.
	Local *localfiles.Set
	// Secrets are hidden where a log names the command of a check. The launcher hides them in what it prints.
	Secrets *redact.Secrets
	// IsAllowed reports whether the user has allowed what looks like a key and has this fingerprint; nil: nothing is
	// allowed.
	IsAllowed func(fingerprint string) (bool, error)
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

// branch returns the target's name without refs/heads/.
func (o *Options) branch() string { return strings.TrimPrefix(o.Target, "refs/heads/") }

// Reviewer returns what a reviewer says of work that the check has passed. It is called in the goroutine of the task's
// owner. An error means that there is no verdict. A process without one lands no work that needs a review.
type Reviewer func(context.Context, ReviewRequest) (ReviewVerdict, error)

// DefaultReviewer is the role that reviews work where none is named.
const DefaultReviewer = "reviewer"

// ReviewRequest is what a reviewer decides about. All but Role is of others, and none of it is an instruction.
type ReviewRequest struct {
	Role    string // of the reviewer
	Task    muster.Task
	Summary string        // the owner's
	Diff    treediff.Diff // of the lane, from where it left the target
	Checked muster.Landed // what the check said of the work merged with the target
	// Line returns a line of a file as it is in the lane. Its error says what is there instead.
	Line func(ctx context.Context, file string, line int) (string, error)
}

// ReviewVerdict is what a reviewer has decided.
type ReviewVerdict struct {
	Approved bool
	Comments []ReviewComment // why it is returned, or what is to be known of what is approved
	Text     string          // about the whole, perhaps ""
	Model    string          // which has decided, as the settings name it
}

// ReviewComment is about a line of a file; line 0 is the whole file.
type ReviewComment struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Text string `json:"text"`
}

// Owner is what a landing asks of the process that hosts the task's owner. What is nil is not asked.
type Owner struct {
	Review Reviewer
	Model  string // of the owner, as the settings name it; "": not known
	// Unchanged is called before a task is completed whose lane holds nothing. Its error ends the landing, and the task
	// stays as it is.
	Unchanged func(context.Context) error
}

// Verdict is how a landing ended: the task's status says whether it is completed or returned. A completed task that
// has no Landed had nothing to land.
type Verdict struct {
	Task muster.Task // as it is now
	Text string      // of a returned task, for its owner's model: what happened, what to do, the log's last lines
	// Changes says of a task that has landed which files it has changed, and what was left out. Note names files that
	// may not belong in a repository. Both are for the owner's model, and may be "".
	Changes, Note string
}

// What one check is taken to need: a build uses several cores, and some memory for each.
const (
	coresPerCheck  = 4
	memoryPerCheck = 4 << 30
	maxJobs        = 2 // the halves of a red stack
)

// DefaultJobs returns how many checks may run at once on this machine: two if it has eight cores and eight gigabytes of
// memory, and one otherwise.
func DefaultJobs() int { return defaultJobs(runtime.NumCPU(), uint64(proc.MachineMemory())) }

// defaultJobs is DefaultJobs of a machine. A memory of 0 is unknown, and then the cores decide.
func defaultJobs(cores int, memory uint64) int {
	jobs := min(cores/coresPerCheck, maxJobs)
	if memory > 0 {
		jobs = min(jobs, int(memory/memoryPerCheck))
	}
	return max(1, jobs)
}

// checksAtOnce returns how many of several named checks may run at once, in all jobs together. A linter, or the tests
// of one part of a project, need less than a whole build, so there are more of them than jobs: four also where there
// are fewer cores, unless the memory is small.
func checksAtOnce(cores int, memory uint64) int {
	most := max(4, cores)
	if memory > 0 {
		most = min(most, max(2, int(memory/(1<<30))))
	}
	return most
}
