package git

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"

	"muster/internal/proc"
)

// UserConfig returns a value of the user's and the system's config, and of the environment. The config of no repository
// counts, whatever the directory. It is "" where none has the key, or git cannot tell.
func UserConfig(ctx context.Context, environ []string, key string) string {
	cmd := exec.CommandContext(ctx, "git", "--no-pager", "config", "--get", key)
	// A directory that is none, so that git looks for no repository.
	cmd.Env = append(slices.DeleteFunc(slices.Clone(environ), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(proc.MisleadsGit, name)
	}), "GIT_DIR="+os.DevNull)
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(out), "\n")
}
