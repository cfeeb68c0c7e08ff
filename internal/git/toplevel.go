package git

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"muster"
	"muster/internal/durable"
	"muster/internal/text"
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
	gitDirs := []string{link}
	if st, err := os.Stat(link); err == nil && !st.IsDir() {
		if !st.Mode().IsRegular() {
			return errNoFile(link)
		}
		if gitDirs = []string{DirOf(top)}; gitDirs[0] == "" {
			return nil
		}
		if common := commonOf(gitDirs[0]); common != "" {
			gitDirs = append(gitDirs, common)
		}
	}
	for _, dir := range gitDirs {
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

// errNoFile is the error for something that stands where git has a file.
func errNoFile(path string) error {
	return muster.Errorf(muster.Unavailable,
		"%s is in the way where git needs a file: it is a directory, a pipe or a device", path).
		WithHint("move it away")
}

// commonOf returns the git directory of the main worktree for that of a linked one, "" for any other.
func commonOf(gitDir string) string {
	line := readLine(filepath.Join(gitDir, "commondir"))
	if line == "" || filepath.IsAbs(line) {
		return line
	}
	return filepath.Join(gitDir, filepath.FromSlash(line))
}

// topAbove returns the directory at or above dir that has a .git, "" when there is none.
func topAbove(dir string) string {
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
	}
	return ""
}

// placeAbove returns the outermost lane or scratch checkout that dir lies in, and the top level of its repository; ""
// where it lies in none. Git is not asked in there: it would obey what a member has written.
func placeAbove(dir string) (top, tree string) {
	var above []string // the outermost first
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		above = append(above, dir)
	}
	slices.Reverse(above)
	for i, tree := range above {
		for _, top := range above[:i] {
			if common := commonAt(top); common != "" && hasPlace(common, tree) {
				return top, tree
			}
		}
	}
	return "", ""
}

// commonAt returns the git directory that the worktrees of the repository at top share, where muster has made places
// there; "" where it has not.
func commonAt(top string) string {
	common := filepath.Join(top, ".git")
	switch st, err := os.Lstat(common); {
	case err != nil:
		return ""
	case !st.IsDir():
		common = DirOf(top)
		common = cmp.Or(commonOf(common), common)
	}
	if common == "" || durable.IsMissing(filepath.Join(common, filepath.FromSlash(placesDir))) {
		return ""
	}
	return common
}

// findTop sets the top level of the main worktree: the directory whose .git is or leads to the common git directory.
// dir is where the search for the repository began. The root of r is what git says, after the config; "" if it cannot
// tell.
func findTop(dir string, r *Repo) error {
	said := r.root
	if said != "" && leadsTo(said, r.common) {
		return nil
	}
	// Beside the git directory; else in or above dir, which may lie in a lane whose own .git leads elsewhere.
	candidates := []string{filepath.Dir(r.common)}
	for last := ""; dir != last; last, dir = dir, filepath.Dir(dir) {
		candidates = append(candidates, dir)
	}
	for _, top := range candidates {
		if leadsTo(top, r.common) {
			r.root, r.workTree = top, top
			return nil
		}
	}
	if said == "" || said == r.common { // the latter is what git says of a separate git directory
		return muster.Errorf(muster.Unavailable, "git cannot find the main worktree of %s", r.common).
			WithHint("start muster in the directory that has the repository's own files")
	}
	return muster.Errorf(muster.Invalid, "the config of %s says that the files of this repository are in %s, "+
		"which has no .git that leads back", r.common, said).
		WithHint("git --git-dir %s config --unset core.worktree", text.ShellQuote(r.common))
}

// leadsTo reports whether the .git of a directory is the git directory, or a file that names it.
func leadsTo(top, common string) bool {
	named := filepath.Join(top, ".git")
	st, err := os.Stat(named)
	if err == nil && !st.IsDir() {
		if named = DirOf(top); named == "" {
			return false
		}
		st, err = os.Stat(named)
	}
	of, commonErr := os.Stat(common)
	return errors.Join(err, commonErr) == nil && os.SameFile(st, of)
}
