package confined

import (
	"context"
	"path/filepath"

	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/sandbox"
)

// Git starts git for the runtime where members write. Each git has a sandbox of its own, in which no command of a
// member runs: it reads the system, the toolchains and the repository's objects, and writes what its caller names.
type Git struct {
	launcher proc.Launcher
	place    Place
	always   sandbox.Rules
	limits   proc.Limits
}

// helperMemory is how much memory git may use in a place: much more than it needs for an object of the largest size.
const helperMemory = 2 << 30

// NewGit returns what starts git for the repository of p, confined by its method.
func NewGit(l proc.Launcher, p Place) *Git {
	return &Git{launcher: l, place: p, always: append(p.toolchains(), repositoryRules(p.Repo)...),
		limits: proc.Limits{Memory: helperMemory}}
}

// repositoryRules returns the rules by which a program reads a repository: not its settings, where passwords may be,
// nor the keys of git-crypt, nor what other lanes have.
func repositoryRules(repo *git.Repo) sandbox.Rules {
	common := repo.CommonDir()
	at := func(name string) string { return filepath.Join(common, name) }
	r := sandbox.Rules{{Path: common}, {Path: at("config"), Access: sandbox.Masked},
		{Path: at("config.worktree"), Access: sandbox.Masked}, {Path: at("git-crypt"), Access: sandbox.Empty},
		{Path: at("worktrees"), Access: sandbox.Empty}, {Path: at("muster"), Access: sandbox.Empty}}
	for _, dir := range repo.Borrowed() {
		r = append(r, sandbox.Rule{Path: dir})
	}
	return r
}

// Start starts a git.
func (g *Git) Start(ctx context.Context, s proc.Spec, write, read []string) (proc.Process, error) {
	rules := append(sandbox.Rules(nil), g.always...)
	for _, path := range read {
		rules = append(rules, sandbox.Rule{Path: path})
	}
	for _, path := range write {
		rules = append(rules, sandbox.Rule{Path: path, Access: sandbox.Write})
	}
	s.Limits = g.limits
	return g.place.start(ctx, g.launcher, s, rules, &Network{}, nil)
}
