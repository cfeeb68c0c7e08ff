package team

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/hooks"
	"muster/internal/landing"
	"muster/internal/mcp"
	"muster/internal/memory"
	"muster/internal/paths"
	"muster/internal/ports"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/setup"
	"muster/internal/teammate"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/journal"
)

// runHost is this runHost's part in a run, which it leads or has joined.
type runHost struct {
	teammate.Services // what the members of this process share; Launcher is set by host
	team              *Team
	config            Config // the team's, with the name, the check and the setup of the run
	branch            string // the target, without refs/heads/
	into              string // the user's branch that is moved forward to the target at the end; "": none
	workspace         *workspace.Workspace
	spending          spending // opened by host
	repository        repository
	notes             sync.Map       // those about roles that were said
	isNew             bool           // the run begins
	mcp               *mcp.Pool      // nil: there are no servers
	sandbox           sandbox.Method // nil: commands are not confined
}

// open opens what a run works with. The name and the target of last hold, and its check and setup where the
// configuration has none. The zero Run stands for a run that begins.
func (t *Team) open(ctx context.Context, last muster.Run) (*runHost, error) {
	if err := t.checkModel(); err != nil {
		return nil, err
	}
	return openServices(ctx, t, last)
}

// openServices is open where no model is asked: for a landing without a member, such as one that takes tasks back.
func openServices(ctx context.Context, t *Team, last muster.Run) (*runHost, error) {
	p := &runHost{team: t, config: t.config, branch: cmp.Or(last.Target, t.branch), repository: t.repository}
	p.spending.runHost = p
	// Only tests have another repository than the one of the workspace.
	if p.repository == nil {
		repo, err := t.opened.Repo(ctx)
		if err != nil {
			return nil, err
		}
		p.repository = gitRepository{repo, &firstCheckout{}}
	}
	if err := chooseTarget(ctx, p, last); err != nil {
		return nil, err
	}
	// The record of the run is a claim: work lands on no branch that only the record names.
	if last.Target != "" {
		name := cmp.Or(last.Team, t.config.Name)
		if err := workspace.ConfirmTarget(ctx, t.opened, name, last.Target, t.config.Land); err != nil {
			return nil, err
		}
	}
	// The name belongs to the state that is there already; check and setup may be mended by whoever goes on.
	c := &p.config
	c.Name, c.Setup = cmp.Or(last.Team, c.Name), cmp.Or(c.Setup, last.Setup)
	if c.Check == "" {
		c.Check, c.Checks = last.Check, last.Checks
	}
	c.Review, c.Budgets.Team = cmp.Or(c.Review, last.Review), cmp.Or(c.Budgets.Team, last.Budget)
	runner, errHooks := hookRunner(t, p.repository.Root())
	if err := cmp.Or(p.spending.check(), errHooks, checkReviewer(c, paths.Dir(p.repository.Root()))); err != nil {
		return nil, err
	}
	environ, setups := c.environ(), setupStore(t, p.repository)
	w, lanes, lander, err := p.repository.OpenServices(ctx, workspace.Options{
		Store: c.Store, Name: c.Name, Target: p.branch, WorktreesDir: c.WorktreesDir, Log: t.log,
		Ports: ports.Open(c.CacheDir), PortCount: c.Ports,
		Secrets: t.secrets, Registry: workspace.RegistryOf(t.opened),
		Landing: landingOptions(t, *c, environ, runner, setups),
	})
	if err != nil {
		return nil, err
	}
	// From here on the team's other methods use these services too: a second board in this process would have a graph
	// of its own, and a second lander would not see the landings that are under way.
	t.running.Store(w)
	p.workspace, p.isNew = w, last.Target == ""
	p.Services = teammate.Services{Team: c.Name, Home: w.Paths(), Store: c.Store, Journal: w.Journal(),
		Board: w.Board(), Post: w.Mail(ctx), Roster: w.Roster(ctx), Requests: w.Requests(ctx), Lanes: lanes,
		Lander: lander, Environ: environ, Secrets: t.secrets,
		Run: w.Runs().Get, Spawned: func() { wake(t.wake) },
		CheckModel: p.checkMemberModel, Patient: c.Limits.IdleTimeout < 0, Log: t.log,
		GitState:    func(ctx context.Context) string { return describeCheckout(ctx, p.repository) },
		LandedFiles: p.repository.LandedFiles}
	p.Skills, p.Roles, p.Hooks = c.skills(w.Paths()), c.roleFiles(w.Paths()), runner
	p.ReadyLane = readyLane(p, setups)
	p.Memory = remembered(ctx, p, w)
	p.Talk = c.Conversation.listen(p.Post, c.Store.Leases())
	p.Permissions, p.Granted, err = findPermissions(t)
	return p, err
}

