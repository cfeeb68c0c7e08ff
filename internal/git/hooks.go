package git

import (
	"cmp"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/proc"
	"muster/internal/text"
)

// AgentHooks are the hooks of the git that agents run. One of them refuses to move refs that are not the agent's: the
// target, other lanes' branches, the stash, replaced objects and muster's own. Each then runs the user's hook of its
// name. It only catches mistakes: git can be told to use other hooks, and refs are files. What landings left at the
// target is remembered, and that is the protection (package landing).
type AgentHooks struct {
	dir     string // where the hooks lie
	scratch string // where members without a lane work
}

// hookScript is what each of the hooks does.
//
//go:embed hook.sh
var hookScript string

// hookNames are the hooks that git asks for. Those are left out whose mere presence changes what git does.
var hookNames = []string{"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit",
	"prepare-commit-msg", "commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push",
	"pre-receive", "update", "post-receive", "post-update", "reference-transaction", "pre-auto-gc", "post-rewrite",
	"post-index-change"}

// NewAgentHooks writes the hooks of a repository whose work lands on target (refs/heads/...) to the directory dir below
// that of the team's state. scratch is where members without a lane work.
func NewAgentHooks(r *Repo, state, dir, scratch, target string) (*AgentHooks, error) {
	// A directory that is not absolute is relative to a working tree.
	hooks := cmp.Or(r.hooksPath, filepath.Join(r.common, "hooks"))
	values := strings.NewReplacer("@COMMON@", text.ShellQuote(r.common), "@TARGET@", text.ShellQuote(target),
		"@HOOKS@", text.ShellQuote(hooks), "@SHARED@", text.ShellQuote(r.sharedHooks))
	script := values.Replace(hookScript)
	root, err := os.OpenRoot(state)
	if err == nil {
		defer root.Close()
		err = writeHooks(root, dir, script)
	}
	if err != nil {
		return nil, muster.Errorf(muster.Unavailable, "the hooks of the agents' git cannot be written: %w", err)
	}
	return &AgentHooks{dir: filepath.Join(state, dir), scratch: scratch}, nil
}

// writeHooks writes the hooks that are not there yet. Another process of the team may run them at the same time.
func writeHooks(root *os.Root, dir, script string) error {
	if err := root.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, name := range hookNames {
		path := filepath.Join(dir, name)
		if data, err := root.ReadFile(path); err == nil && string(data) == script {
			continue
		}
		// A new file and a rename: a program that is being run cannot be written.
		next := fmt.Sprintf("%s.%d.tmp", path, os.Getpid())
		if err := root.WriteFile(next, []byte(script), 0o700); err != nil {
			return err
		}
		if err := root.Rename(next, path); err != nil {
			return err
		}
	}
	return nil
}

// laneVar tells the hook which branch is the agent's own.
const laneVar = "MUSTER_LANE_REF"

// Env returns env with what makes git use the hooks. dir is where the command runs: a lane, or a scratch checkout.
func (h *AgentHooks) Env(env []string, dir string) []string {
	own := "none"
	if filepath.Dir(dir) != h.scratch {
		own = "refs/heads/wt/" + filepath.Base(dir)
	}
	// Of a team of root some files belong to the repository's owner.
	more := SettingsEnv(env, Setting{"core.hooksPath", h.dir}, Setting{"safe.directory", dir})
	return proc.WithVariables(env, append(more, laneVar+"="+own)...)
}
