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

// Environ returns the environment of a command that runs in dir. It leaves out of base what must not reach
// a command (keys, muster's own settings), and keeps programs from waiting for a person, from using colours
// and from paging. Each name occurs once.
func Environ(ctx context.Context, base []string, dir string) []string {
	set := []string{"GIT_TERMINAL_PROMPT=0", "GIT_EDITOR=true", "EDITOR=true", "PAGER=cat", "GIT_PAGER=cat",
		"TERM=dumb", "NO_COLOR=1", "PWD=" + dir}
	// A lane may lie inside the repository. Go would then find the go.work above it and build the repository.
	// A go.work of the lane itself counts only if git tracks it: any other is a leftover of somebody.
	if _, err := os.Lstat(filepath.Join(dir, "go.work")); err != nil || !git.IsTracked(ctx, dir, "go.work") {
		set = append(set, "GOWORK=off")
	}
	// Which of two variables of one name a program gets is not defined, so the old one is removed.
	env := proc.Withhold(base)
	for _, e := range set {
		name, _, _ := strings.Cut(e, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		env = append(env, e)
	}
	return env
}