func landingOptions(
	t *Team, c Config, environ []string, runner *hooks.Runner, setups *setup.Store,
) landing.Options {
	return landing.Options{
		Environ: environ, Secrets: t.secrets, Cache: c.checksDir(),
		Check: landing.Check{Command: c.Check, Named: c.Checks, Setup: c.Setup, Timeout: c.Limits.CheckTimeout},
		Jobs:  cmp.Or(c.Jobs, landing.DefaultJobs()), MergeCommits: c.MergeCommits, Sign: c.Sign,
		LandSecrets: c.LandSecrets, Review: c.Review,
		Hook: landingHook(runner, c.Name), Setups: setups, SetupFiles: c.SetupFiles,
		Ports: ports.Open(c.CacheDir), PortCount: c.Ports,
		OnTest: func(id muster.TaskID, test string) {
			e := CheckEvent{Task: id, Test: t.secrets.String(test)}
			t.publish(e)
			if c.Emit != nil {
				c.Emit(muster.System, e)
			}
		},
	}
}

// remembered returns what returns what is remembered of the repository, and what the user has all teams know. Members
// ask at each call of a tool, so it looks once: when the first one asks, the repository has its mark.
func remembered(ctx context.Context, p *runHost, w *workspace.Workspace) func() (repository, user memory.Dir) {
	ctx = context.WithoutCancel(ctx)
	return sync.OnceValues(func() (repository, user memory.Dir) {
		repository, err := workspace.MemoryOf(w)
		logDropped(ctx, p.Log, "looking for what is remembered", err)
		return repository, workspace.UserMemory(w, p.config.UserDir)
	})
}

// checkModel refuses a run of a team that cannot ask a model.
func (t *Team) checkModel() error {
	if t.config.Model == nil {
		return muster.Errorf(muster.Invalid, "a run needs a model").
			WithHint("set Config.Model: llm/anthropic.New or llm/openai.New")
	}
	return nil
}

// host makes this process one of the team's, calls prepare, and then work with a supervisor. Only prepare may run
// before the launcher is ready: it writes the records by which members live. The process stops being one when host
// returns.
func (p *runHost) host(
	ctx context.Context, about string, prepare func(context.Context, muster.HostID) error,
	work func(context.Context, *supervisor) error,
) error {
	ctx, leave := p.cancelIfRepoMoves(ctx)
	defer leave()
	host, err := p.Roster.Join(ctx, about)
	if err != nil {
		return err
	}
	defer func() { logDropped(ctx, p.Log, "releasing the lease", host.Release()) }()
	defer p.removeLeftovers(ctx)()
	// The launcher starts beside the records, because a process of its own (the guard) takes as long as they do. It
	// outlives a cancelled ctx: members that are cancelled still end their commands with it.
	uncancelled := context.WithoutCancel(ctx)
	launched := inBackground(func() (proc.Launcher, error) { return p.team.launch(uncancelled) })
	removeTemporaryDir := func() {}
	defer func() {
		p.team.helper.set(nil)
		if l, err := launched(); err == nil {
			closeErr := l.Close()
			logDropped(uncancelled, p.Log, "closing the launcher", closeErr)
			if closeErr == nil { // else the next command looks for what is left
				logDropped(uncancelled, p.Log, "noting the end of the tools", host.SetEnded(uncancelled))
			}
		}
		removeTemporaryDir() // nothing that could write there runs any more
	}()
	if err := findSandbox(ctx, p); err != nil {
		return err
	}
	if err := prepare(ctx, host.ID()); err != nil {
		return err
	}
	if err := p.spending.open(ctx, host.ID()); err != nil {
		return err
	}
	defer p.spending.meter.Close()
	// After prepare, which may have written git's exclude file, and before any tool runs.
	if watch := newPhaseWatch(p, host.ID()); watch != nil {
		p.Phases = watch
		watch.start(ctx)
	}
	p.Collisions = newCollisions(p, host.ID())
	launcher, err := launched()
	if err != nil {
		return err
	}
	if removeTemporaryDir, err = p.setLaunchers(uncancelled, launcher); err != nil {
		return err
	}
	return withMCP(ctx, p, launcher, func() error { return work(ctx, newSupervisor(p, host.ID())) })
}

