// Package git runs the git program: the runtime's own reads and writes of a repository, and nothing that the
// repository or an agent could slip in between.
//
// Read the files in this order: this one (what a Repo is and how it is found), run.go (one call), stored.go (what is read
// without one), drivers.go (what a
// repository's config may not do), refs.go, locks.go and holder_linux.go (the locks of a git that died), objects.go, pack.go (the effects),
// worktrees.go, exclude.go.
//
// Every call names its directory, and git does not look above it for a repository. Hooks, fsmonitor, signing,
// automatic maintenance and the network are off; the environment's GIT_* that redirect git are gone; filters,
// merge drivers, external diffs and textconv that a config names do not run. So files that a filter would expand (git-lfs)
// are in lanes and checks as the repository stores them: pointers. Say `git lfs pull` in a setup command where the
// check needs them.
//
// What a config names is read right before each call that could run it. A config that changes in the instant between is
// the hole that git 2.39 leaves; a sandbox around the agents' tools closes it.
package git

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"muster"
)

// The oldest git that has all the runtime needs (merge-tree --write-tree is 2.38, its form is settled in 2.39).
const minMajor, minMinor = 2, 39

// Repo is a repository with a working tree and at least one commit. Its methods are safe for concurrent use.
type Repo struct {
	root   string   // the main worktree's top level
	linked string   // the linked worktree that it was opened from; "" for the main one
	common string   // the git directory that all worktrees share
	base   []string // the environment of every call
	name   string   // the identity that the runtime commits as
	email  string
	seen   sync.Map // commits, by id, that git has named or a branch was at
}

// Root is the top level of the main worktree: absolute, symbolic links resolved.
func (r *Repo) Root() string { return r.root }

// Linked is the top level of the linked worktree that the repository was opened from, "" when it was not.
func (r *Repo) Linked() string { return r.linked }

// CommonDir is the git directory that all worktrees share, absolute.
func (r *Repo) CommonDir() string { return r.common }

// Open finds the repository that dir lies in, from a subdirectory or a linked worktree too.
// Errors, each with a Hint: Unavailable (git missing, too old, or refusing), NotFound (not a repository), Invalid (bare, no commit).
func Open(ctx context.Context, dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "cannot find the directory %s: %w", dir, err)
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, muster.Errorf(muster.NotFound, "there is no directory %s", dir)
	}
	if r, ok := ctx.Value(found{}).(*Repo); ok && r.root == dir {
		return r, nil
	}
	r := &Repo{base: cleanEnv(os.Environ())}
	fits := make(chan error, 1) // asked beside the rest: what an old git says of the rest is not told
	asked := &Repo{base: r.base}
	go func() { fits <- asked.checkVersion(ctx, dir) }()
	err = r.find(ctx, dir)
	if old := <-fits; old != nil {
		return nil, old
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.Resolve(ctx, "HEAD"); err != nil {
		if !errors.Is(err, muster.ErrNotFound) {
			return nil, err
		}
		return nil, r.noCommit(ctx)
	}
	return r, r.readIdentity(ctx)
}

// noCommit is the error for a HEAD that is no commit. Where other branches have some, one more root would only part the history.
func (r *Repo) noCommit(ctx context.Context) error {
	all, err := r.Refs(ctx, "refs/heads", "refs/remotes")
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return muster.Errorf(muster.Invalid, "this repository has no commit yet, so there is nothing to build lanes on").
			WithHint(`git commit --allow-empty -m "start"`)
	}
	at := ""
	if r.linked != "" {
		at = "-C " + r.root + " "
	}
	branch, _ := r.CurrentBranch(ctx)
	return muster.Errorf(muster.Invalid, "there is no commit at HEAD (%s), so there is nothing to build lanes on; other branches have commits",
		cmp.Or(strings.TrimPrefix(branch, "refs/heads/"), "detached")).WithHint("git %sswitch BRANCH", at)
}

// With is a ctx in which Open gives r for its own root: a command that has just found its repository asks git only once.
func With(ctx context.Context, r *Repo) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, found{}, r)
}

type found struct{}

func (r *Repo) checkVersion(ctx context.Context, dir string) error {
	out, err := r.Do(ctx, Call{Dir: dir, Args: []string{"version"}})
	if errors.Is(err, exec.ErrNotFound) {
		return muster.Errorf(muster.Unavailable, "git is not installed, or not in PATH").
			WithHint("install git %d.%d or newer", minMajor, minMinor)
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "git does not run: %w", err)
	}
	if major, minor, ok := version(out); !ok || major < minMajor || major == minMajor && minor < minMinor {
		return muster.Errorf(muster.Unavailable, "%s is too old", strings.TrimSpace(out)).
			WithHint("install git %d.%d or newer", minMajor, minMinor)
	}
	return nil
}

// version reads "git version 2.39.5 (Apple Git-154)".
func version(out string) (major, minor int, ok bool) {
	f := strings.Fields(out)
	if len(f) < 3 {
		return 0, 0, false
	}
	part := strings.SplitN(f[2], ".", 3)
	if len(part) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(part[0])
	minor, err2 := strconv.Atoi(part[1])
	return major, minor, err1 == nil && err2 == nil
}

func (r *Repo) find(ctx context.Context, dir string) error {
	out, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"rev-parse", "--path-format=absolute",
		"--git-dir", "--git-common-dir", "--is-bare-repository", "--is-inside-work-tree", "--show-toplevel"}})
	outside := err != nil && strings.Count(out, "\n") == 4 && code(err) > 0 // of every work tree: all but the last was answered
	if err != nil && !outside {
		if ctx.Err() != nil {
			return err
		}
		if _, isExit := errors.AsType[*ExitError](err); isExit && !insideRepository(dir) {
			return muster.Errorf(muster.NotFound, "%s is not in a git repository", dir).
				WithHint(`git init && git add -A && git commit -m "start"`)
		}
		return muster.Errorf(muster.Unavailable, "git cannot read the repository of %s: %w", dir, err)
	}
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) != 5 && !outside {
		return muster.Errorf(muster.Unavailable, "git answers %q about the repository of %s", out, dir)
	}
	gitDir, bare, inside := line[0], line[2] == "true", line[3] == "true"
	r.common = line[1]
	err = nil
	if !bare && inside && gitDir == r.common && len(line) == 5 {
		r.root = line[4]
	} else if !bare {
		if inside && len(line) == 5 {
			r.linked = line[4]
		}
		r.root, err = r.mainRoot(ctx, dir)
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "git cannot find the main worktree of %s: %w", dir, err)
	}
	if r.root == "" {
		return muster.Errorf(muster.Invalid, "%s is a bare repository: it has no working tree, and a team needs one for its files and to show you its work in", r.common).
			WithHint("git clone %s DIR, and start muster in DIR", r.common)
	}
	r.root = filepath.FromSlash(r.root)
	if real, err := filepath.EvalSymlinks(r.root); err == nil {
		r.root = real
	}
	return nil
}

// mainRoot is the main worktree of a repository seen from a linked one (or from inside the git directory); "" when the
// repository is bare.
func (r *Repo) mainRoot(ctx context.Context, dir string) (string, error) {
	out, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"worktree", "list", "--porcelain", "-z"}})
	if err != nil {
		return "", err
	}
	all := parseWorktrees(out)
	if len(all) == 0 || all[0].Bare {
		return "", nil
	}
	top, err := r.Do(ctx, Call{Dir: all[0].Path, Args: []string{"rev-parse", "--show-toplevel"}})
	return strings.TrimRight(top, "\n"), err
}

// insideRepository looks for a .git above dir, to tell "no repository" from "one that git refuses".
func insideRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}
