// Package git runs the git program for the runtime. Every git that the program starts goes through here.
//
// Repo is a repository: its refs (refs.go, files.go, locks.go), its commits and trees (objects.go) and its worktrees
// (worktrees.go). Open finds one. A runner (run.go) makes one call; it decides what git may see and do. A Place
// (place.go) is a worktree in which the commands of a member work; git is confined there (helper.go).
//
// The package keeps these invariants, whatever the repository's config and an agent's files say:
//
//   - Every call names its directory, and git does not look above it for a repository. A lane that lost its .git file
//     is never taken for a directory of the user's checkout.
//   - Hooks, fsmonitor, signing, automatic maintenance and the network are off, and the GIT_* of the environment that
//     redirect git are gone.
//   - Filters and merge drivers of the user's own config run, those of the repository's config only after TrustDrivers,
//     both as they were when the repository was opened (drivers.go). External diffs and textconv never run. Where a
//     filter does not run, a file is in lanes and checks as the repository stores it; who stages it must ask Filter.
//   - Commits are what their ids say: replacements and grafts do not count.
//   - Refs move in transactions that are synced to disk. A lock that a killed git left is broken only when no living
//     git can hold it (locks.go).
//   - The config is read once, when the repository is opened (config.go), and git in places sees nothing else of it. So
//     do all calls for drivers, and for which changes of a working tree count; what else could make git overlook a
//     change is off. Of the rest they obey what is new: only the user writes it, and tools without a sandbox.
//
// What refs and worktrees mean to muster is for the packages worktree and landing.
package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/text"
)

// Repo is a repository with a working tree and at least one commit. Its methods are safe for concurrent use.
type Repo struct {
	runner
	linked string // the linked worktree that it was opened from; "" for the main one
	here   string
	commits
	excludes
}

// Root returns the top level of the main worktree: absolute, symbolic links resolved.
func (r *Repo) Root() string { return r.root }

// Linked returns the top level of the linked worktree that the repository was opened from, "" when it was not.
func (r *Repo) Linked() string { return r.linked }

// Here returns the top level of the user's checkout that the repository was opened from: a linked worktree that is no
// lane, or else the main one.
func (r *Repo) Here() string { return r.here }

// CommonDir returns the git directory that all worktrees share, absolute.
func (r *Repo) CommonDir() string { return r.common }

// The oldest git that has all that the runtime needs: merge-tree --write-tree came with 2.38, and its output is settled
// since 2.39.
const minMajor, minMinor = 2, 39

const laneHead = "ref: refs/heads/wt/" // how the HEAD of a lane begins

// Open finds the repository that dir lies in, from a subdirectory or a linked worktree too.
// Errors, each with a hint: Unavailable (git missing, too old, or refusing), NotFound (not a repository), Invalid
// (bare, no commit).
func Open(ctx context.Context, dir string) (*Repo, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, muster.Errorf(muster.Invalid, "cannot find the directory %s: %w", dir, err)
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, muster.Errorf(muster.NotFound, "there is no directory %s", dir)
	}
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	top, lane := placeAbove(dir)
	if lane != "" {
		dir = top
	}
	if err := checkGitDir(dir); err != nil {
		return nil, err
	}
	r := &Repo{runner: runner{env: cleanEnv(os.Environ())}}
	// The version and the config are asked for at the same time as the rest, which saves the start of two processes.
	// When git is too old, that is the error: an old git may fail at the rest too.
	asker := r.runner
	var others sync.WaitGroup
	var found userConfig
	var tooOld, unreadable error
	others.Go(func() { tooOld = asker.checkVersion(ctx, dir) })
	others.Go(func() { found, unreadable = asker.readConfig(ctx, dir) })
	err = findRepo(ctx, r, dir)
	others.Wait()
	if err := cmp.Or(tooOld, err, unreadable); err != nil {
		return nil, err
	}
	r.here = r.root
	if admin := registrationOf(r.common, r.linked); r.linked != "" && admin != "" &&
		!strings.HasPrefix(readLine(filepath.Join(admin, "HEAD")), laneHead) { // as of a lane without a place
		r.here = r.linked
	}
	if lane != "" {
		r.linked = lane
	}
	if _, err := r.Head(ctx); err != nil {
		if !errors.Is(err, muster.ErrNotFound) {
			return nil, err
		}
		return nil, errNoCommit(ctx, r)
	}
	r.userConfig = found
	r.env, r.pinned = append(r.env, found.identity.env()...), append(r.pinned, caseSetting(r.common))
	r.excludes.text, _ = r.readExclude() // git does not see a file that cannot be read, either
	return r, nil
}

