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
	"muster/internal/proc"
)

// RunAsUser runs git in a checkout of the user's as if they had typed it there: with their identity, their hooks, their
// signing key and all of the config, also the repository's, which they obey with every command of their own. It is for
// what they ask for by a command; the runtime's own calls use Run. env is added to their environment. said is what git
// and the hooks printed. Errors: *ExitError, or the context's.
func RunAsUser(ctx context.Context, dir string, env []string, args ...string) (said string, err error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir, "--no-pager"}, args...)...)
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.Contains(proc.MisleadsGit, name)
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
