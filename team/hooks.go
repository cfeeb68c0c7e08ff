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
		hooks, err := git.NewAgentHooks(r.Repo, dir, home.Scratch(), p.target())
		logDropped(ctx, p.Log, "writing the hooks of the agents' git", err)
		return hooks
	})}
}

// Start starts a program with the hooks.
func (l hookedLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	if h := l.hooks(); h != nil && s.Env != nil {
		s.Env = h.Env(s.Env, s.Dir)
	}
	return l.Launcher.Start(ctx, s)
}
