package confined

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"sync"

	"muster"
	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/text"
	"muster/internal/worktree"
)

// Members is a launcher for the commands of members. What they may write depends on where they run: a lane, or a
// checkout of a member without a task, which stays as it is.
type Members struct {
	proc.Launcher
	place         *Place
	network       *Network
	hasNamespaces bool          // a command can be shown a file that others do not see
	always        sandbox.Rules // of every command
	cache         string        // where the caches of all members' commands are; "" is nowhere
	trees         sync.Map      // commands, by the directory of a place
}

// NewMembers returns a launcher that starts what l starts, confined by the method of p, if it has one. The error is
// Unavailable where directories cannot be made.
func NewMembers(l proc.Launcher, p *Place, n *Network) (*Members, error) {
	m := &Members{Launcher: l, place: p, network: n}
	if p.Method == nil { // nothing confines, and only git works in a place of its own
		return m, nil
	}
	m.hasNamespaces = p.Method.HasNamespaces
	// Where the repository is the home directory itself, its files are the user's own.
	root := p.Repo.Root()
	if rel, err := filepath.Rel(root, p.Home); p.Home != "" && err == nil && filepath.IsLocal(rel) {
		root = ""
	}
	hidden, err := p.hidden()
	if err != nil {
		return nil, err
	}
	m.cache, err = p.cache()
	settings, settingsErr := p.settings()
	m.always = slices.Concat(p.toolchains(), settings, sandbox.Read.Rules(root), hidden,
		sandbox.Read.Rules(p.Repo.Borrowed()...),
		sandbox.Read.Rules(filepath.Join(p.State.Team(), "githooks")), // of the agents' git
		p.besides(), sandbox.Write.Rules(m.cache), modules(p.Environ, p.Home, m.cache))
	return m, cmp.Or(err, settingsErr)
}

// Start starts a command. When it has ended, what its git has committed in a lane is the repository's.
func (m *Members) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	var rules sandbox.Rules
	if m.place.Method != nil {
		var err error
		if rules, err = m.place.gitDir(m.place.Repo.CommonDir()); err != nil {
			return nil, err
		}
		rules = slices.Concat(rules, m.always, temporary(s.Env))
	}
	name := "" // what people call the command
	if n := len(s.Argv); n > 0 {
		name = text.CutBytes(text.OneLine(s.Argv[n-1]), 60)
	}
	end, err := m.place.Lanes.BeginCommand(ctx, s.Dir, name)
	if err != nil {
		return nil, err
	}
	p, err := m.startIn(ctx, s, rules)
	if err != nil {
		end()
		return nil, err
	}
	return proc.Then(p, func(exit int, err error) (int, error) { end(); return exit, err }), nil
}

// startIn starts a command in the working tree that it has begun to use.
func (m *Members) startIn(ctx context.Context, s proc.Spec, rules sandbox.Rules) (proc.Process, error) {
	if m.cache != "" {
		s.Env = withCaches(s.Env, m.cache, m.place.Home)
	}
	place, isLane, err := worktree.PlaceAt(ctx, m.place.Lanes, s.Dir)
	if err != nil {
		return nil, err
	}
	if place == nil {
		s = m.place.withSettings(s, s.Dir)
		rules = append(rules, sandbox.Rule{Path: s.Dir, MustExist: true})
		return m.place.start(ctx, m.Launcher, s, rules, m.network)
	}
	s = m.place.withSettings(s, place.Tree)
	enter := sync.OnceValue(func() error { return m.enter(ctx, place) })
	launcher := m.Launcher
	if !m.hasNamespaces { // it takes as long as to make a ruleset
		go func() { _ = enter() }()
		launcher = proc.Through(m.Launcher, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
			if err := enter(); err != nil {
				return nil, err
			}
			return m.Launcher.Start(ctx, s)
		})
	} else if err := enter(); err != nil {
		return nil, err
	}
	tree := sandbox.Read // a scratch checkout stays as it is
	if isLane {
		tree = sandbox.Write
	}
	rules = append(rules, sandbox.Rules{{Path: place.Tree, Access: tree, MustExist: true},
		{Path: place.Dir, MustExist: true}, {Path: place.GitDir(), Access: sandbox.Write, MustExist: true},
		{Path: filepath.Join(place.Tree, ".git"), From: place.Link(), MustExist: true}}...)
	p, err := m.place.start(ctx, launcher, s, rules, m.network)
	// The end of the member is no reason to lose what its command has committed.
	late := context.WithoutCancel(ctx)
	if err != nil {
		if enter() == nil {
			_ = m.leave(late, place, io.Discard) // it has not run, so there is nothing to lose
		}
		return nil, err
	}
	return proc.Then(p, func(exit int, err error) (int, error) {
		return exit, cmp.Or(err, m.leave(late, place, outOf(s)))
	}), nil
}

// commands are the commands in one working tree: some end in the background, and others start, at any time.
type commands struct {
	sync.Mutex // held while what their git sees is changed
	running    int
	disconnect func() (changed bool, err error) // where .git of the working tree leads to their git directory
}

// lock locks what the git of a working tree sees, and returns the commands there.
func (m *Members) lock(p *git.Place) *commands {
	c, _ := m.trees.LoadOrStore(p.Dir, new(commands))
	c.(*commands).Lock()
	return c.(*commands)
}

// enter lets the next command in a working tree see the repository as it is now. leave must follow.
func (m *Members) enter(ctx context.Context, p *git.Place) error {
	c := m.lock(p)
	defer c.Unlock()
	// A process that was killed has left what its last command wrote. Where that cannot be taken over, the command was
	// told so.
	if err := p.TakeBranch(ctx); err != nil && !errors.Is(err, muster.ErrInvalid) {
		return err
	}
	err := p.Refresh()
	if err == nil && c.running == 0 && !m.hasNamespaces {
		c.disconnect, err = p.Connect()
	}
	if err == nil {
		c.running++
	}
	return err
}

// leave brings what commands have committed in a working tree to the repository, when one has ended. What keeps it from
// that and the command's owner can mend is written to out, and is no error.
func (m *Members) leave(ctx context.Context, p *git.Place, out io.Writer) error {
	c := m.lock(p)
	defer c.Unlock()
	err := p.TakeBranch(ctx)
	if c.running--; c.running == 0 && !m.hasNamespaces {
		changed, linkErr := c.disconnect()
		if changed {
			_, _ = io.WriteString(out, "[.git of the lane was changed, and leads to the repository again]\n")
		}
		err = cmp.Or(err, linkErr)
	}
	if errors.Is(err, muster.ErrInvalid) {
		_, _ = fmt.Fprintf(out, "[%s: %s]\n", err, muster.HintOf(err))
		return nil
	}
	return err
}
