// Package workspace opens a repository, the team's state in it and the services on that state, for the commands, for
// package team and for tests.
//
// A Workspace is the one place where services are put together. It opens each of them when it is first asked for, so a
// command that only looks opens nothing that it does not need: the journal and the board need no git, and where a team
// has state already, even the root is found without git. Opening a workspace writes nothing, and neither does any
// method that its comment does not name as one that writes.
//
// The main types are Workspace (the services), Runs (the run's record) and Unverified (state that muster did not make).
// The files: workspace.go (Open and the services), lazy.go, verify.go (only state that muster made is used), runs.go,
// change.go (what a command must respect before it changes anything), check.go, documents.go and repair.go (what doctor
// does and says), trial.go, overwritten.go (what other programs changed while a team works), archive.go, restore.go and
// adopt.go.
//
// The package keeps these invariants:
//
//   - A workspace has one board and one lander, and the lander lands on that board. What follows from the end of a task
//     (registerEffects) is registered when the board is opened, so no process has a board without it.
//   - The engine of the store is the caller's choice. The package knows only muster.Store.
//   - A check changes nothing, and a repair keeps what it replaces. Neither disturbs a living team.
//   - State that is being archived is changed by nobody else, and no id of a task is used twice across archives.
//
// Name and target of the team are those of Options, or else of the last run. A service keeps the name and the target
// that held when it was opened. A run has its own, so it gets its own services from ForRun, on the same open repository
// and state: a process opens a workspace once.
//
// It decides nothing about runs and members; package team does. It prints nothing.
package workspace

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/config"
	"muster/internal/corruption"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/paths"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/requests"
	"muster/internal/roster"
	"muster/internal/trust"
	"muster/internal/worktree"
	"muster/journal"
)

// Options say what a workspace is made of. Store or OpenStore must be set. All else has a default.
type Options struct {
	// OpenStore opens the state at the repository's root. If the store has a method Close, Workspace.Close calls it.
	OpenStore func(root string) (muster.Store, error)
	// Store is a store that is open already, in place of OpenStore. It stays open.
	Store muster.Store
	// Repo is the repository, if the caller of OpenRoot has opened it already.
	Repo *git.Repo

	// Name is the team's name. By default it is the last run's, or else made of the directory's name.
	Name muster.Name
	// Target is the branch that work lands on, without refs/heads/. By default it is the last run's.
	Target string
	// Config says where settings are read from; its Root is filled in. Nil means that no settings file holds.
	Config *config.Options
	// WorktreesDir is where lanes are made. By default it is what the settings say, or else .worktrees.
	WorktreesDir string
	// Ports has the ports of lanes; nil: there are none. PortCount is how many; by default what the settings say.
	Ports     *ports.Table
	PortCount int
	// Registry tells state that muster made for this user from other state. By default it is the one of this process's
	// environment.
	Registry *trust.Registry
	// Landing has the check of the lander and how it lands. All else of it is filled in.
	Landing landing.Options
	Secrets *redact.Secrets // never written to the store; nil hides nothing
	// Log is told what nobody else is told. Nil means that nothing is logged.
	Log *slog.Logger
	// isUnverified opens state that the registry does not know.
	isUnverified bool
	// Clock gives the times and the random text of what is written. The zero value is the system's.
	Clock clock.Clock
}

// Workspace is a repository with the state and the services of its team. It is safe for concurrent use.
type Workspace struct {
	*opened
	options Options
	store   muster.Store // hides the secrets of the options
	journal *journal.Journal
	runs    *Runs

	board    lazy[*board.Board]
	roster   lazy[*roster.Roster]
	mail     lazy[*mailbox.Mail]
	requests lazy[*requests.Requests]
	lanes    lazy[*worktree.Lanes]
	lander   lazy[*landing.Lander]
	launcher atomic.Pointer[proc.Launcher] // nil while this process runs no checks
}

// opened is what a workspace and those that ForRun has made of it share.
type opened struct {
	root     string
	openedAt time.Time
	common   string       // git's common directory; "" for a store in memory without a repository
	engine   muster.Store // as it was opened: it hides nothing
	repo     lazy[*git.Repo]
	files    lazy[*os.Root]
	helper   atomic.Pointer[func(context.Context) (git.Helper, error)]
	isMarked atomic.Bool // Mark has succeeded
}

// Open opens the workspace of the repository that dir lies in: dir may be a subdirectory, or lie in a linked worktree.
// Errors, each with a hint: Unavailable (git is missing or refuses), NotFound (dir is in no repository), Invalid (the
// repository is bare or has no commit), and those of opening the store.
func Open(ctx context.Context, dir string, o Options) (*Workspace, error) {
	if root, ok := findRoot(dir); ok {
		return OpenRoot(root, o)
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return nil, err
	}
	o.Repo = repo
	return OpenRoot(repo.Root(), o)
}

