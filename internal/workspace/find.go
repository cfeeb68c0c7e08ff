package workspace

import (
	"os"
	"path/filepath"

	"muster/internal/paths"
)

// findRoot finds the root of the main worktree above dir without asking git. It finds it only in the plain case of a
// repository that has a team's state already. Everything else, and every refusal, is left to git.
func findRoot(dir string) (root string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Lstat(filepath.Join(dir, ".git"))
		// In a linked worktree and in a submodule .git is a file. Only git knows what it stands for.
		if err == nil {
			return dir, st.IsDir() && hasState(paths.Dir(dir)) && exists(filepath.Join(dir, ".git", "HEAD"))
		}
		if filepath.Dir(dir) == dir {
			return "", false
		}
	}
}

// HasState reports whether a team or a board is here.
func (w *Workspace) HasState() bool { return hasState(w.Paths()) }

// HasLanes reports whether a lane was ever made here. Where none was, nobody needs to ask git.
func (w *Workspace) HasLanes() bool { return exists(w.Paths().Index()) }

// hasState reports whether a team or a board is in a directory.
func hasState(d paths.Dir) bool { return exists(d.Team()) || exists(d.Tasks()) }

// exists reports whether something is at path.
func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