// errNoCommit is the error for a HEAD that is no commit. Where other branches have commits the hint is to switch to
// one: another root commit would only part the history.
func errNoCommit(ctx context.Context, r *Repo) error {
	refs, err := r.Refs(ctx, "refs/heads", "refs/remotes")
	if err != nil {
		return err
	}
	if len(refs) == 0 {
		return muster.Errorf(muster.Invalid,
			"this repository has no commit yet, so there is nothing to build lanes on").
			WithHint(`git commit --allow-empty -m "start"`)
	}
	at := ""
	if r.linked != "" && r.linked != r.here { // a lane
		at = "-C " + text.ShellQuote(r.here) + " "
	}
	branch, _ := r.CurrentBranch(ctx) // only words of the message
	return muster.Errorf(muster.Invalid,
		"there is no commit at HEAD (%s), so there is nothing to build lanes on; other branches have commits",
		cmp.Or(strings.TrimPrefix(branch, "refs/heads/"), "detached")).
		WithHint("git %sswitch BRANCH", at)
}

func (r *runner) checkVersion(ctx context.Context, dir string) error {
	out, err := r.Do(ctx, Call{Dir: dir, Args: []string{"version"}})
	if errors.Is(err, exec.ErrNotFound) {
		return muster.Errorf(muster.Unavailable, "git is not installed, or not in PATH").
			WithHint("install git %d.%d or newer", minMajor, minMinor)
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "git does not run: %w", err)
	}
	// As in "git version 2.39.5 (Apple Git-154)".
	var major, minor int
	_, err = fmt.Sscanf(out, "git version %d.%d", &major, &minor)
	if err != nil || major < minMajor || major == minMajor && minor < minMinor {
		return muster.Errorf(muster.Unavailable, "%s is too old", strings.TrimSpace(out)).
			WithHint("install git %d.%d or newer", minMajor, minMinor)
	}
	return nil
}

// findRepo asks git about the repository of dir, and sets common, root and linked.
func findRepo(ctx context.Context, r *Repo, dir string) error {
	out, err := r.Do(ctx, Call{Dir: dir, Upward: true, Args: []string{"rev-parse", "--path-format=absolute",
		"--git-dir", "--git-common-dir", "--is-bare-repository"}})
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return err
	case isExit(err) && topAbove(dir) == "":
		return muster.Errorf(muster.NotFound, "%s is not in a git repository", dir).
			WithHint(`git init && git add -A && git commit -m "start"`)
	default:
		return muster.Errorf(muster.Unavailable, "git cannot read the repository of %s: %w", dir, err)
	}
	// One line for each question, in the order of the questions.
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) != 3 {
		return muster.Errorf(muster.Unavailable, "git answers %q about the repository of %s", out, dir)
	}
	gitDir, isBare := line[0], line[2]
	r.common = line[1]
	if err := CheckPath(r.common); err != nil {
		return err
	}
	if gitDir != r.common { // of a linked worktree, which is never bare itself
		if top := topAbove(dir); leadsTo(top, gitDir) {
			r.linked = top
		}
		isBare, err = r.Run(ctx, r.common, "config", "--type=bool", "--default=false", "core.bare")
		if err != nil {
			return muster.Errorf(muster.Unavailable, "git cannot read the config of %s: %w", r.common, err)
		}
	}
	// In a linked worktree a team can work, beside the directory whose .git leads to a bare repository.
	isBare = strings.TrimSpace(isBare)
	if r.root, err = findTop(ctx, &r.runner, dir); err == nil && (isBare != "true" || r.linked != "") {
		return CheckPath(r.root)
	}
	if isBare == "true" {
		if tree := firstWorktree(r.common); tree != "" {
			return muster.Errorf(muster.Invalid, "%s is a bare repository: a team works in one of its worktrees",
				r.common).WithHint("cd %s", text.ShellQuote(tree))
		}
		return muster.Errorf(muster.Invalid, "%s is a bare repository: it has no working tree, and a team needs one "+
			"for its files and to show you its work in", r.common).
			WithHint("git clone %[1]s DIR, and start muster in DIR\nwhere the config is wrong:  "+
				"git --git-dir %[1]s config core.bare false", text.ShellQuote(r.common))
	}
	return err
}
