// Package team is the front door for embedders: a team of agents on a git repository, from a goal to landed commits.
//
// Open finds the repository and the state and starts nothing; Run and Resume bring the team to life and return when the
// run is over. In between a supervisor makes the living members match the roster: whoever wrote a record (the lead's
// spawn_teammate, a command in another terminal), it is the record that starts and stops a member, so going on after a
// crash is not a special case.
//
// Read in this order: team.go (what a team is made of), start.go (what may start when), run.go (a run from start to
// end), conversation.go (a run that waits for the user), check.go (the check on the base), supervise.go and living.go
// (members), ground.go (the repository below), events.go and guard.go (what an embedder has beside).
package team

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/outbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/teammate"
	"muster/internal/worktree"
	"muster/journal"
	"muster/llm"
	"muster/llm/retry"
)

// Config says what a team is made of. Dir, Store and Model must be set; the rest has defaults.
type Config struct {
	// Dir is anywhere inside the repository: in a subdirectory or in a linked worktree too. The team works on the root
	// of the main worktree.
	Dir string
	// Store holds the team's state: store/file opened on the root that FindRoot returns for Dir, or store/mem. Open
	// refuses a file store in any other directory: the state would lie in one place and the lanes in another.
	Store muster.Store
	// Model returns the model with the given name; "" is the default one. It is asked once for each member's life.
	Model func(name string) (llm.Model, error)
	// ModelName is shown, and kept in the run's record.
	ModelName string

	// Name of the team; by default the repository directory's name made to fit.
	Name muster.Name
	// Check is the command that proves the merged tree; "" verifies nothing, and every summary says so.
	Check string
	// Setup runs before the check in a fresh checkout.
	Setup string
	// Land is the branch that work lands on; by default muster/NAME.
	Land string
	// Teammates is how many teammates may live at once. Zero: the lead does everything.
	Teammates int
	// Tools are given to every member besides its own. One value serves all: it must be safe for concurrent use.
	Tools []llm.Tool
	// Emit gets what can be shown while it happens; it must not block and is called from many goroutines. v is a
	// loop.Event of a member's turn, or a muster.Event that could not be written to the journal: the disk is full, perhaps.
	Emit func(member muster.Name, v any)

	// Log is told what people need to find out why a team did what it did: members that start and stop, landings,
	// retries, errors that stopped nobody. It gets no key, no header and no body of a model's request. nil: nothing is
	// logged.
	Log *slog.Logger

	// Conversation keeps the run open for a user who talks with the lead; nil: the run ends by itself.
	Conversation *Conversation

	// Limits of a member's life; zero fields take the defaults of Defaults. IdleTimeout below zero means never.
	Limits Limits
	// WorktreesDir puts lanes elsewhere than .worktrees.
	WorktreesDir string
	// MergeCommits lands each task as a merge commit that keeps the lane's own commits.
	MergeCommits bool
}

// Limits are the settings of a member's life.
type Limits struct {
	Turns             int           // turns in a work phase
	MaxTokens         int           // of a reply
	SubagentTurns     int           // of a subagent
	IdleTimeout       time.Duration // of an idle teammate; below zero: never
	BashTimeout       time.Duration
	BackgroundTimeout time.Duration
	CheckTimeout      time.Duration
}

// Defaults are the limits that zero fields take.
func Defaults() Limits {
	return Limits{Turns: 50, MaxTokens: 8000, SubagentTurns: 30, IdleTimeout: time.Minute, BashTimeout: 2 * time.Minute,
		BackgroundTimeout: 5 * time.Minute, CheckTimeout: 10 * time.Minute}
}

// Team is an opened team. It is used by one goroutine, but for Events.
type Team struct {
	config  Config
	ground  ground
	rooms   teammate.Services
	runs    runs
	limiter *retry.Limiter
	branch  string // the target, without refs/heads/
	look    chan struct{}
	launch  func(context.Context) (proc.Launcher, error) // what starts tools and checks
	lander  func(proc.Launcher) teammate.Lander          // it needs the launcher, which lives as long as a run
	log     *slog.Logger                                 // never nil
}

// FindRoot returns where the state of the team lies that works on the repository of dir: the root of the main worktree.
// dir may be a subdirectory or lie in a linked worktree. Errors, each with a Hint: Unavailable (git is missing or
// refuses), NotFound (dir is in no repository), Invalid (the repository is bare or has no commit).
func FindRoot(ctx context.Context, dir string) (string, error) {
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return "", err
	}
	return repo.Root(), nil
}

