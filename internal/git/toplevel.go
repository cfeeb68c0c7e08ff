package git

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"muster"
)

// A config may say that the files of the repository are elsewhere (core.worktree). A team's state, its lanes and what
// it does to a checkout belong to the directory in which .git is, so that is the top level, and git is told so. The one
// config that is followed is that of a submodule or of a separate git directory: there .git is a file that leads back.

// CheckPath refuses a path that records cannot name: git prints one path a line, and JSON holds only text.
func CheckPath(path string) error {
	if strings.ContainsAny(path, "\n\r\x00") || !utf8.ValidString(path) {
		return muster.Errorf(muster.Invalid,
			"the path %q has a line break or is not UTF-8, so no record can name it", path).
			WithHint("rename that directory")
	}
	return nil
}

// neededFiles are the files that git opens at once in a git directory. It would wait for one that is a pipe.
var neededFiles = []string{"HEAD", "config", "config.worktree", "commondir", "packed-refs", "shallow", "index",
	"info/exclude", "info/attributes", "objects/info/alternates"}

// checkGitDir refuses what a git in dir would fail at or wait for: a top level that no record can name, and a pipe or a
// device in the place of git's own files.
func checkGitDir(dir string) error {
	top := topAbove(dir)
	if err := CheckPath(top); err != nil || top == "" {
		return err
	}
	link := filepath.Join(top, ".git")
	if st, err := os.Stat(link); err == nil && !st.IsDir() && !st.Mode().IsRegular() {
		return errNoFile(link)
	}
	for _, dir := range gitDirsOf(top) {
		if err := CheckPath(dir); err != nil {
			return err
		}
		for _, name := range neededFiles {
			path := filepath.Join(dir, filepath.FromSlash(name))
			if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
				return errNoFile(path)
			}
		}
	}
	return nil
}

func errNoFile(path string) error {
	return muster.Errorf(muster.Unavailable,
		"%s is in the way where git needs a file: it is a directory, a pipe or a device", path).
		WithHint("move it away")
}

// gitDirsOf returns the git directory to which the .git of a directory leads, and behind it, for a linked worktree,
// that of the main one. It returns none where .git cannot be read.
func gitDirsOf(top string) []string {
	link := filepath.Join(top, ".git")
	if st, err := os.Stat(link); err == nil && st.IsDir() {
		return []string{link}
	}
	dir := DirOf(top)
	if dir == "" {
		return nil
	}
	if common := pathFrom(dir, readLine(filepath.Join(dir, "commondir"))); common != "" {
		return []string{dir, common}
	}
	return []string{dir}
}

// above returns a directory and those above it, up to the root of the file system.
func above(dir string) (all []string) {
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		all = append(all, dir)
	}
	return all
}

// topAbove returns the directory at or above dir that has a .git, "" when there is none.
func topAbove(dir string) string {
	for _, top := range above(dir) {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			return top
		}
	}
	return ""
}

// placeAbove returns the outermost lane or scratch checkout that dir lies in, and the top level of its repository; ""
// where it lies in none. Git is not asked in there: it would obey what a member has written.
func placeAbove(dir string) (top, tree string) {
	all := above(dir)
	slices.Reverse(all) // the outermost first
	for i, tree := range all {
		for _, top := range all[:i] {
			if dirs := gitDirsOf(top); len(dirs) > 0 && HasPlace(dirs[len(dirs)-1], tree) {
				return top, tree
			}
		}
	}
	return "", ""
}

// findTop returns the top level of the main worktree: the directory whose .git is or leads to the common git directory.
// It lies beside that, or in or above dir, where the search for the repository began. From a linked worktree of a
// submodule only the config leads there.
func findTop(ctx context.Context, r *runner, dir string) (string, error) {
	for _, top := range append([]string{filepath.Dir(r.common)}, above(dir)...) {
		if leadsTo(top, r.common) {
			return top, nil
		}
	}
	said, err := r.Run(ctx, r.common, "rev-parse", "--show-toplevel")
	said = strings.TrimRight(said, "\n")
	if err != nil && !isExit(err) {
		return "", err
	}
	if err != nil || !leadsTo(said, r.common) {
		return "", muster.Errorf(muster.Unavailable, "the main worktree of %s cannot be found: no .git leads back",
			r.common).WithHint("start muster in the directory that has the repository's own files")
	}
	return filepath.FromSlash(said), nil
}

// leadsTo reports whether the .git of a directory is the git directory, or a file that names it.
func leadsTo(top, gitDir string) bool {
	dirs := gitDirsOf(top)
	if len(dirs) == 0 {
		return false
	}
	named, err := os.Stat(dirs[0])
	is, otherErr := os.Stat(gitDir)
	return errors.Join(err, otherErr) == nil && os.SameFile(named, is)
}
