package team

import (
	"context"
	"path/filepath"
	"sync"

	"muster/internal/git"
	"muster/internal/proc"
)

// hookedLauncher starts the commands of agents: their git has hooks that refuse to move refs which are not theirs. The
// hooks are written when the first command starts.
type hookedLauncher struct {
	proc.Launcher
	hooks func() *git.AgentHooks // nil where they cannot be written
}

// hookAgents makes the launcher of the run's checks one for agents.
func hookAgents(ctx context.Context, p *runHost, l proc.Launcher) proc.Launcher {
	r, ok := p.repository.(gitRepository)
	if !ok {
		return l
	}
	return hookedLauncher{l, sync.OnceValue(func() *git.AgentHooks {
		home := p.workspace.Paths()
		dir := filepath.Join(".team", "githooks")
		hooks, err := git.NewAgentHooks(r.Repo, dir, home.Scratch(), p.target(), r.userHooks(ctx))
		logDropped(ctx, p.Log, "writing the hooks of the agents' git", err)
		return hooks
	})}
}

// userHooks returns where the user's own hooks lie. A path that is not absolute is relative to a working tree.
func (r gitRepository) userHooks(ctx context.Context) string {
	// The files are asked one by one: the calls of the runtime switch hooks off by the same key.
	for _, file := range []string{"--local", "--global", "--system"} {
		call := git.Call{Dir: r.CommonDir(), Args: []string{file, "--type=path"}}
		configured, err := r.Config(ctx, call, `^core\.hookspath$`)
		if dir := configured["core.hookspath"]; err == nil && dir != "" {
			return dir
		}
	}
	return filepath.Join(r.CommonDir(), "hooks")
}

// Start starts a program with the hooks.
func (l hookedLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	if h := l.hooks(); h != nil && s.Env != nil {
		s.Env = h.Env(s.Env, s.Dir)
	}
	return l.Launcher.Start(ctx, s)
}
