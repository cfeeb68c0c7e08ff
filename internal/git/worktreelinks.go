package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/durable"
)

// A linked worktree and its registration, a directory in .git/worktrees, name each other: the worktree by its file
// .git, and the registration by its file gitdir.

// DirOf returns the git directory of a linked worktree, "" when it cannot be read. While commands run in a lane, its
// .git file may lead to a git directory of theirs (Place.GitDir), which is never the answer.
func DirOf(path string) string {
	dir := linkedDir(path)
	if common := ownerOf(dir); common != "" {
		return registrationOf(common, path)
	}
	return dir
}

// linkedDir returns what the .git file of a worktree names, "" when it cannot be read.
func linkedDir(path string) string {
	file, err := readFile(filepath.Join(path, ".git"))
	dir, ok := strings.CutPrefix(strings.TrimSpace(string(file)), "gitdir: ")
	if err != nil || !ok {
		return ""
	}
	return pathFrom(path, dir)
}

// pathFrom returns a path that a file of git's says, which may be relative to a directory; "" is none.
func pathFrom(dir, path string) string {
	if path = filepath.FromSlash(path); path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// AdminDir returns the directory in .git/worktrees of the linked worktree at path. It is "" when there is none, or when
// the two do not name each other. common is the repository's common directory. A symbolic link to a worktree is none.
func AdminDir(common, path string) string {
	admin := registrationOf(common, path)
	if info, err := os.Lstat(path); err != nil || !info.IsDir() || !isPlainLink(path) || DirOf(path) != admin {
		return ""
	}
	return admin
}

// registrationOf returns the directory in .git/worktrees that names path as its worktree, whatever is there; "" where
// none does. common is the repository's common directory.
func registrationOf(common, path string) string {
	link := filepath.Join(path, ".git")
	if link == common { // the main one, which most calls are about
		return ""
	}
	all, _ := registrations(common) // what cannot be read names nothing
	// git names a registration after the directory, unless there was one of that name.
	for _, admin := range append([]string{filepath.Join(common, "worktrees", filepath.Base(path))}, all...) {
		if linkOf(admin) == link {
			return admin
		}
	}
	return ""
}

func isPlainLink(path string) bool {
	st, err := os.Lstat(filepath.Join(path, ".git"))
	return err == nil && st.Mode().IsRegular()
}

// linkOf returns the .git file that a registration names, "" when it names none.
func linkOf(admin string) string {
	link := pathFrom(admin, readLine(filepath.Join(admin, "gitdir"))) // relative with worktree.useRelativePaths
	if link == "" {
		return ""
	}
	return filepath.Clean(link)
}

// RestoreLink writes the .git file of a registered worktree that has lost it, so that git knows the files in it again.
// It does nothing where there is one, and where no registration names the path.
func RestoreLink(common, path string) error {
	link := filepath.Join(path, ".git")
	admin := registrationOf(common, path)
	if !durable.IsMissing(link) || admin == "" {
		return nil
	}
	// A rename replaces no directory: the owner may be making a repository of its own.
	if err := durable.New(durable.OS{}).Replace(link, linkText(admin)); err != nil {
		return muster.Errorf(muster.Unavailable, "the worktree %s cannot be connected again: %w", path, err)
	}
	return nil
}

// firstWorktree returns a linked worktree of the user's, the first by its name in .git/worktrees; "" is none.
func firstWorktree(common string) string {
	all, _ := registrations(common) // what cannot be read names nothing
	for _, admin := range all {
		isLane := strings.HasPrefix(readLine(filepath.Join(admin, "HEAD")), laneHead)
		if link := linkOf(admin); link != "" && !isLane && AdminDir(common, filepath.Dir(link)) == admin {
			return filepath.Dir(link)
		}
	}
	return ""
}

func registrations(common string) (all []string, err error) {
	entries, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, muster.Errorf(muster.Unavailable, "the worktrees' registrations cannot be read: %w", err)
	}
	for _, e := range entries {
		all = append(all, filepath.Join(common, "worktrees", e.Name()))
	}
	return all, nil
}

// Moved returns the registration of the worktree at path if the two have lost each other because the repository was
// moved with both of them, "" otherwise: the .git file has the registration's name and leads to where nothing is, and
// so does the registration, which is on branch (refs/heads/...).
func Moved(common, path, branch string) (admin string) {
	was := DirOf(path)
	if was == "" || filepath.Base(filepath.Dir(was)) != "worktrees" || !durable.IsMissing(was) {
		return ""
	}
	admin = filepath.Join(common, "worktrees", filepath.Base(was))
	link := linkOf(admin)
	if readLine(filepath.Join(admin, "HEAD")) != "ref: "+branch || link == "" ||
		link != filepath.Join(path, ".git") &&
			!(durable.IsMissing(link) && filepath.Base(filepath.Dir(link)) == filepath.Base(path)) {
		return ""
	}
	return admin
}

// Rejoin lets a worktree and its registration that Moved has found name each other again. The .git file, by which Moved
// finds them, goes last: a crash before it leaves the rest to the next call.
func Rejoin(admin, path string) error {
	files := durable.New(durable.OS{})
	link := filepath.Join(path, ".git")
	if err := files.Replace(filepath.Join(admin, "gitdir"), []byte(filepath.ToSlash(link)+"\n")); err != nil {
		return err
	}
	return files.Replace(link, linkText(admin))
}

// AskWorktree asks git about the registered worktree at path, by its registration, which no command of a member writes.
// git reads none of the files in the worktree.
func AskWorktree(ctx context.Context, r *Repo, path string, args ...string) (string, error) {
	return r.Do(ctx, Call{Dir: r.common, Env: []string{"GIT_DIR=" + registrationOf(r.common, path)}, Args: args})
}
