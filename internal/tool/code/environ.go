package code

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/git"
	"muster/internal/proc"
)

// Environ is the environment of a command that runs in dir: base without what must not reach it and without muster's own
// settings, and with what keeps programs from waiting for a person, from colours and from pagers. Each name is there once.
func Environ(base []string, dir string) []string {
	env := With(proc.Withhold(base), "GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "PAGER=cat", "GIT_PAGER=cat", "TERM=dumb", "NO_COLOR=1", "PWD="+dir)
	if !hasOwnWorkspace(dir) {
		// A lane may lie inside the repository, where Go would find the go.work above it and build that instead.
		env = With(env, "GOWORK=off")
	}
	return env
}

// With sets variables in env, in place of those of the same name.
func With(env []string, set ...string) []string {
	for _, e := range set {
		name, _, _ := strings.Cut(e, "=")
		env = append(slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") }), e)
	}
	return env
}

// hasOwnWorkspace reports whether dir has a go.work of its own that git tracks.
func hasOwnWorkspace(dir string) bool {
	if _, err := os.Lstat(filepath.Join(dir, "go.work")); err != nil {
		return false
	}
	return git.IsTracked(context.Background(), dir, "go.work")
}
