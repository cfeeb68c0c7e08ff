package trust

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
)

// Repository is what CheckState needs to know of a repository.
type Repository struct {
	Root   string // of its main worktree
	Common string // git's common directory
	// Tracked returns the paths below the given ones that git tracks, relative to the root.
	Tracked func(below []string) ([]string, error)
}

func stateDirs() []string {
	dirs := make([]string, len(paths.Excluded))
	for i, pattern := range paths.Excluded {
		dirs[i] = strings.Trim(pattern, "/")
	}
	return dirs
}

// Present returns the state directories that are in a repository, relative to its root. The error is Invalid where one
// of them, or a directory that muster makes in them, is a symbolic link or a file.
func Present(root string) (dirs []string, err error) {
	for _, dir := range stateDirs() {
		exists, err := checkDir(root, dir)
		if err != nil {
			return nil, err
		}
		if exists {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return nil, nil
	}
	d := paths.Dir(root)
	for _, below := range []string{d.Members(), d.Requests(), d.Hosts(), d.Inbox(), d.Locks(), d.Outputs(), d.Scratch(),
		d.Archive()} {
		rel, err := filepath.Rel(root, below)
		if err == nil {
			_, err = checkDir(root, rel)
		}
		if err != nil {
			return nil, err
		}
	}
	return dirs, nil
}

// checkDir reports whether a directory exists. What else has its name is refused.
func checkDir(root, rel string) (exists bool, err error) {
	fi, err := os.Lstat(filepath.Join(root, rel))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, muster.Errorf(muster.Unavailable, "the team's state cannot be looked at: %w", err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return false, muster.Errorf(muster.Invalid,
			"%s is a symbolic link, and muster keeps its state only in directories of its own", rel).
			WithHint("remove the link: rm %s", rel)
	case !fi.IsDir():
		return false, muster.Errorf(muster.Invalid,
			"%s is a file, and muster keeps its state in a directory there", rel).
			WithHint("move it away: mv %s %s.old", rel, strings.TrimPrefix(rel, "."))
	}
	return true, nil
}

// OfTeam returns those of the present state directories that a team has used. Many users keep worktrees of their own in
// .worktrees: it is a team's only where it has the index or the events of lanes, or where git has registered a worktree
// with a lane's branch.
func OfTeam(repo Repository, dirs []string) []string {
	lanes := paths.Dir(repo.Root).Worktrees()
	return slices.DeleteFunc(slices.Clone(dirs), func(dir string) bool {
		return filepath.Join(repo.Root, dir) == lanes && durable.IsMissing(filepath.Join(lanes, "index.json")) &&
			durable.IsMissing(filepath.Join(lanes, "events.jsonl")) && !hasLaneBranch(repo.Common)
	})
}

// hasLaneBranch reports whether a linked worktree of the repository is on a branch that has the name of a lane's. What
// cannot be read counts as one.
func hasLaneBranch(common string) bool {
	all := filepath.Join(common, "worktrees")
	entries, err := os.ReadDir(all)
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	for _, e := range entries {
		head, _, err := durable.New(durable.OS{}).ReadFile(filepath.Join(all, e.Name(), "HEAD"))
		if err != nil || strings.HasPrefix(string(head), "ref: refs/heads/wt/") {
			return true
		}
	}
	return false
}

// CheckTracked refuses state that git tracks: it came with a commit, and the next checkout could change it.
func CheckTracked(repo Repository, dirs []string) error {
	tracked, err := repo.Tracked(dirs)
	if err != nil || len(tracked) == 0 {
		return err
	}
	var top []string // the state directories that have them, each once
	for _, path := range tracked {
		if dir, _, _ := strings.Cut(path, "/"); len(top) == 0 || top[len(top)-1] != dir {
			top = append(top, dir)
		}
	}
	return muster.Errorf(muster.Invalid, "git tracks %s, so the team's state here came with a commit and is not used",
		tracked[0]).WithHint("git rm -r --cached %s", strings.Join(top, " "))
}

// CheckState refuses to use a team's state that muster did not make for this user on this machine. It allows a
// repository without state. Every opening of a repository calls it before any of the state is read. It writes nothing.
// Errors, each with what to do: Invalid for state that is not to be used, Unavailable where that cannot be decided.
func (r *Registry) CheckState(repo Repository) error {
	dirs, err := Present(repo.Root)
	if err != nil || len(dirs) == 0 {
		return err
	}
	if err := CheckTracked(repo, dirs); err != nil {
		// Files that git forgets stay, also those that came with a commit: a mark alone does not say whose they are.
		// Only the note is lost where it cannot be written.
		if mark, lookErr := r.Look(repo.Common); lookErr == nil && mark.IsOwn() {
			_ = r.files.Create(trackedPath(repo.Common), nil)
		}
		return err
	}
	if dirs = OfTeam(repo, dirs); len(dirs) == 0 {
		return nil
	}
	mark, err := r.Look(repo.Common)
	if err != nil || mark.IsOwn() {
		return err
	}
	why := "muster did not make it for you on this machine"
	if mark.Standing == Own {
		why = "some of it came with a commit"
	}
	if mark.Standing == Copied {
		why = "it belongs to the repository that this one is a copy of (" + filepath.Dir(mark.Original) + ")"
	}
	return muster.Errorf(muster.Invalid, "the team's state in %s is not used: %s", strings.Join(dirs, ", "), why).
		WithHint("take it over:   muster adopt\nput it aside:   muster archive --yes")
}