// setLaunchers sets how checks, hooks and the commands of members start. All are logged, and what they print has no
// keys. A hook and a member's command have a temporary directory of its lane or of this process, and the function that
// it returns removes the latter; a check has one of its own. A member's command is confined where the settings say so,
// and its git has hooks.
func (p *runHost) setLaunchers(ctx context.Context, launcher proc.Launcher) (removeDirs func(), err error) {
	logged := loggedLauncher{p.config.Resources.limit(launcher), p.Log, p.team.secrets}
	tools, checks, err := confine(ctx, p, logged)
	if err != nil {
		return func() {}, err
	}
	p.workspace.SetLauncher(checks)
	forHooks, removeHooksDir := withTemporaryDir(ctx, p, logged)
	tools, removeToolsDir := withTemporaryDir(ctx, p, tools)
	foreign := forHooks
	if !p.config.Sandbox.OpenHooks {
		foreign = tools
	}
	p.Hooks.Start(forHooks, foreign, p.Journal)
	p.Launcher = hookAgents(ctx, p, tools)
	return func() {
		removeHooksDir()
		removeToolsDir()
	}, nil
}

// withTemporaryDir returns the launcher whose programs have a temporary directory, and the function that removes it.
func withTemporaryDir(ctx context.Context, p *runHost, l proc.Launcher) (_ proc.Launcher, removeDir func()) {
	lanes, ok := p.Lanes.(*worktree.Lanes)
	if !ok {
		return l, func() {}
	}
	t := &temporaryLauncher{Launcher: l, lanes: lanes,
		warn: func(err error) { logDropped(ctx, p.Log, "making a temporary directory", err) }}
	return t, t.removeDir
}

// removeLeftovers ends the tools of dead processes, and begins to remove what killed processes left half written. That
// goes on beside everything else; the function that it returns waits for it.
func (p *runHost) removeLeftovers(ctx context.Context) (wait func()) {
	_, err := p.Roster.EndTools(ctx)
	logDropped(ctx, p.Log, "ending the tools of dead processes", err)
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		_, err := workspace.RemoveTemporaries(p.workspace.Paths())
		logDropped(ctx, p.Log, "removing temporary files", err)
	})
	return sweeping.Wait
}

// inBackground begins to call f at once. The function that it returns waits for the result.
func inBackground[T any](f func() (T, error)) func() (T, error) {
	f = sync.OnceValues(f)
	go func() { _, _ = f() }() // whoever waits gets the error
	return f
}

// cancelIfRepoMoves ends ctx when the repository's directory is moved away or replaced: whatever is written there
// belongs to nothing.
func (p *runHost) cancelIfRepoMoves(ctx context.Context) (context.Context, func()) {
	root := p.repository.Root()
	// The identity of the directory counts and not its name: another directory may have taken the name.
	here, err := os.Stat(root)
	if err != nil {
		return ctx, func() {} // a repository without a directory
	}
	ctx, stop := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for wait(ctx, p.config.Limits.IdlePoll) {
			if now, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(here, now) {
				stop(muster.Errorf(muster.Unavailable,
					"the repository is no longer at %s: it was moved or removed while the team worked", root).
					WithHint("move it back, then: muster resume"))
			}
		}
	})
	return ctx, func() { stop(nil); looking.Wait() }
}

func (p *runHost) target() string { return "refs/heads/" + p.branch }

// runEffects settles what steps have left to follow. What cannot be done now is said and left for the next time: news
// that is late, or a lane that is not archived, is no reason to stop a team.
func (p *runHost) runEffects(ctx context.Context) error {
	err := p.Board.Settle(ctx)
	if err == nil || !board.OnlyUnsettled(err) {
		return err
	}
	logDropped(ctx, p.Log, "settling what steps have left", err)
	p.note(ctx, "", "left for later: "+muster.PlainText(err))
	return nil
}

// note tells the user something about the run, or about a member; "" is none.
func (p *runHost) note(ctx context.Context, member muster.Name, text string) {
	p.emit(ctx, journal.RunNote, member, map[string]any{"text": text})
}

// emit writes an event to the journal. A journal that cannot be written stops nobody, because nothing depends on it:
// the event then goes to those who listen in this process.
func (p *runHost) emit(ctx context.Context, kind string, member muster.Name, fields map[string]any) {
	e := muster.Event{Kind: kind, Member: member, Fields: fields, At: muster.UnixTime(time.Now())}
	// An event tells what has been done already, so it is written also when ctx has ended.
	if p.Journal.Emit(context.WithoutCancel(ctx), e) == nil {
		return
	}
	p.team.publish(StateEvent{journal.Entry{Event: e}})
	if p.config.Emit != nil {
		p.config.Emit(member, e)
	}
}