// checkStoreRoot refuses a store on files that lies in another directory than the repository's root. A store that does
// not say where it lies, such as one in memory, is taken as it is.
func checkStoreRoot(s muster.Store, root string) error {
	onFiles, ok := s.(interface{ Root() string })
	if !ok {
		return nil
	}
	there, err1 := os.Stat(onFiles.Root())
	here, err2 := os.Stat(root)
	if err := errors.Join(err1, err2); err != nil {
		return muster.Errorf(muster.Unavailable, "whether the store is in the repository cannot be told: %w", err)
	}
	if os.SameFile(there, here) {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the store was opened in %s, but the repository's root is %s", onFiles.Root(), root).
		WithHint("open it there: root, err := team.FindRoot(ctx, dir); store, err := file.Open(root)")
}

// Open finds the repository and the state. It writes nothing. Errors are Invalid, with what to do, when the directory is
// no repository that a team can work on, or the store lies elsewhere than in the repository's root.
func Open(ctx context.Context, c Config) (*Team, error) {
	if c.Store == nil || c.Model == nil {
		return nil, muster.Errorf(muster.Invalid, "a team needs a Store and a Model").
			WithHint("store/file.Open(dir) or store/mem.New(); llm/anthropic.New or llm/openai.New")
	}
	repo, err := git.Open(ctx, c.Dir)
	if err != nil {
		return nil, err
	}
	if err := checkStoreRoot(c.Store, repo.Root()); err != nil {
		return nil, err
	}
	return open(ctx, c, repository{repo})
}

// open opens the team on its ground.
func open(ctx context.Context, c Config, g ground) (*Team, error) {
	c.Limits = c.Limits.withDefaults()
	if c.Name == "" {
		c.Name = muster.FitName(filepath.Base(g.Root()), "team")
	} else if err := muster.CheckName(c.Name); err != nil {
		return nil, err
	}
	log := c.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Team{config: c, ground: g, runs: newRuns(c.Store, log), limiter: new(retry.Limiter),
		look: make(chan struct{}, 1), branch: c.Land, launch: proc.New, log: log}
	if t.branch == "" {
		t.branch = "muster/" + string(c.Name)
	}
	log.Info("team opened", "team", c.Name, "root", g.Root(), "target", t.branch)
	return t, t.furnish(ctx)
}

// furnish makes the rooms.
func (t *Team) furnish(ctx context.Context) error {
	c, dir := t.config, paths.Dir(t.ground.Root())
	log := journal.New(c.Store.Log())
	log.Logger = t.log
	r := &t.rooms
	*r = teammate.Services{Team: c.Name, Home: dir, Store: c.Store, Journal: log, Run: t.runs.get, Spawned: t.nudge,
		Patient: c.Limits.IdleTimeout < 0, Log: t.log}
	r.Roster = roster.New(c.Store, log, c.Name)
	r.Board = board.New(c.Store, log)
	r.Post = mailbox.New(c.Store, log, r.Roster.Known)
	r.Talk = c.Conversation.listen(r.Post)
	r.Requests = requests.New(c.Store, r.Post, log)
	var err error
	if r.Lanes, t.lander, err = t.ground.Lay(*r, worktree.Options{Dir: c.WorktreesDir, Inbox: c.Store.Inbox(), Base: t.target()}, landing.Options{
		Target: t.target(), Check: landing.Check{Command: c.Check, Setup: c.Setup, Timeout: c.Limits.CheckTimeout},
		Outputs: dir.Outputs(), MergeCommits: c.MergeCommits, BaseState: t.runs.baseState, SetBaseState: t.runs.setBaseState,
		Log: t.log,
	}); err != nil {
		return err
	}
	r.Queue = teammate.NewQueue(r.Board)
	outbox.Register(r.Board, r.Post, r.Lanes)
	revoker := t.lander(nil) // to revoke a landing runs no check
	r.Board.OnRevoke(func(ctx context.Context, task muster.Task) error { return revoker.Revoke(ctx, task.ID, task.Fence) })
	return nil
}

// target is the ref on which work lands.
func (t *Team) target() string { return "refs/heads/" + t.branch }

// nudge makes the supervisor look at once.
func (t *Team) nudge() {
	select {
	case t.look <- struct{}{}:
	default:
	}
}

func (l Limits) withDefaults() Limits {
	d := Defaults()
	for _, f := range []struct{ have, want *int }{{&l.Turns, &d.Turns}, {&l.MaxTokens, &d.MaxTokens}, {&l.SubagentTurns, &d.SubagentTurns}} {
		if *f.have == 0 {
			*f.have = *f.want
		}
	}
	for _, f := range []struct{ have, want *time.Duration }{{&l.IdleTimeout, &d.IdleTimeout}, {&l.BashTimeout, &d.BashTimeout},
		{&l.BackgroundTimeout, &d.BackgroundTimeout}, {&l.CheckTimeout, &d.CheckTimeout}} {
		if *f.have == 0 {
			*f.have = *f.want
		}
	}
	return l
}
