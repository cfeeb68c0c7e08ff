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
)

// The oldest git that has all that the runtime needs: merge-tree --write-tree came with 2.38, and its output is settled
// since 2.39.
const minMajor, minMinor = 2, 39

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
	r := &Repo{runner: runner{env: cleanEnv(os.Environ())}}
	// The version and the identity are asked for at the same time as the rest, which saves the start of two processes.
	// When git is too old, that is the error: an old git may fail at the rest too.
	asker := r.runner
	var others sync.WaitGroup
	var identity []string
	var tooOld, unreadable error
	others.Go(func() { tooOld = asker.checkVersion(ctx, dir) })
	others.Go(func() { identity, unreadable = asker.readIdentity(ctx, dir) })
	err = findRepo(ctx, r, dir)
	others.Wait()
	if err := cmp.Or(tooOld, err, unreadable); err != nil {
		return nil, err
	}
	r.files.common = r.common
	if _, err := r.Resolve(ctx, "HEAD"); err != nil {
		if !errors.Is(err, muster.ErrNotFound) {
			return nil, err
		}
		return nil, errNoCommit(ctx, r)
	}
	r.env = append(r.env, identity...)
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
	if r.linked != "" {
		at = "-C " + r.root + " "
	}
	branch, _ := r.CurrentBranch(ctx) // only words of the message
	return muster.Errorf(muster.Invalid,
		"there is no commit at HEAD (%s), so there is nothing to build lanes on; other branches have commits",
		cmp.Or(strings.TrimPrefix(branch, "refs/heads/"), "detached")).WithHint("git %sswitch BRANCH", at)
}

// checkVersion refuses a git that is missing or too old.
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
		"--git-dir", "--git-common-dir", "--is-bare-repository", "--is-inside-work-tree", "--show-toplevel"}})
	// Outside of every working tree git fails at the last question only.
	isOutside := err != nil && strings.Count(out, "\n") == 4 && ExitCode(err) > 0
	if err != nil && !isOutside {
		if ctx.Err() != nil {
			return err
		}
		if isExit(err) && !isInsideRepository(dir) {
			return muster.Errorf(muster.NotFound, "%s is not in a git repository", dir).
				WithHint(`git init && git add -A && git commit -m "start"`)
		}
		return muster.Errorf(muster.Unavailable, "git cannot read the repository of %s: %w", dir, err)
	}
	// One line for each question, in the order of the questions.
	line := strings.Split(strings.TrimRight(out, "\n"), "\n")
	if len(line) != 5 && !isOutside {
		return muster.Errorf(muster.Unavailable, "git answers %q about the repository of %s", out, dir)
	}
	r.common = line[1]
	gitDir, isBare, isInside := line[0], line[2] == "true", line[3] == "true" && len(line) == 5
	if isInside {
		r.root = line[4]
	}
	if !isBare && (!isInside || gitDir != r.common) {
		r.linked = r.root
		if r.root, err = r.mainRoot(ctx, dir); err != nil {
			return muster.Errorf(muster.Unavailable, "git cannot find the main worktree of %s: %w", dir, err)
		}
	}
	if r.root == "" {
		return muster.Errorf(muster.Invalid, "%s is a bare repository: it has no working tree, and a team needs one "+
			"for its files and to show you its work in", r.common).
			WithHint("git clone %s DIR, and start muster in DIR", r.common)
	}
	r.root = filepath.FromSlash(r.root)
	// The root is compared with paths that git prints, which have no symbolic links.
	if resolved, err := filepath.EvalSymlinks(r.root); err == nil {
		r.root = resolved
	}
	return nil
}

// mainRoot returns the main worktree of a repository, asked from a linked one or from inside the git directory. It is
// "" when the repository is bare.
func (r *runner) mainRoot(ctx context.Context, dir string) (string, error) {
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

// isInsideRepository looks for a .git above dir, to tell "no repository" from "one that git refuses".
func isInsideRepository(dir string) bool {
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
	}
	return false
}

// The identity that the runtime commits as when the user has not told git who they are.
const (
	ownName  = "muster"
	ownEmail = "muster@localhost"
)

// readIdentity returns the environment that makes git commit as the user, whom git knows in dir, else as
// muster <muster@localhost>. It is called once, when the repository is opened, so that what an agent later writes into
// the config signs no commit.
func (r *runner) readIdentity(ctx context.Context, dir string) (env []string, err error) {
	configured, err := r.Config(ctx, Call{Dir: dir, Upward: true}, `^user\.(name|email)$`)
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "git cannot read its config: %w", err)
	}
	// git takes a text of spaces for none.
	text := func(variable string) string { return strings.TrimSpace(os.Getenv(variable)) }
	name := cmp.Or(text("GIT_AUTHOR_NAME"), text("GIT_COMMITTER_NAME"), strings.TrimSpace(configured["user.name"]))
	email := cmp.Or(text("GIT_AUTHOR_EMAIL"), text("GIT_COMMITTER_EMAIL"), strings.TrimSpace(configured["user.email"]),
		text("EMAIL"))
	if name == "" || email == "" {
		return identityEnv(ownName, ownEmail), nil
	}
	return identityEnv(name, email), nil
}

// identityEnv is the environment that makes git commit as that person.
func identityEnv(name, email string) []string {
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email,
		"GIT_COMMITTER_NAME=" + name, "GIT_COMMITTER_EMAIL=" + email}
}
