package confined

import (
	"context"
	"path/filepath"
	"slices"

	"muster/internal/check"
	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/worktree"
)

// Checks is a launcher for checks: each runs what members have written. A check writes in its checkout and in the
// caches of checks, and reads neither the user's checkout nor a lane.
type Checks struct {
	proc.Launcher
	*Own           // starts what works where a check or a set-up has run
	always         sandbox.Rules
	network, setup *Network
}

// NewChecks returns a launcher that starts what l starts, confined. A set-up reaches the hosts of setup, and a check
// those of network. The error is Unavailable where files cannot be made.
func NewChecks(l proc.Launcher, p *Place, network, setup *Network) (*Checks, error) {
	settings, err := p.settings()
	always := slices.Concat(p.toolchains(), settings, sandbox.Empty.Rules(p.Repo.Root(), worktree.Home(p.Lanes)),
		sandbox.Read.Rules(p.Repo.Borrowed()...), p.besides())
	return &Checks{l, NewOwn(l, p), always, network, setup}, err
}

// ForSetup returns the launcher for the set-up.
func (c *Checks) ForSetup() proc.Launcher {
	return &Checks{c.Launcher, c.Own, c.always, c.setup, c.setup}
}

// Open returns a launcher that starts checks and set-ups with the user's rights, and confines only what works there
// afterwards.
func (c *Checks) Open() proc.Launcher {
	return &struct {
		proc.Launcher
		*Own
	}{c.Launcher, c.Own}
}

// Start starts a check, or a set-up, in the checkout that was made for it. What they leave there goes before the next
// one, and what they leave in the caches is for checks of this repository only: neither reaches what the user runs. The
// list of files and the index by which a slot is put in order lie beside its directory, where a check cannot write.
func (c *Checks) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	own, cache := check.Writable(s)
	// The checkout borrows the repository's objects, and its git reads the settings.
	rules, err := c.place.gitDir(c.place.Repo.CommonDir())
	if err != nil {
		return nil, err
	}
	rules = slices.Concat(rules, c.always, temporary(s.Env),
		sandbox.Rules{{Path: own, Access: sandbox.Write, MustExist: true}})
	if filepath.IsAbs(cache) {
		// The build cache of Go that checks have otherwise is one for all repositories.
		s.Env = withModules(proc.WithVariables(s.Env, "GOCACHE="+filepath.Join(cache, "go-build")), cache, c.place.Home)
		rules = append(rules, sandbox.Rule{Path: cache, Access: sandbox.Write, MustExist: true})
		rules = append(rules, modules(c.place.Environ, c.place.Home, cache)...)
	}
	return c.place.start(ctx, c.Launcher, c.place.withSettings(s, own), rules, c.network)
}
