package confined

import (
	"context"
	"path/filepath"
	"slices"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/worktree"
)

// Own starts programs of muster's own where members, checks or set-ups write: git, and what lists and copies files.
// Each has a sandbox of its own, in which nothing of theirs runs: it reads the system's programs and the repository's
// objects, and reads and writes what its caller names. It has no network.
type Own struct {
	launcher       proc.Launcher
	place          *Place
	files, filters sandbox.Rules
}

// NewOwn returns what starts such programs for the repository of p, confined by its method.
func NewOwn(l proc.Launcher, p *Place) *Own {
	// Of the repository they see neither its settings, where passwords may be, nor the keys of git-crypt, nor what
	// lanes have.
	common := p.Repo.CommonDir()
	at := func(name string) string { return filepath.Join(common, name) }
	programs, r := sandbox.Programs(), sandbox.Rules{}
	for _, dir := range []string{p.Repo.Root(), worktree.Home(p.Lanes)} {
		if programs.Show(dir) { // such as /usr/src/app
			r = append(r, sandbox.Empty.Rules(dir)...)
		}
	}
	r = slices.Concat(r, sandbox.Read.Rules(common), sandbox.Masked.Rules(at("config"), at("config.worktree")),
		sandbox.Empty.Rules(at("git-crypt"), at("worktrees"), at("muster")), sandbox.Read.Rules(p.Repo.Borrowed()...))
	o := &Own{launcher: l, place: p, filters: append(p.toolchains(), r...)}
	o.files = append(programs, r...)
	for _, name := range []string{"git", "sh", "cp"} {
		if path, _ := proc.FindOutside(name, p.Environ); !o.files.Show(path) { // it is not the system's
			o.files = o.filters
		}
	}
	return o
}

// ForFiles returns a launcher for programs of the system that read and write below some directories besides.
func (o *Own) ForFiles(read, write []string) proc.Launcher { return o.with(o.files, read, write) }

// ForFilters is ForFiles for a git whose filters may be programs of the user's.
func (o *Own) ForFilters(read, write []string) proc.Launcher { return o.with(o.filters, read, write) }

func (o *Own) with(rules sandbox.Rules, read, write []string) proc.Launcher {
	rules = slices.Concat(rules, sandbox.Read.Rules(read...), sandbox.Write.Rules(write...))
	return proc.Through(o.launcher, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		return o.place.start(ctx, o.launcher, s, rules, &Network{})
	})
}
