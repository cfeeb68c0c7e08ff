package workspace

import (
	"os"
	"path/filepath"

	"muster/internal/git"
	"muster/internal/paths"
)

// findRoot finds the root of the main worktree above dir without asking git. It finds it only in the plain case of a
// repository that has a team's state already. Everything else, and every refusal, is left to git.
func findRoot(dir string) (root string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil || git.CheckPath(dir) != nil {
		return "", false
	}
	for ; ; dir = filepath.Dir(dir) {
		st, err := os.Lstat(filepath.Join(dir, ".git"))
		// In a linked worktree and in a submodule .git is a file. Only git knows what it stands for.
		if err == nil {
			return dir, st.IsDir() && hasState(paths.Dir(dir)) && exists(filepath.Join(dir, ".git", "HEAD"))
		}
		// A bare repository may lie below another one, as in a home directory that is a repository.
		if filepath.Dir(dir) == dir || exists(filepath.Join(dir, "HEAD")) && exists(filepath.Join(dir, "objects")) {
			return "", false
		}
	}
}
