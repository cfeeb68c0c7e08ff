package confined

import (
	"cmp"
	"context"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"muster"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/worktree"
)

// Members is a launcher for the commands of members. What they may write depends on where they run: a lane, or a
// checkout of a member without a task, which stays as it is.
type Members struct {
	proc.Launcher
	place   Place
	network *Network
	always  sandbox.Rules // of every command
	cache   string        // where the caches of all members' commands are; "" is nowhere
	lanes   sync.Map      // a laneCommands for each lane that was worked in
}

// NewMembers returns a launcher that starts what l starts, confined. The error is Unavailable where directories
// cannot be made.
func NewMembers(l proc.Launcher, p Place, n *Network) (*Members, error) {
	m := &Members{Launcher: l, place: p, network: n, always: p.toolchains()}
	// Where the repository is the home directory itself, its files are the user's own.
	root, common := p.Repo.Root(), p.Repo.CommonDir()
	if rel, err := filepath.Rel(root, p.Home); p.Home == "" || err != nil || !filepath.IsLocal(rel) {
		m.always = append(m.always, sandbox.Rule{Path: root})
	}
	hidden, err := p.hidden()
	if err != nil {
		return nil, err
	}
	m.always = append(append(m.always, sandbox.Rule{Path: common}), hidden...)
	// The hooks of the agents' git, and where the objects are that a lane's own place stands before.
	m.always = append(m.always, sandbox.Rule{Path: filepath.Join(p.State.Team(), "githooks")},
		sandbox.Rule{Path: git.PrivateObjects, From: filepath.Join(common, "objects")})
	m.always = append(m.always, p.besides()...)
	if m.cache, err = p.cache(); m.cache != "" {
		m.always = append(m.always, sandbox.Rule{Path: m.cache, Access: sandbox.Write})
		m.always = append(m.always, modules(p.Environ, p.Home, m.cache)...)
	}
	return m, err
}

// Start starts a command. When it has ended, what its git has written in a lane is the repository's.
func (m *Members) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	rules, after, err := m.rules(ctx, s)
	if err != nil {
		return nil, err
	}
	if s.Env = withoutSession(s.Env); m.cache != "" {
		s.Env = withCaches(s.Env, m.cache, m.place.Home)
	}
	p, err := m.place.start(ctx, m.Launcher, s, rules, m.network, after)
	if err != nil && after != nil {
		_ = after(io.Discard) // it has not run, so there is nothing to lose
	}
	return p, err
}

// rules returns what a command may touch, and what is done when it has ended; nil is nothing.
func (m *Members) rules(ctx context.Context, s proc.Spec) (r sandbox.Rules, after func(io.Writer) error, err error) {
	r = append(slices.Clone(m.always), temporary(s.Env)...)
	lane, ok := worktree.At(ctx, m.place.Lanes, s.Dir)
	if !ok {
		return append(r, sandbox.Rule{Path: s.Dir, MustExist: true}), nil, nil
	}
	r = append(r, sandbox.Rule{Path: lane.Path, Access: sandbox.Write, MustExist: true})
	private, err := m.prepare(ctx, lane)
	if err != nil {
		return nil, nil, err
	}
	// The end of the member is no reason to lose what its command has committed.
	late := context.WithoutCancel(ctx)
	after = func(out io.Writer) error { return explain(m.takeOver(late, private, out), out) }
	return append(r, m.gitRules(lane, private)...), after, nil
}

// gitRules returns the rules for the git of a lane, which writes to a place of its own.
func (m *Members) gitRules(lane muster.Lane, private *git.Private) (r sandbox.Rules) {
	common := m.place.Repo.CommonDir()
	if !m.place.Method.HasNamespaces() {
		for _, name := range []string{"objects", "refs", "logs"} {
			r = append(r, sandbox.Rule{Path: filepath.Join(private.Dir, name), Access: sandbox.Write, MustExist: true})
		}
		return append(r, sandbox.Rule{Path: private.GitDir(), Access: sandbox.Write, MustExist: true})
	}
	r = sandbox.Rules{{Path: filepath.Join(lane.Path, ".git"), MustExist: true},
		{Path: private.Admin, Access: sandbox.Write, MustExist: true}}
	// The lane's own index, HEAD and messages lie in the same directory, and git replaces them while it works.
	// Whoever could write these would choose where the runtime's git looks and what it runs.
	for _, name := range []string{"commondir", "gitdir", "config.worktree"} {
		r = append(r, sandbox.Rule{Path: filepath.Join(private.Admin, name)})
	}
	for _, name := range []string{"objects", "refs", "logs"} {
		r = append(r, sandbox.Rule{Path: filepath.Join(common, name), From: filepath.Join(private.Dir, name),
			Access: sandbox.Write, MustExist: true})
	}
	// This file names more places with objects.
	return append(r, sandbox.Rule{Path: filepath.Join(common, "objects", "info"),
		From: filepath.Join(private.Dir, "objects", "info"), MustExist: true})
}

// laneCommands are the commands in one lane: some end in the background, and others start, at any time.
type laneCommands struct {
	sync.Mutex // held while what the lane's git sees is changed
	running    int
}

// lock locks what the git of a lane sees, and returns the commands there.
func (m *Members) lock(private *git.Private) *laneCommands {
	c, _ := m.lanes.LoadOrStore(private.Dir, new(laneCommands))
	c.(*laneCommands).Lock()
	return c.(*laneCommands)
}

// prepare lets the next command in a lane see the repository as it is now. takeOver must follow.
func (m *Members) prepare(ctx context.Context, lane muster.Lane) (*git.Private, error) {
	isMounted := m.place.Method.HasNamespaces()
	private, err := git.OpenPrivate(m.place.Repo, lane.Path, "refs/heads/"+lane.Branch, isMounted)
	if err != nil {
		return nil, err
	}
	commands := m.lock(private)
	defer commands.Unlock()
	// A process that was killed has left what its last command wrote. Where that cannot be taken over, the command was
	// told so.
	if err := private.TakeOver(ctx); err != nil && !errors.Is(err, muster.ErrInvalid) {
		return nil, err
	}
	if err := private.Prepare(); err != nil {
		return nil, err
	}
	if isMounted { // the process that was killed may have had no namespaces
		err = git.ReplaceLink(m.place.Repo.CommonDir(), lane.Path)
	} else {
		err = private.Connect()
	}
	if err == nil {
		commands.running++
	}
	return private, err
}

// takeOver brings what the git of a lane has written to the repository, when a command has ended.
func (m *Members) takeOver(ctx context.Context, private *git.Private, out io.Writer) error {
	commands := m.lock(private)
	defer commands.Unlock()
	err := private.TakeOver(ctx)
	if commands.running--; commands.running > 0 || m.place.Method.HasNamespaces() {
		return err
	}
	changed, linkErr := private.Disconnect()
	if changed {
		_, _ = io.WriteString(out, "[.git of the lane was changed, and leads to the repository again]\n")
	}
	return cmp.Or(err, linkErr)
}
