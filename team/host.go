package team

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"muster"
	"muster/internal/collision"
	"muster/internal/mcp"
	"muster/internal/proc"
	"muster/internal/teammate"
	"muster/internal/workspace"
	"muster/internal/worktree"
	"muster/llm"
)

// host is this process as one that runs members: what it starts them with, and its record among the hosts of the team.
// Of the run that it serves it knows the record only.
type host struct {
	site      *site
	shared    *shared
	spending  *spending
	members   *members
	finalizer *finalizer
	isNew     bool // the run begins
	// tend is called when the board has changed, until it returns true.
	tend func(context.Context) (isDone bool)
}

// shared is what the hosts of a process have in common, one after the other.
type shared struct {
	providers
	wake chan struct{}            // holds one token: the supervisor is to reconcile
	mcp  atomic.Pointer[mcp.Pool] // of the host that serves now; nil: it has no servers
}

// newHost returns this process as a host for what last is of: the zero Run for a run that begins.
func newHost(ctx context.Context, at *site, shared *shared, last muster.Run) (*host, error) {
	spending := &spending{site: at}
	models := &models{site: at, spending: spending, providers: &shared.providers}
	members, err := newMembers(ctx, at, models, shared.wake)
	return &host{site: at, shared: shared, spending: spending, members: members, finalizer: &finalizer{at},
		isNew: last.Target == ""}, err
}

// findSandbox looks for what confines commands, where the settings want it. That is before anything is written: a run
// that cannot be confined does not begin.
func (h *host) findSandbox(ctx context.Context) (err error) {
	if m := h.members; m.confinedBy == nil {
		m.confinedBy, err = h.site.config.findSandbox(ctx, h.site.repository.Root())
	}
	return err
}

// confinesChecks reports whether neither commands of members nor checks run with the user's rights.
func (h *host) confinesChecks() bool {
	return h.members.confinedBy != nil && !h.site.config.Sandbox.OpenChecks
}

func (h *host) rights() string { return h.site.config.Sandbox.rightsBy(h.members.confinedBy) }

// serve makes this process one of the team's, calls prepare, and then work with a supervisor. Only prepare may run
// before the launcher is ready: it writes the records by which members live. The process stops being one when serve
// returns.
func (h *host) serve(
	ctx context.Context, about string, prepare func(context.Context, muster.HostID) error,
	work func(context.Context, *supervisor) error,
) error {
	ctx, leave := h.cancelIfRepoMoves(ctx)
	defer leave()
	record, err := h.site.roster.Join(ctx, about)
	if err != nil {
		return err
	}
	id, log, m := record.ID(), h.site.log, h.members
	defer func() { logDropped(ctx, log, "releasing the lease", record.Release()) }()
	defer h.removeLeftovers(ctx)()
	// The launcher starts beside the records, because a process of its own (the guard) takes as long as they do. It
	// outlives a cancelled ctx: members that are cancelled still end their commands with it.
	uncancelled := context.WithoutCancel(ctx)
	launched := inBackground(func() (proc.Launcher, error) { return h.site.launch(uncancelled) })
	removeTemporaryDir := func() {}
	defer func() {
		h.site.helper.set(nil)
		h.site.hooks.End()
		if l, err := launched(); err == nil {
			closeErr := l.Close()
			logDropped(uncancelled, log, "closing the launcher", closeErr)
			if closeErr == nil { // else the next command looks for what is left
				logDropped(uncancelled, log, "noting the end of the tools", record.SetEnded(uncancelled))
			}
		}
		removeTemporaryDir() // nothing that could write there runs any more
	}()
	if err := h.findSandbox(ctx); err != nil {
		return err
	}
	if err := prepare(ctx, id); err != nil {
		return err
	}
	if err := h.spending.open(ctx, id); err != nil {
		return err
	}
	defer h.spending.meter.Close()
	// After prepare, which may have written git's exclude file, and before any tool runs.
	if m.phases = newPhaseWatch(m, id, h.confinesChecks()); m.phases != nil {
		m.phases.start(ctx)
		defer m.phases.release()
	}
	m.collisions = h.newCollisions(id)
	launcher, err := launched()
	if err != nil {
		return err
	}
	if m.launcher, removeTemporaryDir, err = h.site.setLaunchers(uncancelled, launcher, m.confinedBy); err != nil {
		return err
	}
	if err := h.tryCommand(ctx); err != nil {
		return err
	}
	return h.withMCP(ctx, launcher, func() error { return work(ctx, newSupervisor(h, id)) })
}