// OpenRoot opens the workspace at a root that was found before. It asks git only where the index may have paths of the
// state. The error is Invalid, with what to do, for state that muster did not make for this user on this machine.
func OpenRoot(root string, o Options) (*Workspace, error) {
	if path, err := filepath.EvalSymlinks(root); err == nil {
		if err := git.CheckPath(path); err != nil {
			return nil, err
		}
		root = path // as git names it
	} else if o.Store == nil { // a store in memory needs no directory
		return nil, muster.Errorf(muster.NotFound, "there is no directory %s", root)
	}
	w := &Workspace{options: o, opened: &opened{root: root, engine: o.Store, openedAt: time.Now()}}
	// Before anything of the state is read.
	if err := verifyState(w); err != nil {
		return nil, err
	}
	if w.common != "" {
		_ = git.DisconnectAbandoned(w.common) // who works in a lane tells what is wrong with it
	}
	if w.engine == nil {
		var err error
		if w.engine, err = o.OpenStore(root); err != nil {
			return nil, err
		}
	}
	// Invariant: the mark is durable before the first directory of the state is made.
	if s, ok := w.engine.(interface{ BeforeMakeDir(func() error) }); ok {
		s.BeforeMakeDir(beforeMakeDir(w))
	}
	w.openState()
	if s, ok := w.engine.(interface {
		OnOverwrite(func(table, file string, found muster.Doc))
	}); ok {
		s.OnOverwrite(w.reportOverwritten)
	}
	return w, nil
}

// openState opens the state so that it hides the secrets of the options and of the repository's git.
func (w *Workspace) openState() {
	w.options.Secrets = w.options.Secrets.With(git.Credentials(w.common)...)
	w.store = w.options.Secrets.Store(w.engine)
	w.journal = journal.New(w.store.Log())
	w.journal.Logger = w.options.Log
	w.runs = &Runs{w.store.Table(muster.TableTeam), corruption.New(w.store.Log(), w.store.Inbox(), w.journal)}
}

// RunOptions are the options of a workspace that a run decides (see Options).
type RunOptions struct {
	Name         muster.Name
	Target       string
	WorktreesDir string
	Ports        *ports.Table
	PortCount    int
	Landing      landing.Options
	Secrets      *redact.Secrets
	Log          *slog.Logger
}

// ForRun returns a workspace with services of its own, for a run, on the repository and the state that w has opened. It
// need not be closed: it ends with w. What has changed since the opening counts: filters that the user has trusted run,
// and lanes that a killed process has left connected are put right.
func (w *Workspace) ForRun(o RunOptions) (*Workspace, error) {
	run := &Workspace{opened: w.opened, options: w.options}
	run.options.Name, run.options.Target, run.options.WorktreesDir = o.Name, o.Target, o.WorktreesDir
	run.options.Ports, run.options.PortCount, run.options.Landing = o.Ports, o.PortCount, o.Landing
	run.options.Secrets, run.options.Log = o.Secrets, o.Log
	run.openState()
	if w.common != "" {
		_ = git.DisconnectAbandoned(w.common) // who works in a lane tells what is wrong with it
	}
	if repo := w.repo.value(); repo != nil {
		return run, armDrivers(w, repo)
	}
	return run, nil
}

// Close closes what the workspace opened. Background reads of the store end with it.
func (w *Workspace) Close() error {
	var err error
	if w.common != "" {
		durable.GiveToOwner(w.common, w.openedAt, git.PlacesDir)
		durable.GiveToOwner(w.Paths().Team(), w.openedAt, filepath.Base(w.Paths().Scratch()))
	}
	if root := w.files.value(); root != nil {
		err = root.Close()
	}
	if c, ok := w.engine.(interface{ Close() error }); ok && w.options.Store == nil {
		err = errors.Join(err, c.Close())
	}
	return err
}

// Root returns the root of the repository's main worktree.
func (w *Workspace) Root() string { return w.root }

// Paths returns where the state lies.
func (w *Workspace) Paths() paths.Dir { return paths.Dir(w.root) }

// Store returns the store, for what no service covers.
func (w *Workspace) Store() muster.Store { return w.store }

// Journal returns the journal of the team.
func (w *Workspace) Journal() *journal.Journal { return w.journal }

// Runs returns the record of the run.
func (w *Workspace) Runs() *Runs { return w.runs }

