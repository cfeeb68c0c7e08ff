// Package team is the front door for embedders: a team of agents on a git repository, from a goal to landed commits.
//
// Open finds the repository and the state and starts nothing. Tasks, Members, Mail, Requests and Lanes show and change
// the state whether a run is under way or not, in this process or in another. Run and Resume bring the team to life and
// return when the run is over. Subscribe delivers what happens while it happens, and Events what has happened.
//
// During a run a supervisor makes the running members match the roster. Whoever wrote a record (the lead's
// spawn_teammate, Members.Spawn, a command in another terminal), it is the record that starts and stops a member, so
// going on after a crash is not a special case.
//
// The main types are Team, which is opened; teamRun, a run that this process leads or has joined; host, this process as
// one that runs members; and operations, what people do beside both. Each is given a site: the repository, the
// workspace and the configuration with which it works. A run has a site and a host of its own, which no later run
// changes. docs/architecture.md lists the files of each part, and which part calls which.
//
// Invariants:
//
//   - One process at a time runs the lead, by a lease. A record alone could not say so: two processes that start at
//     one moment could both find it free.
//   - A process has one board and one lander at a time.
//   - A member's claims are released before its record says that it has shut down, so that no task stays with somebody
//     whom nobody looks at any more.
//   - When Run, Resume or Join has returned, nothing of its members is written any more.
//
// How a member works is in internal/teammate, what a task may do is in internal/board, and how the services are opened
// is in internal/workspace.
//
// Compatibility: the names in this package may still change before the first version; the state on disk does not,
// except as its format's own rules allow.
package team

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/git"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/sandbox"
	"muster/internal/workspace"
	"muster/journal"
)

// Team is an opened team. Run, Resume and Join are for one goroutine and one run at a time. All else may be used from
// any goroutine, during a run too.
type Team struct {
	site          site
	running       atomic.Pointer[workspace.Workspace] // the services of the last run, which has its name and target
	hosting       shared
	listeners     subscribers
	helper        gitHelper
	ownsWorkspace bool
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
	// The files are compared, not their names: a link or another spelling may lead to the same directory.
	there, err1 := os.Stat(onFiles.Root())
	here, err2 := os.Stat(root)
	if err := errors.Join(err1, err2); err != nil {
		return muster.Errorf(muster.Unavailable, "whether the store is in the repository cannot be told: %w", err)
	}
	if os.SameFile(there, here) {
		return nil
	}
	return muster.Errorf(muster.Invalid, "the store was opened in %s, but the repository's root is %s",
		onFiles.Root(), root).
		WithHint("open it there: root, err := team.FindRoot(ctx, dir); store, err := file.Open(root)")
}

// Open opens the team of a repository, whether a run is under way or not. It writes nothing, starts nothing, and opens
// the services only when they are needed: Tasks, Members, Mail, Requests and Lanes work without a run and without
// Config.Model. Errors are Invalid, with what to do, when the directory is no repository that a team can work on, or
// the store lies elsewhere than in the repository's root.
func Open(ctx context.Context, c Config) (*Team, error) {
	if c.Store == nil && c.OpenStore == nil {
		return nil, muster.Errorf(muster.Invalid, "a team needs a store").
			WithHint("store/file.Open(dir) or store/mem.New()")
	}
	w, err := workspace.Open(ctx, c.Dir, workspace.Options{Name: c.Name, Target: c.Land, WorktreesDir: c.WorktreesDir,
		Ports: ports.Open(c.CacheDir), PortCount: c.Ports, Store: c.Store, OpenStore: c.OpenStore,
		Secrets: redact.New(c.secretValues()...)})
	if err != nil {
		return nil, err
	}
	t, err := OpenIn(w, c) //nolint:contextcheck // OpenIn starts nothing; what runs later gets a context of its own.
	if err != nil {
		_ = w.Close() // the error of opening counts
		return nil, err
	}
	t.ownsWorkspace = true
	return t, nil
}

