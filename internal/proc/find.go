package proc

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// FindOutside finds a program in the PATH of env, and returns its path, "" if there is none, and env with a PATH of the
// directories in which it may look for others. What lies in one of dirs is left out, also by its links, and so is what
// the PATH names relative to a working directory: a repository may hold anything under the name of a program, and what
// muster runs by itself must be the user's own.
func FindOutside(program string, env []string, dirs ...string) (path string, outside []string) {
	var list []string
	for _, dir := range filepath.SplitList(variable(env, "PATH")) {
		if real, err := filepath.EvalSymlinks(dir); err != nil || !filepath.IsAbs(dir) || isBelow(dir, dirs) ||
			isBelow(real, dirs) {
			continue
		}
		list = append(list, dir)
		found, err := exec.LookPath(filepath.Join(dir, program))
		if err != nil || path != "" {
			continue
		}
		if real, err := filepath.EvalSymlinks(found); err == nil && !isBelow(real, dirs) {
			path = found
		}
	}
	return path, WithVariables(env, "PATH="+strings.Join(list, string(filepath.ListSeparator)))
}

// isBelow reports whether a path is in one of dirs, as they are named or with their links followed.
func isBelow(path string, dirs []string) bool {
	return slices.ContainsFunc(dirs, func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			real = dir
		}
		for _, d := range []string{dir, real} {
			if rel, err := filepath.Rel(d, path); d != "" && err == nil && filepath.IsLocal(rel) {
				return true
			}
		}
		return false
	})
}