// Name returns the team's name.
func (w *Workspace) Name(ctx context.Context) muster.Name {
	if w.options.Name != "" {
		return w.options.Name
	}
	// A record that cannot be read is reported by whoever needs more of it than the name.
	if run, err := w.runs.Look(ctx); err == nil && run.Team != "" {
		return run.Team
	}
	return muster.Slug(filepath.Base(w.root), "team")
}

// Repo returns the repository as git has it. Filters and merge drivers of its own config run if the user trusts them.
func (w *Workspace) Repo(ctx context.Context) (*git.Repo, error) {
	return w.repo.get(func() (repo *git.Repo, err error) {
		if repo = w.options.Repo; repo == nil {
			if repo, err = git.Open(ctx, w.root); err != nil {
				return nil, err
			}
		}
		git.SetHelper(repo, w.openHelper)
		return repo, armDrivers(w, repo)
	})
}

// SetGitHelper sets what starts git where members write (see git.SetHelper).
func (w *Workspace) SetGitHelper(open func(context.Context) (git.Helper, error)) {
	w.helper.Store(&open)
}

func (w *Workspace) openHelper(ctx context.Context) (git.Helper, error) {
	if open := w.helper.Load(); open != nil {
		return (*open)(ctx)
	}
	return nil, nil
}

// Secrets returns those of the options, and those of the repository's own settings of git.
func (w *Workspace) Secrets() *redact.Secrets { return w.options.Secrets }

// Files opens files of the repository that are not part of the store. Names are relative to the repository's root. A
// name, and a symbolic link on the way, that leads out of the repository is refused by the operating system, whoever
// changes the directories meanwhile.
func (w *Workspace) Files() (*os.Root, error) {
	return w.files.get(func() (*os.Root, error) {
		root, err := os.OpenRoot(w.root)
		if err != nil {
			return nil, muster.Errorf(muster.Unavailable, "the repository cannot be opened: %w", err)
		}
		return root, nil
	})
}

// stateFiles opens the state that no service covers, by its absolute paths.
func stateFiles(w *Workspace) *durable.Files { return durable.New(durable.OS{Root: w.root}) }

// ListFiles returns the paths of the files of the user's checkout that git tracks or would track, sorted and relative
// to its top. It returns none where git cannot tell.
func (w *Workspace) ListFiles(ctx context.Context) []string {
	repo, err := w.Repo(ctx)
	if err != nil {
		return nil
	}
	out, err := repo.Run(ctx, repo.Here(), "ls-files", "-z", "--cached", "--others", "--exclude-standard",
		"--deduplicate")
	if err != nil {
		return nil
	}
	return slices.Sorted(slices.Values(git.SplitNUL(out)))
}

// Settings returns the settings that hold in this repository under the given flags, typed and as a list in which each
// carries its source. Without Options.Config they are the defaults.
func (w *Workspace) Settings(flags map[string]string) (config.Settings, []config.Value, error) {
	if w.options.Config == nil {
		return config.Load(config.Options{Flags: flags})
	}
	o := *w.options.Config
	o.Root, o.Flags = w.root, flags
	o.Trusts = func(name, value string) (bool, error) {
		trusted, err := w.Trust().Get()
		return trusted.Trusts(name, value), err
	}
	return config.Load(o)
}

// Board returns the board. Everything that follows from the end of a task is registered with it.
func (w *Workspace) Board() *board.Board {
	return w.board.must(func() *board.Board {
		// Before anybody has the board: a task that ends has effects from the first one on.
		b := board.New(w.store, w.journal)
		registerEffects(w, b)
		return b
	})
}

// Roster returns the members and the hosts.
func (w *Workspace) Roster(ctx context.Context) *roster.Roster {
	return w.roster.must(func() *roster.Roster { return roster.New(w.store, w.journal, w.Name(ctx)) })
}

// Mail returns the mail.
func (w *Workspace) Mail(ctx context.Context) *mailbox.Mail {
	return w.mail.must(func() *mailbox.Mail { return mailbox.New(w.store, w.journal, w.Roster(ctx).Known) })
}

// Requests returns the requests.
func (w *Workspace) Requests(ctx context.Context) *requests.Requests {
	return w.requests.must(func() *requests.Requests { return requests.New(w.store, w.Mail(ctx), w.journal) })
}

