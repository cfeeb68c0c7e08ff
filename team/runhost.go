package team

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"

	"muster"
	"muster/internal/board"
	"muster/internal/mcp"
	"muster/internal/memory"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/setup"
	"muster/internal/teammate"
	"muster/internal/workspace"
)

// runHost is this runHost's part in a run, which it leads or has joined.
type runHost struct {
	*site
	teammate.Services // what the members of this process share; Launcher is set by host
	team              *Team
	spending          spending       // opened by host
	notes             sync.Map       // those about roles that were said
	isNew             bool           // the run begins
	mcp               *mcp.Pool      // nil: there are no servers
	sandbox           sandbox.Method // nil: commands are not confined
}

// open opens what a run works with.
func (t *Team) open(ctx context.Context, last muster.Run) (*runHost, error) {
	if err := t.checkModel(); err != nil {
		return nil, err
	}
	s, err := t.openSite(ctx, last)
	if err != nil {
		return nil, err
	}
	w, c := s.workspace, s.config
	p := &runHost{site: s, team: t, isNew: last.Target == ""}
	p.spending.runHost = p
	p.Services = teammate.Services{Team: c.Name, Home: w.Paths(), Store: c.Store, Journal: w.Journal(),
		Board: w.Board(), Post: w.Mail(ctx), Roster: w.Roster(ctx), Requests: w.Requests(ctx), Lanes: s.lanes,
		Lander: s.lander, Environ: s.environ, Secrets: s.secrets,
		Run: w.Runs().Get, Spawned: func() { wake(t.wake) },
		CheckModel: p.checkMemberModel, Patient: c.Limits.IdleTimeout < 0, Log: s.log,
		GitState:    func(ctx context.Context) string { return describeCheckout(ctx, s.repository) },
		LandedFiles: s.repository.LandedFiles}
	p.Skills, p.Roles, p.Hooks = c.skills(w.Paths()), c.roleFiles(w.Paths()), s.hooks
	p.ReadyLane = readyLane(p, s.setups)
	p.Memory = remembered(ctx, p, w)
	p.Talk = c.Conversation.listen(p.Post, c.Store.Leases())
	p.Permissions, p.Granted, err = findPermissions(t)
	return p, err
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
	if t.site.config.Model == nil {
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
	if p.Launcher, removeTemporaryDir, err = p.setLaunchers(uncancelled, launcher, p.sandbox); err != nil {
		return err
	}
	return withMCP(ctx, p, launcher, func() error { return work(ctx, newSupervisor(p, host.ID())) })
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

// findSandbox looks for what confines commands, where the settings want it. That is before anything is written: a run
// that cannot be confined does not begin.
func findSandbox(ctx context.Context, p *runHost) (err error) {
	if p.config.Sandbox.On && p.sandbox == nil {
		p.sandbox, err = sandbox.Find(ctx, p.config.wholeEnviron(), p.repository.Root())
	}
	p.CommandLimits = p.config.Sandbox.limitsBy(p.sandbox)
	return err
}

// readyLane returns what puts the kept result of the set-up into a fresh lane, and says to the member how that stands;
// nil: there is no set-up.
func readyLane(p *runHost, setups *setup.Store) func(context.Context, muster.Lane) string {
	c := p.config
	if c.Setup == "" || setups == nil {
		return nil
	}
	// What is left out is the same in all lanes, so people are told once.
	var told sync.Once
	return func(ctx context.Context, lane muster.Lane) string {
		s, err := setups.Ready(ctx, setup.Job{Dir: lane.Path, Commit: lane.Base, Command: c.Setup,
			Patterns: c.SetupFiles, Environ: p.Environ, Launch: p.workspace.Launcher})
		logDropped(ctx, p.Log, "setting a lane up", err)
		if len(s.Left) > 0 {
			told.Do(func() {
				p.note(ctx, "", fmt.Sprintf("the set-up makes %s, which git does not ignore: it is not put into lanes",
					strings.Join(s.Left[:min(len(s.Left), 3)], ", ")))
			})
		}
		switch {
		case s.IsReady:
			return "Set up already, by: " + c.Setup
		case s.IsUsed:
			return ""
		}
		return "Not set up yet. If you need it, run: " + c.Setup
	}
}