// tryCommand starts a command as a member would. Where none can start, members could land work that was never run.
func (h *host) tryCommand(ctx context.Context) error {
	if h.members.confinedBy == nil {
		return nil
	}
	_, err := runAsMember(ctx, h.members.launcher, h.site.repository.Root(), h.site.environ, "exit 0")
	return err
}

// lookLast looks at what no phase has ended with, and returns how the run ended, which knows what was found.
func (h *host) lookLast(ctx context.Context, end teammate.End) teammate.End {
	if h.members.phases == nil {
		return end
	}
	h.members.phases.close(ctx)
	return h.members.phases.verdict(end)
}

// newCollisions returns what finds out which lanes will conflict. It is nil where there is no repository, as in
// simulated teams.
func (h *host) newCollisions(id muster.HostID) *collision.Watcher {
	s := h.site
	r, isGit := s.repository.(gitRepository)
	lanes, hasLanes := s.lanes.(*worktree.Lanes)
	if !isGit || !hasLanes {
		return nil
	}
	return collision.New(collision.Options{Repo: r.Repo, Lanes: lanes, Board: s.board,
		Journal: s.journal, Target: s.target(), Root: r.Root(), Host: id, Log: s.log})
}

// removeLeftovers ends the tools of dead processes, and begins to remove what killed processes left half written. That
// goes on beside everything else; the function that it returns waits for it.
func (h *host) removeLeftovers(ctx context.Context) (wait func()) {
	_, err := h.site.roster.EndTools(ctx)
	logDropped(ctx, h.site.log, "ending the tools of dead processes", err)
	var sweeping sync.WaitGroup
	sweeping.Go(func() {
		_, err := workspace.RemoveTemporaries(h.site.workspace.Paths())
		logDropped(ctx, h.site.log, "removing temporary files", err)
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
func (h *host) cancelIfRepoMoves(ctx context.Context) (context.Context, func()) {
	root := h.site.repository.Root()
	// The identity of the directory counts and not its name: another directory may have taken the name.
	here, err := os.Stat(root)
	if err != nil {
		return ctx, func() {} // a repository without a directory
	}
	ctx, stop := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for wait(ctx, h.site.config.Limits.IdlePoll) {
			if now, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(here, now) {
				stop(muster.Errorf(muster.Unavailable,
					"the repository is no longer at %s: it was moved or removed while the team worked", root).
					WithHint("move it back, then: muster resume"))
			}
		}
	})
	return ctx, func() { stop(nil); looking.Wait() }
}

// mcpPatience is how long the beginning of a run waits for servers of which nothing is remembered.
const mcpPatience = 10 * time.Second

func (h *host) withMCP(ctx context.Context, launcher proc.Launcher, work func() error) error {
	at := h.site
	servers := at.config.mcpServers()
	if len(servers) == 0 {
		return work()
	}
	// Not the launcher of members' commands: what goes through that is changed on its way, to hide secrets.
	pool := mcp.New(ctx, mcp.Options{Launcher: launcher, Env: at.environ, Dir: at.repository.Root(),
		Cache: at.config.MCPCache, Secrets: at.secrets, Log: at.log,
		Tell: func(line string) { at.note(ctx, "", line) }}, servers)
	defer pool.Close()
	pool.Prepare(ctx, mcpPatience, h.isNew)
	h.members.mcp = pool
	h.shared.mcp.Store(pool)
	defer h.shared.mcp.Store(nil)
	return work()
}

// serverTools returns what offers the tools of MCP servers to a member; p may be nil.
func serverTools(p *mcp.Pool, noImages bool) func(allows func(tool string, writes bool) bool) []llm.Tool {
	if p == nil {
		return nil
	}
	return func(allows func(tool string, writes bool) bool) []llm.Tool {
		return foreignTools(p.Tools(noImages, allows))
	}
}
