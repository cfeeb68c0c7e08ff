package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"muster/internal/durable"
)

// localVariables are the variables of the environment that lead git to another repository than the one of its
// directory. The list is that of git rev-parse --local-env-vars, with GIT_CEILING_DIRECTORIES.
var localVariables = []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR",
	"GIT_CONFIG", "GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_DIR", "GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE",
	"GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE"}

// RunAsUser runs git in a checkout of the user's as if they had typed it there: with their identity, their hooks, their
// signing key and all of the config, also the repository's, which they obey with every command of their own. It is for
// what they ask for by a command; the runtime's own calls use Run. env is added to their environment. said is what git
// and the hooks printed. Errors: *ExitError, or the context's.
func RunAsUser(ctx context.Context, dir string, env []string, args ...string) (said string, err error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-pager"}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(localVariables, name)
	}), env...)
	// It stays in the terminal's process group, so that it can ask for a passphrase there. A Ctrl-C then reaches git
	// too, as it would if the user had started it.
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = run(cmd)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		text := errs.String()
		if strings.TrimSpace(text) == "" { // some commands say on standard output why they fail
			text = out.String()
		}
		err = &ExitError{Args: args, Code: exit.ExitCode(), Stderr: text}
	} else if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String() + errs.String(), err
}

// UnderWay returns which operation of several steps was begun in the checkout at dir and has not ended: "merge",
// "rebase", "cherry-pick" or "revert"; "" is none.
func UnderWay(r *Repo, dir string) (operation string) {
	gitDir := cmp.Or(DirOf(dir), r.common)
	for _, x := range []struct{ file, operation string }{
		{"MERGE_HEAD", "merge"}, {"rebase-merge", "rebase"}, {"rebase-apply", "rebase"},
		{"CHERRY_PICK_HEAD", "cherry-pick"}, {"REVERT_HEAD", "revert"},
	} {
		if !durable.IsMissing(filepath.Join(gitDir, x.file)) {
			return x.operation
		}
	}
	return ""
}
