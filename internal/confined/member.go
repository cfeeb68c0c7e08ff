package confined

import (
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
	// locks has a lock for each lane, which whoever changes what its git sees holds.
	locks sync.Map
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
	return m.place.start(ctx, m.Launcher, s, rules, m.network, after)
}

// rules returns what a command may touch, and what is done when it has ended; nil is nothing.
func (m *Members) rules(ctx context.Context, s proc.Spec) (r sandbox.Rules, after func(io.Writer) error, err error) {
	r = append(slices.Clone(m.always), temporary(s.Env)...)
	lane, ok := worktree.At(ctx, m.place.Lanes, s.Dir)
	if !ok {
		return append(r, sandbox.Rule{Path: s.Dir, MustExist: true}), nil, nil
	}
	r = append(r, sandbox.Rule{Path: lane.Path, Access: sandbox.Write, MustExist: true})
	if !m.place.Method.HasNamespaces() {
		after, err = m.keepLink(lane)
		return r, after, err
	}
	private, err := m.prepare(ctx, lane)
	if err != nil {
		return nil, nil, err
	}
	// The end of the member is no reason to lose what its command has committed.
	late := context.WithoutCancel(ctx)
	after = func(out io.Writer) error { return explain(m.takeOver(late, private), out) }
	return append(r, m.gitRules(lane, private)...), after, nil
}

// keepLink returns what lets the .git file of a lane lead to the repository after a command. Without namespaces the
// command can write it, as all in the lane, and git only reads: the user's git, not muster's, would follow it.
func (m *Members) keepLink(lane muster.Lane) (after func(io.Writer) error, err error) {
	keep := func() (bool, error) { return git.ReplaceLink(m.place.Repo.CommonDir(), lane.Path) }
	_, err = keep() // a process that was killed has left what its last command wrote
	return func(out io.Writer) error {
		replaced, err := keep()
		if replaced {
			_, _ = io.WriteString(out, "[.git of the lane was changed, and leads to the repository again]\n")
		}
		return err
	}, err
}

// gitRules returns the rules for the git of a lane, which writes to a place of its own.
func (m *Members) gitRules(lane muster.Lane, private *git.Private) sandbox.Rules {
	common := m.place.Repo.CommonDir()
	r := sandbox.Rules{{Path: filepath.Join(lane.Path, ".git"), MustExist: true},
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

// lock locks what the git of a lane sees and writes, and returns what unlocks it: commands in the background end, and
// others start, at any time.
func (m *Members) lock(private *git.Private) (unlock func()) {
	lock, _ := m.locks.LoadOrStore(private.Dir, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	return lock.(*sync.Mutex).Unlock
}

// prepare lets the next command in a lane see the repository as it is now.
func (m *Members) prepare(ctx context.Context, lane muster.Lane) (*git.Private, error) {
	private, err := git.OpenPrivate(m.place.Repo, lane.Path, "refs/heads/"+lane.Branch)
	if err != nil {
		return nil, err
	}
	defer m.lock(private)()
	// A process that was killed has left what its last command wrote. Where that cannot be taken over, the command was
	// told so.
	if err := private.TakeOver(ctx); err != nil && !errors.Is(err, muster.ErrInvalid) {
		return nil, err
	}
	return private, private.Prepare()
}

// takeOver brings what the git of a lane has written to the repository.
func (m *Members) takeOver(ctx context.Context, private *git.Private) error {
	defer m.lock(private)()
	return private.TakeOver(ctx)
}