// OpenIn is Open for a workspace that is open already; its store counts. It is for the commands of this module. The
// caller closes the workspace.
func OpenIn(w *workspace.Workspace, c Config) (*Team, error) {
	c.Store, c.OpenStore = w.Store(), nil
	if err := checkStoreRoot(c.Store, w.Root()); err != nil {
		return nil, err
	}
	c.Limits = c.Limits.WithDefaults()
	if s, polls := c.Store.(interface{ PollEvery(time.Duration) }); polls {
		s.PollEvery(c.Limits.IdlePoll)
	}
	if c.Name == "" {
		c.Name = muster.Slug(filepath.Base(w.Root()), "team")
	} else if err := muster.CheckName(c.Name); err != nil {
		return nil, err
	}
	if len(c.Checks) > 0 {
		c.Check = muster.RequiredNames(c.Checks)
	}
	c.ModelName = config.Stored(c.ModelName)
	log := cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	// The target is the team's own, so that nobody's branch is touched unless the user names it.
	t := &Team{hosting: shared{wake: make(chan struct{}, 1)}}
	t.site = site{config: c, branch: cmp.Or(c.Land, "muster/"+string(c.Name)), workspace: w, log: log,
		secrets: w.Secrets().With(c.secretValues()...), listeners: &t.listeners, helper: &t.helper,
		trust: w.Trust(), launch: proc.New}
	w.SetGitHelper(t.site.openHelper)
	if c.Conversation != nil {
		// So that the user can say something before the run starts.
		c.Conversation.listen(w.Mail(context.Background()), c.Store.Leases())
	}
	log.Info("team opened", "team", c.Name, "root", w.Root(), "target", t.site.branch)
	return t, nil
}

// Close closes what Open has opened. A store that the caller has opened stays open.
func (t *Team) Close() error {
	err := t.helper.close()
	if t.ownsWorkspace {
		err = errors.Join(err, t.site.workspace.Close())
	}
	return err
}

// Name returns the name of the team: of the last run, or the one that a first run gets.
func (t *Team) Name(ctx context.Context) muster.Name { return t.services().Name(ctx) }

// Root returns the root of the repository's main worktree, where the state is.
func (t *Team) Root() string { return t.site.workspace.Root() }

// Journal returns what has happened in the team, for reading from any position.
func (t *Team) Journal() *journal.Journal { return t.site.workspace.Journal() }

// services returns the services of the team: those of the run where there is one, so that a process has one board.
func (t *Team) services() *workspace.Workspace {
	if w := t.running.Load(); w != nil {
		return w
	}
	return t.site.workspace
}

// prepareChange returns the services for a method that changes the state. The error is Invalid inside one of the team's
// own tools, and Held while the state is being archived.
func (t *Team) prepareChange(ctx context.Context) (*workspace.Workspace, error) {
	w := t.services()
	return w, w.PrepareChange(ctx)
}

// Guard makes this program one whose tools cannot outlive it. Call it first thing in main, before flags are read or
// anything is printed, and in TestMain of packages whose tests run teams.
//
// On Linux a run starts this very program a second time, as a small process, the guard. It starts every command, and
// kills all that a command has started, in sessions of its own too, when the command ends, is stopped, or when this
// program dies, by kill -9 too. In that second process Guard serves and never returns, so what stands before it in main
// would be done twice.
//
// A command that is confined and may reach some hosts is started by this program, too.
//
// Without it, and on other systems, a command has a process group. That is killed as a whole, and on Linux what has
// left it is looked for, but only while this program lives: after a kill -9 what its tools had started goes on.
func Guard() {
	proc.GuardMain()
	sandbox.ForwardMain()
}

// openSite opens what a run, or a landing without a run, works with: see site.forRun. From then on the team's other
// methods use the same services: a second board in this process would have a graph of its own, and a second lander
// would not see the landings that are under way.
func (t *Team) openSite(ctx context.Context, last muster.Run) (*site, error) {
	s, err := t.site.forRun(ctx, last)
	if err == nil {
		t.running.Store(s.workspace)
	}
	return s, err
}