// Lanes returns the lanes. A lane for which its maker names no base starts from the target's tip, and from HEAD while
// there is no target.
func (w *Workspace) Lanes(ctx context.Context) (*worktree.Lanes, error) {
	return w.lanes.get(func() (*worktree.Lanes, error) {
		repo, err := w.Repo(ctx)
		if err != nil {
			return nil, err
		}
		o := worktree.Options{Dir: w.options.WorktreesDir, Inbox: w.store.Inbox(), Base: laneBase(ctx, w, repo),
			Task: w.Board().Get, Removed: w.Board().ForgetLane, Ports: w.options.Ports,
			PortCount: w.options.PortCount}
		// No flag counts here, so the settings are those of the files and of the environment.
		if w.options.Config != nil {
			settings, _, err := w.Settings(nil)
			if err != nil {
				return nil, err
			}
			o.Dir, o.PortCount = cmp.Or(o.Dir, settings.WorktreesDir), cmp.Or(o.PortCount, settings.Ports)
		}
		files := stateFiles(w)
		files.BeforeMakeDir = beforeMakeDir(w)
		return worktree.Open(repo, files, w.Paths(), w.journal, w.store.Log(), o)
	})
}

// laneBase returns the ref that lanes start from, or "" for HEAD.
func laneBase(ctx context.Context, w *Workspace, repo *git.Repo) string {
	if w.options.Target != "" {
		return branchRef(w.options.Target)
	}
	run, err := w.runs.Look(ctx)
	if err != nil || run.Target == "" {
		return ""
	}
	// The branch of the last run may be gone, or not be made yet.
	if at, err := repo.Ref(ctx, branchRef(run.Target)); err != nil || at == "" {
		return ""
	}
	return branchRef(run.Target)
}

// LaneBase returns the commit that a lane made by hand starts from: the named one, or else the target's tip, or else
// HEAD.
func (w *Workspace) LaneBase(ctx context.Context, named string) (commit string, err error) {
	repo, err := w.Repo(ctx)
	if err != nil {
		return "", err
	}
	if named != "" {
		if commit, err = repo.Resolve(ctx, named); err != nil {
			err = muster.Errorf(muster.NotFound, "there is no commit %q", named).WithHint("git log --oneline --all")
		}
		return commit, err
	}
	// A target that git cannot resolve is one that was never made: the team's first lane starts from HEAD.
	if ref := laneBase(ctx, w, repo); ref != "" {
		if commit, err := repo.Resolve(ctx, ref); err == nil {
			return commit, nil
		}
	}
	return repo.Head(ctx)
}

// Lander returns the one lander of the board. It can revoke a landing at once; to run checks it needs SetLauncher.
func (w *Workspace) Lander(ctx context.Context) (*landing.Lander, error) {
	return w.lander.get(func() (*landing.Lander, error) {
		repo, errRepo := w.Repo(ctx)
		lanes, errLanes := w.Lanes(ctx)
		if err := cmp.Or(errRepo, errLanes); err != nil {
			return nil, err
		}
		// A record that cannot be read is an error here: work must not land on a branch that was only guessed.
		branch := w.options.Target
		if branch == "" {
			run, err := w.runs.Get(ctx)
			if err != nil {
				return nil, err
			}
			branch = run.Target
		}
		o := w.options.Landing
		o.Target, o.Log, o.Outputs = branchRef(branch), w.options.Log, w.Paths().Outputs()
		o.Receipts, o.CheckState, o.Tips = w.Paths().Receipts(), w.runs.CheckState, w.runs.Tips
		o.IsAllowed = func(fingerprint string) (bool, error) {
			said, err := w.Trust().Get()
			return said.Allows(trust.Secret, fingerprint), err
		}
		o.TellLead = func(ctx context.Context, text string) error {
			_, err := w.Mail(ctx).Send(ctx, muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead,
				Content: text})
			return err
		}
		// The lander is made before the launcher is known and lives longer, because revoking a landing runs no check.
		return landing.New(repo, lanes, w.Board(), w.journal, w.Launcher, o), nil
	})
}

// Launcher returns what starts the checks of landings.
func (w *Workspace) Launcher() (proc.Launcher, error) {
	if l := w.launcher.Load(); l != nil {
		return *l, nil
	}
	return nil, muster.Errorf(muster.Unavailable, "this process runs no checks").WithHint("muster resume")
}

// SetLauncher sets what starts the checks of landings. It may be set again, for the next run of this process.
func (w *Workspace) SetLauncher(l proc.Launcher) { w.launcher.Store(&l) }

// branchRef returns the ref of a branch.
func branchRef(branch string) string { return "refs/heads/" + branch }

// HasState reports whether a team or a board is here.
func (w *Workspace) HasState() bool { return hasState(w.Paths()) }

// HasLanes reports whether a lane was ever made here. Where none was, nobody needs to ask git.
func (w *Workspace) HasLanes() bool { return exists(w.Paths().Index()) }

// hasState reports whether a team or a board is in a directory.
func hasState(d paths.Dir) bool { return exists(d.Team()) || exists(d.Tasks()) }

// exists reports whether something is at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
