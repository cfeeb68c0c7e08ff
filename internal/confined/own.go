package confined

import (
	"context"
	"path/filepath"

	"muster/internal/proc"
	"muster/internal/sandbox"
)

// Own starts programs of muster's own where members, checks or set-ups write: git, and what lists and copies files.
// Each has a sandbox of its own, in which nothing of theirs runs: it reads the system, the toolchains and the
// repository's objects, and reads and writes what its caller names. It has no network.
type Own struct {
	launcher proc.Launcher
	place    Place
	always   sandbox.Rules
}

// NewOwn returns what starts such programs for the repository of p, confined by its method.
func NewOwn(l proc.Launcher, p Place) *Own {
	// Of the repository they see neither its settings, where passwords may be, nor the keys of git-crypt, nor what
	// lanes have.
	common := p.Repo.CommonDir()
	at := func(name string) string { return filepath.Join(common, name) }
	r := append(p.toolchains(), sandbox.Rules{{Path: common}, {Path: at("config"), Access: sandbox.Masked},
		{Path: at("config.worktree"), Access: sandbox.Masked}, {Path: at("git-crypt"), Access: sandbox.Empty},
		{Path: at("worktrees"), Access: sandbox.Empty}, {Path: at("muster"), Access: sandbox.Empty}}...)
	for _, dir := range p.Repo.Borrowed() {
		r = append(r, sandbox.Rule{Path: dir})
	}
	return &Own{l, p, r}
}

// ForFiles returns a launcher for programs that read and write below some directories besides.
func (o *Own) ForFiles(read, write []string) proc.Launcher {
	rules := append(sandbox.Rules(nil), o.always...)
	for _, dir := range read {
		rules = append(rules, sandbox.Rule{Path: dir})
	}
	for _, dir := range write {
		rules = append(rules, sandbox.Rule{Path: dir, Access: sandbox.Write})
	}
	return &forFiles{o.launcher, &o.place, rules}
}

// forFiles is the launcher of ForFiles.
type forFiles struct {
	proc.Launcher
	place *Place
	rules sandbox.Rules
}

// Start starts a program.
func (f *forFiles) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	s.Env = withoutSession(s.Env)
	return f.place.start(ctx, f.Launcher, s, f.rules, &Network{}, nil)
}
